"""The pages as a browser or a script gets them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from specmine.daemon.documents.json_text import rounded
from specmine.model.errors import InputError, NoData
from specmine.store import open_store
from specmine.web.app import make_app
from specmine.web.documents import Documents, StoreSource
from tests.support.stored import FUNCTION, fill, observation
from tests.support.stored_builds import two_builds
from tests.support.web_documents import HOSTILE, SampleSource, sample

PAGES = ("/", "/functions", "/builds", "/hosts")
LARGEST = 200_000
"""Bytes of a page, however many functions there are."""


def client(documents: Documents) -> TestClient:
    """Return a client of the application, which asks for this host."""
    return TestClient(make_app(SampleSource(documents), "127.0.0.1"), base_url="http://127.0.0.1")


def violation_id(documents: Documents) -> str:
    """Return the id of the first violation."""
    return str(documents.violations["violations"][0]["id"])


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_whole_and_leads_to_the_others(page: str) -> None:
    answer = client(sample()).get(page)
    assert answer.status_code == 200
    assert answer.text.count("<h1>") == 1
    assert answer.text.rstrip().endswith("</html>")
    assert all(f'href="{other}"' in answer.text for other in PAGES)


def test_the_first_page_begins_with_what_is_wrong() -> None:
    text = client(sample()).get("/").text
    assert "One problem:" in text
    card = text[text.index('<article class="card slow">') : text.index("</article>")]
    assert "checksum" in card
    assert "2.1× slower" in card
    assert re.search(r"median <b>160\s*µs</b>, normal 72–80\s*µs", card)
    assert "Slower with it" in card
    assert re.search(r'called by <span class="f">handle_<wbr>get</span>', card)
    assert "specmine acknowledge checksum" in card
    assert text.count("<article") == 1, "one entry a cause"
    assert "gzip level 6 is wanted" in text
    assert "cache</b>: does not run" in text
    figure = text[text.index('id="timeline"') : text.index("Open problems")]
    assert "Last 2 hours: 4 changes" in figure, "as short as holds them all"
    assert "shop build abababab started" in figure


def test_a_quiet_host_says_so() -> None:
    documents = sample()
    quiet = Documents(specification=documents.specification, violations={"violations": [], "host": "h", "at": None})
    for each in quiet.functions:
        each["violations"] = []  # type: ignore[index]
        each["verdict"] = "holds"  # type: ignore[index]
    assert "All well on h" in client(quiet).get("/").text
    next(each for each in quiet.functions if each["state"] == "single")["verdict"] = "unknown"  # type: ignore[index]
    some = client(quiet).get("/").text
    assert "<title>No problem seen" in some and "No problem seen on h" in some, "as the command says it"
    for each in quiet.functions:
        each["verdict"] = "unknown"  # type: ignore[index]
    assert "Nothing decided now on h" in client(quiet).get("/").text
    nothing = Documents(specification={"functions": []}, violations={"violations": [], "host": "h", "at": None})
    text = client(nothing).get("/").text
    assert "Nothing asserted yet on h" in text
    assert "No function is known yet." in text


def test_every_page_is_also_json_as_the_commands_print_it() -> None:
    documents = sample()
    asked = client(documents)
    assert asked.get("/?format=json").json() == rounded(documents.violations)
    assert asked.get("/hosts?format=json").json() == rounded(documents.status)
    listed = asked.get("/functions?format=json").json()
    assert listed["schema"] == "specmine.functions/1"
    assert [each["function"] for each in listed["functions"]] == [each["function"] for each in documents.functions]
    name = documents.functions[0]["function"]
    one = asked.get("/function", params={"name": name, "format": "json"}).json()
    assert one["schema"] == "specmine.function/1"
    assert one["function"] == name
    known = asked.get("/violation", params={"id": violation_id(documents), "format": "json"}).json()
    assert known["violations"] == [rounded(documents.violations["violations"][0])]


def test_every_function_has_a_page() -> None:
    documents = sample()
    asked = client(documents)
    for each in documents.functions:
        answer = asked.get("/function", params={"name": each["function"], "module": each["module"]})
        assert answer.status_code == 200, each["function"]
        assert "The assertion" in answer.text


def test_links_of_pages_lead_somewhere() -> None:
    """Every link of every page is followed, those of hostile names too."""
    asked = client(sample(hostile=True))
    seen: set[str] = set()
    ahead = list(PAGES)
    while ahead:
        address = ahead.pop()
        if address in seen or len(seen) > 200:
            continue
        seen.add(address)
        answer = asked.get(address)
        # the callee of the sample is known by its violation only
        assert answer.status_code == 200 or "No function" in answer.text, address
        if "html" in answer.headers["content-type"]:
            found = re.findall(r'href="(/[^"]*)"', answer.text)
            ahead += [each.replace("&amp;", "&") for each in found]
    assert len(seen) > 20


def test_hostile_names_stay_text() -> None:
    documents = sample(hostile=True)
    asked = client(documents)
    for address in (
        *PAGES,
        f"/violation?id={violation_id(documents)}",
        f"/function?name={quote(HOSTILE)}",
    ):
        text = asked.get(address).text
        assert "<script" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "&lt;script" in asked.get("/").text.replace("<wbr>", "")


def test_answers_forbid_scripts_and_foreign_content() -> None:
    headers = client(sample()).get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    text = client(sample()).get("/functions").text
    assert " style=" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_requests_for_other_hosts_are_refused() -> None:
    asked = client(sample())
    assert asked.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert asked.get("/", headers={"Host": "localhost:9753"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(method: str) -> None:
    assert client(sample()).request(method, "/").status_code == 405


@pytest.mark.parametrize("address", ["/nope", "/function?name=nope", "/function", "/violation?id=nope"])
def test_what_is_not_there_is_said(address: str) -> None:
    answer = client(sample()).get(address)
    assert answer.status_code == 404
    assert "No such" in answer.text
    asked = client(sample()).get(address + ("&" if "?" in address else "?") + "format=json")
    assert asked.status_code == 404
    assert asked.json()["error"]


def test_data_that_cannot_be_read_is_said_with_the_remedy() -> None:
    class Broken(SampleSource):
        def read(self) -> Documents:
            raise InputError("no daemon answers at /x", remedy="start specmined")

    asked = TestClient(make_app(Broken(sample()), "127.0.0.1"), base_url="http://127.0.0.1")
    answer = asked.get("/")
    assert answer.status_code == 503
    assert "start specmined" in answer.text
    assert asked.get("/style.css").status_code == 200


def test_five_thousand_functions_stay_quick_and_small() -> None:
    documents = sample(copies=-(-5000 // len(sample().functions)))
    assert 5000 <= len(documents.functions) < 5020
    asked = client(documents)
    small = client(sample())
    for page in PAGES:
        assert len(asked.get(page).content) < LARGEST, page
    times = [_seconds(asked, "/functions") for _ in range(5)]
    usual = [_seconds(small, "/functions") for _ in range(5)]
    # a page has 100 rows: a thousand times the functions cost what sorting and counting them does
    assert min(times) < 40 * min(usual)
    first = re.findall(r'<a class="f" href="([^"]+)"', asked.get("/functions").text)
    second = re.findall(r'<a class="f" href="([^"]+)"', asked.get("/functions?page=2").text)
    assert len(first) == len(second) == 100
    assert not {*first} & {*second}


def _seconds(asked: TestClient, page: str) -> float:
    began = time.process_time()
    asked.get(page)
    return time.process_time() - began


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("program=app", lambda each: "app" in (each.get("program"), each.get("module"))),
        ("q=a", lambda each: "a" in each["function"].lower()),
        ("sort=nonsense&page=-3&state=", lambda each: True),
        ("page=99999999999999999999", lambda each: True),
    ],
)
def test_functions_are_chosen_by_the_address(query: str, fits: Callable[[Any], bool]) -> None:
    documents = sample()
    text = client(documents).get(f"/functions?{query}").text
    assert text.count("<tr>") - 1 == sum(map(fits, documents.functions))


def test_a_store_is_read_without_a_daemon(tmp_path: Path, keep: Callable[..., Path], document: dict[str, Any]) -> None:
    app = make_app(StoreSource(keep(document)), "127.0.0.1")
    asked = TestClient(app, base_url="http://127.0.0.1")
    assert asked.get("/functions").status_code == 200
    builds = asked.get("/builds")
    assert "runs of one build only" in builds.text
    assert "known to the daemon only" in asked.get("/hosts").text


def test_a_function_shows_its_normal_time_beside_now_and_how_it_went() -> None:
    """Both sides have their legend, each time that is offered has an address, and the change is marked."""
    documents = sample()
    name = documents.functions[0]["function"]
    text = client(documents).get("/function", params={"name": name}).text
    assert re.search(r"<b>normal</b>: 29,600 calls, median 2\d(\.\d+)?\s*µs", text)
    assert re.search(r"<b>now</b>: 13,600 calls, median 3\d(\.\d+)?\s*µs", text)
    figure = text[text.index("<h2>Over time</h2>") :]
    assert all(f"hours={hours}" in figure for hours in (24, 168))
    assert "wash-slow" in figure
    assert "build abababab started 02:37" in figure
    longer = client(documents).get("/function", params={"name": name, "hours": "24"})
    assert longer.status_code == 200
    assert "<h2>Over time</h2>" not in longer.text, "the sample has no windows of so long"


def test_each_problem_shows_the_normal_time_beside_now() -> None:
    """The first page draws it for open problems; where no windows are known it says the same without."""
    documents = sample()
    text = client(documents).get("/").text
    card = text[text.index('<article class="card slow">') : text.index("</article>")]
    assert '<path class="usual"' in card
    assert "grey: normal, blue: now" in card

    class Bare(SampleSource):
        def trend(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
            raise NoData("no windows")

    asked = TestClient(make_app(Bare(documents), "127.0.0.1"), base_url="http://127.0.0.1")
    assert "2.1× slower" in asked.get("/").text
    assert '<path class="usual"' not in asked.get("/").text


def test_windows_are_read_once_for_the_same_documents() -> None:
    """Whoever reloads a page does not make the daemon read its store again."""

    class Counting(SampleSource):
        asked = 0

        def trend(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
            self.asked += 1
            return super().trend(keys, hours)

    source = Counting(sample())
    reader = TestClient(make_app(source, "127.0.0.1"), base_url="http://127.0.0.1")
    for _ in range(3):
        assert reader.get("/").status_code == 200
    assert source.asked == 1


def test_the_list_has_a_heading_for_each_state() -> None:
    """Each with all functions of that state; in another order there is none."""
    asked = client(sample())
    heads = re.findall(r'<tr class="group"><th[^>]*>([^<]+)', asked.get("/functions").text)
    assert heads == [
        "Slower than normal · 1",
        "Holds · 1",
        "Known · 1",
        "Learning · 1",
        "Waits · 1",
        "Cannot be timed · 1",
    ]
    assert '<tr class="group">' not in asked.get("/functions?sort=median").text


def test_a_store_tells_how_a_function_went(tmp_path: Path) -> None:
    """The time shown ends with the newest window, and a file of JSON holds none."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(20)])
    found = StoreSource(tmp_path / "s.db").trend([FUNCTION.key], 2)
    assert sum(each["calls"] for each in found["points"]) == 2000
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(NoData):
        StoreSource(tmp_path / "s.json").trend([FUNCTION.key], 2)


