"""``specmine report`` shows every build beside the one before, on a page that needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

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
    assert re.search(r"<td class='worse'>\+(19|20|21)\.\d\d %</td>", page)
    assert page.count("<svg") == page.count("</svg>") == 6  # of each function: intervals, lifetimes, lag plot

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
    numbers = [float(each) for each in re.findall(r"c[xy]='([^']+)'", page)]
    assert numbers
    assert all(0 <= each <= 640 for each in numbers)


def test_one_build_is_not_enough(recording: Path, tmp_path: Path, outcome: Outcome) -> None:
    """A report of one build is written, with exit 3; a function that is not there is exit 3 too."""
    path = tmp_path / "one.csv"
    path.write_text("\n".join(line for line in recording.read_text().splitlines() if line[:2] in ("bu", "b,")) + "\n")
    code, out, _ = outcome("report", str(path))
    assert code == 3
    assert "Only one build" in out
    assert outcome("report", str(recording), "--function", "nobody")[0] == 3
    assert outcome("report", str(recording), "--function", "g", "--format", "json")[0] == 0


def test_a_function_that_takes_no_time_is_on_the_page(tmp_path: Path, outcome: Outcome) -> None:
    """A median of 0 in every build has no interval to draw; the rest of the page is written."""
    path = tmp_path / "d.csv"
    rows = [f"{build},{number},0,f" for build in ("old", "new") for number in range(4) for _ in range(50)]
    path.write_text("\n".join(["build,lifetime,duration_ns,function", *rows]) + "\n")
    code, out, err = outcome("report", str(path))
    assert (code, err) == (0, "")
    assert "its median is 0 in some lifetime" in out
    assert out.count("<svg") == 2, "its lifetimes in their order, and the lag plot"
