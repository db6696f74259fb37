"""``specmine report`` shows every build beside the one before, on a page that needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from specmine.store import Document, Writes, open_store
from tests.support.stored_builds import two_builds

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Three builds of two functions; the third is a fifth slower in one with a name that is markup."""
    rng = np.random.default_rng(1)
    lines = ["build,lifetime,duration_ns,function,time_ns"]
    for order, build in enumerate(("b", "a", "c")):  # time, not the alphabet, says which came first
        for number in range(5):
            for name, factor in (("f<b>", 1.2 if build == "c" else 1.0), ("g", 1.0)):
                values = factor * np.exp(rng.normal(0, 0.003)) * rng.lognormal(10, 0.05, 100)
                lines += [f"{build},{number},{value:.0f},{name},{1000 * order + number}" for value in values]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_numbers_of_a_report(recording: Path, outcome: Outcome) -> None:
    """Builds stand in the order of time; each step has its verdict."""
    code, out, err = outcome("report", str(recording), "--format", "json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (0, "", "specmine.report/1")
    assert [each["label"] for each in document["builds"]] == ["b", "a", "c"]
    steps = {
        each["function"]: [(s["base"], s["new"], s["verdict"]) for s in each["steps"]] for each in document["functions"]
    }
    assert steps == {
        "f<b>": [("b", "a", "equivalent"), ("a", "c", "worse")],
        "g": [("b", "a", "equivalent"), ("a", "c", "equivalent")],
    }
    drifts = [(each["drift"]["base"], each["drift"]["new"], each["drift"]["verdict"]) for each in document["functions"]]
    assert drifts == [("b", "c", "worse"), ("b", "c", "equivalent")]
    assert document["functions"][0]["steps"][1]["change"]["kinds"] == ["class-moved"]
    assert document["machine_code"] == [], "recorded durations have no code"
    third = document["functions"][0]["builds"][2]
    assert (third["within"]["lifetimes_in_order"], third["within"]["lifetimes_dependent"]) == (5, 0)
    assert 0.8 < third["within"]["impact_factor"] < 1.4
    assert len(third["within"]["autocorrelation"]) == 10
    assert third["interval_seconds"][0] < third["seconds"] < third["interval_seconds"][1]


def test_the_page_is_whole_and_safe(recording: Path, tmp_path: Path, outcome: Outcome) -> None:
    """Every tag is closed, names are text, nothing is loaded from elsewhere."""
    target = tmp_path / "report.html"
    assert outcome("report", str(recording), "--output", str(target)) == (0, "", "")
    page = target.read_text()
    assert "f&lt;b&gt;" in page
    assert "<b>" not in page
    assert not re.search(r"https?://|<script|<link|<img", page)
    assert re.search(r'<td class="slow">\+(19|20|21)\.\d\d %</td>', page)
    assert page.count("<svg") == page.count("</svg>") >= 8
    assert page.count("<figure>") == page.count("<figcaption") == 8  # of each function: calls, runs, their order, lag

    class Balance(HTMLParser):
        """Counts open elements."""

        open_tags: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: object) -> None:
            """Open one."""
            if tag not in ("meta",):
                self.open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            """Close one."""
            assert self.open_tags.pop() == tag

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            """Ignore what closes itself."""

    parser = Balance()
    parser.feed(page)
    assert parser.open_tags == []
    numbers = [float(each) for each in re.findall(r'c[xy]="([^"%]+)%"', page)]
    assert numbers
    assert all(0 <= each <= 100 for each in numbers)


def test_one_build_is_not_enough(recording: Path, tmp_path: Path, outcome: Outcome) -> None:
    """A report of one build is written, with exit 3; a function that is not there is a wrong name."""
    path = tmp_path / "one.csv"
    path.write_text("\n".join(line for line in recording.read_text().splitlines() if line[:2] in ("bu", "b,")) + "\n")
    code, out, err = outcome("report", str(path))
    assert code == 3
    assert "<h1>b: 2 functions in 5 runs</h1>" in out
    assert "there is nothing to compare" in out
    assert re.search(r"Half of its calls take at most 2\d(\.\d)?\s*µs, 99 of 100 at most 2\d", out)
    assert out.count("<circle") == 10, "a dot a run of each function"
    assert err.count("\n") == 1
    assert "only the build b" in err
    assert outcome("report", str(recording), "--function", "nobody")[0] == 2
    assert outcome("report", str(recording), "--function", "g", "--format", "json")[0] == 0


def test_the_worst_comes_first(recording: Path, outcome: Outcome) -> None:
    """The page begins with the newest step in words; the function that became slower stands above the others."""
    page = outcome("report", str(recording))[1]
    assert "<h1>c against a: 1 slower, 1 the same</h1>" in page
    rows = re.findall(
        r'<th scope="row"><a class="f"[^>]*>([^<]*)</a></th>.*?<span class="(\w*)">([\d.]+)×</span>', page
    )
    assert [each[:2] for each in rows] == [("f&lt;b&gt;", "slow"), ("g", "")]
    assert 1.18 < float(rows[0][2]) < 1.22
    assert page.index("Slower · 1") < page.index("The same · 1")
    assert '<p class="lead">f&lt;b&gt; is 1.2× slower.' in page
    assert "did not take turns" in page, "all runs of c came after those of a"