def test_a_function_shows_where_its_calls_wait() -> None:
    """The section is there once waits were followed, with names as text."""
    documents = sample()
    address = f"/function?name={quote(str(documents.functions[0]['function']))}"
    assert "Where its calls wait" not in client(documents).get(address).text
    part = {"kind": "file", "system_call": "fsync", "place": "save<b>", "within": None, "share": 0.9}
    part |= {"waits_per_call": 0.001, "mean_seconds": 2e-6}
    waits = {"calls": 4000, "followed_seconds": 3.0, "mean_seconds": 2.2e-6, "at": None, "parts": [part]}
    cast("dict[str, Any]", documents.functions[0])["waits"] = waits
    text = client(documents).get(address).text
    section = text[text.index("Where its calls wait") :]
    assert "file fsync" in section
    assert "save&lt;b&gt;" in section
    assert "once in 1,000 calls" in section


def test_two_builds_of_a_store_are_compared_in_words_and_pictures(tmp_path: Path) -> None:
    """The verdict and the cause in a sentence, a row each, and what changed drawn in both builds with each run."""
    store = two_builds(tmp_path / "s.db", 1.5)
    asked = TestClient(make_app(StoreSource(store), "127.0.0.1"), base_url="http://127.0.0.1")
    text = asked.get("/builds").text
    assert "<h1>bbbb against aaaa: 2 slower, 1 the same</h1>" in text
    assert "parse is 1.5× slower; its code changed. handle is slower only through what it calls." in text
    heads = re.findall(r'<tr class="group"><th[^>]*>([^<]+)', text)
    assert heads == ["Slower · 2", "The same · 1"]
    section = text[text.index('<h2><span class="f">parse</span>') :]
    section = section[: section.index("<h2>", 10)].replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(
        r"Median of all its calls: 40 µs in aaaa, 6\d µs in bbbb. That is 1\.\d\d×; with 95 % confidence", section
    )
    assert '<path class="usual"' in section
    assert section.count('class="run-new"') == section.count('class="run"') == 5
    assert asked.get("/builds?format=json").json()["schema"] == "specmine.comparison/1"
    swapped = asked.get("/builds", params={"old": "bbbb", "new": "aaaa"}).text
    assert "aaaa against bbbb: 2 faster, 1 the same" in swapped


def test_trends_of_many_lists_do_not_load_the_daemon() -> None:
    """The same list is read once, and another one not at once: the page then has no trends, and all else."""

    class Counting(SampleSource):
        lists = 0

        def trends(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
            self.lists += 1
            return super().trends(keys, hours)

    source = Counting(sample())
    reader = TestClient(make_app(source, "127.0.0.1"), base_url="http://127.0.0.1")
    for _ in range(3):
        assert "Trend, 1 h" in reader.get("/functions").text
    for part in "zab":
        answer = reader.get(f"/functions?q={part}")
        assert answer.status_code == 200
        assert "Trend," not in answer.text
    assert source.lists == 1


def test_what_changed_has_its_colour_in_the_list_too() -> None:
    """The small trend of a slower function is drawn as such, all others are not."""
    text = client(sample()).get("/functions").text
    assert text.count('class="trend trend-slow"') == 1
    assert text.count('class="trend"') > 1


def test_reasons_are_told_without_codes() -> None:
    """What is not known, and what would help, in two columns of words."""
    text = client(sample()).get("/hosts").text
    assert "What would help" in text
    assert not re.search(r"\[[a-z-]+\]", re.sub(r"<[^>]*>", "", text[text.index('id="blind"') :]))


def test_what_would_be_found_is_said() -> None:
    """Of one function, and counted for all: what is not slower may be so without being seen."""
    documents = sample()
    name = next(each["function"] for each in documents.functions if each["state"] == "single")
    text = client(documents).get("/function", params={"name": name}).text
    assert re.search(r"A slowdown of 1\.6(x|×) would be found within 1\s*min", text)
    assert re.search(
        r"Twice as slow would be found within 1\s*min in 2 of 2 functions", client(documents).get("/hosts").text
    )