def test_numbers_are_explained_where_they_stand(recording: Path, outcome: Outcome) -> None:
    """Each function says in words what its ratio is of, how sure it is and on how many runs it rests."""
    page = outcome("report", str(recording))[1].replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(
        r"<p>Median of all its calls: 2\d µs in a, 2\d µs in c\. That is 1\.\d\d×; with 95 % confidence the true "
        r"ratio is "
        r"1\.\d\d–1\.\d\d, as 5 runs against 5 show\.</p>",
        page,
    )
    assert re.search(r"<dd>2 builds compared: 10 runs, [\d,]+ calls timed</dd>", page)
    assert f"<code>specmine report {recording}</code>" in page
    assert re.search(r"a in grey, c in blue", page)


def test_classes_and_runs_left_out_are_in_the_report(tmp_path: Path, outcome: Outcome) -> None:
    """A slow class that became slower decides; a run in which the function was not called is listed with the reason."""
    rng = np.random.default_rng(2)
    lines = ["build,lifetime,duration_ns,function"]
    for build, slow in (("old", 1.0), ("new", 1.5)):
        for number in range(6):
            durations = np.where(rng.random(300) < 0.3, 160e3 * slow, 10e3) * rng.lognormal(0, 0.1, 300)
            lines += [f"{build},{number},{value:.0f},load" for value in durations * np.exp(rng.normal(0, 0.01))]
    lines += ["new,idle,1000,other"] * 10
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    document = json.loads(outcome("report", str(path), "--format", "json")[1])
    (step,) = document["functions"][0]["steps"]
    assert step["verdict"] == "worse"
    decided = step["behaviours"][step["decided_by"]]
    assert (decided["kind"], decided["class"]["upper_seconds"]) == ("class", None)
    assert [(each["lifetime"], each["reason"]["code"]) for each in step["lifetimes_left_out"]] == [
        ("idle", "not-timed")
    ]
    page = outcome("report", str(path))[1]
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r'load</a> <span class="sub">over 4\d µs</span></th>', page)
    assert re.search(r"<p>Median of the calls over 4\d µs: 1\d\d µs in old, 2\d\d µs in new", page)
    assert "Runs left out (1)" in page
    assert "<td>idle</td><td>no call of it was timed</td><td>load</td>" in page


def test_a_function_that_takes_no_time_is_on_the_page(tmp_path: Path, outcome: Outcome) -> None:
    """A median of 0 in every build has no interval to draw; the rest of the page is written."""
    path = tmp_path / "d.csv"
    rows = [f"{build},{number},0,f" for build in ("old", "new") for number in range(4) for _ in range(50)]
    path.write_text("\n".join(["build,lifetime,duration_ns,function", *rows]) + "\n")
    code, out, err = outcome("report", str(path))
    assert (code, err) == (0, "")
    assert "its median is 0 in some lifetime" in out
    assert out.count("<figure>") == 3, "its calls, its lifetimes in their order, and the lag plot"


def by_caller(path: Path, builds: dict[str, float]) -> Path:
    """Write six runs a build of a function that is fast for one caller, and slow for another one, by a factor."""
    rng = np.random.default_rng(3)
    lines = ["build,lifetime,duration_ns,function,path"]
    for build, slow in builds.items():
        for number in range(6):
            run = np.exp(rng.normal(0, 0.01))
            for caller, centre in (("cache_get", 10e3), ("db_get", 160e3 * slow)):
                durations = run * centre * rng.lognormal(0, 0.1, 200)
                lines += [f"{build},{number},{value:.0f},load,main;{caller};load" for value in durations]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_behaviours_are_drawn_each(tmp_path: Path, outcome: Outcome) -> None:
    """Two builds have the old one behind each strip; of one build the behaviours are mined, and drawn as well."""
    two = outcome("report", str(by_caller(tmp_path / "two.csv", {"old": 1.0, "new": 1.5})))[1]
    told = two.replace("\N{NO-BREAK SPACE}", " ")
    assert "<title" in told
    assert "Durations of load by behaviour" in told
    assert re.findall(r"(if (?:not )?\w+-&gt;load): (\d+) % of the calls", told) == [
        ("if cache_get-&gt;load", "50"), ("if not cache_get-&gt;load", "50")]  # fmt: skip
    behaviours = told[told.index("Durations of load by behaviour") :]
    assert behaviours.count('class="usual"') >= 2
    medians = [float(each) for each in re.findall(r">median (\d+(?:\.\d+)?) µs<", behaviours)]
    assert medians[0] == pytest.approx(10, rel=0.1)
    assert medians[1] == pytest.approx(240, rel=0.1)
    one = outcome("report", str(by_caller(tmp_path / "one.csv", {"only": 1.0})))[1]
    assert "Durations of load by behaviour" in one
    assert one.count('class="steps steps-') == 2


def test_figures_say_whose_they_are_and_what_is_asserted(tmp_path: Path, outcome: Outcome) -> None:
    """Program, build, host and date stand below each figure; the range that the store states is drawn in it."""
    path = two_builds(tmp_path / "s.db", 1.5)
    level = {"p50": {"seconds": 60e-6, "low": 55e-6, "high": 66e-6}}
    own = {"function": "parse", "module": "app", "program": "shop", "in_program": True, "build_id": "bbbb",
           "behaviours": [], "quantiles": level}  # fmt: skip
    with open_store(path) as store:
        store.write(Writes((Document(name="specification", document={"functions": [own]}),)), 10**18)
    page = outcome("report", str(path))[1].replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r"Program shop, builds aaaa and bbbb, host here, 9 Sep 2001", page)
    assert "the field is the asserted range of the median" in page
    assert 'class="band"' in page
    named = re.findall(r'<h2 id="[^"]*"><span class="f">([^<]*)</span>', page)
    assert sorted(named) == ["aside (app)", "handle (app)", "parse (shop)"], "without a specification: its file"
