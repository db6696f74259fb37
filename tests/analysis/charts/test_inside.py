"""The page of a function shows what happened inside its calls, class by class."""

from __future__ import annotations

from starlette.testclient import TestClient

from specmine.analysis.charts.inside import inside_bar
from specmine.analysis.wording.inside import rows
from specmine.web.app import make_app
from tests.support.web_documents import HOSTILE, SampleSource, sample

SLOW = {
    "inside": [
        {"callee": HOSTILE, "module": "libc.so.6", "share": 0.81, "calls_per_call": 2.0, "mean_seconds": 8.1e-4,
         "waiting": 0.0, "blocked": 0.96},
    ],
    "own": {"share": 0.19, "waiting": 0.0, "blocked": 0.0},
    "inside_calls": 1234,
    "inside_mean_seconds": 1e-3,
    "not_timed": [{"callee": "parse", "module": "shop"}],
}  # fmt: skip


def test_the_page_has_a_bar_and_a_row_for_each_part() -> None:
    """Names are escaped; a class without calls has no bar; callees that were not timed are named."""
    documents = sample()
    entry = next(each for each in documents.functions if len(each.get("classes") or []) == 2)
    entry["classes"][1].update(SLOW)
    client = TestClient(make_app(SampleSource(documents), "127.0.0.1"), base_url="http://127.0.0.1")
    text = client.get("/function", params={"name": entry["function"], "module": entry["module"]}).text
    section = text[text.index("Inside a call</h2>") : text.index("The assertion</h2>")]
    assert section.count('aria-label="Inside a call that takes') == 1
    assert "810\N{NO-BREAK SPACE}µs" in section
    assert "81\N{NO-BREAK SPACE}%" in section
    assert "2 calls, 96\N{NO-BREAK SPACE}% of it blocked" in section
    assert "parse (shop)" in section
    assert HOSTILE not in text


def test_widths_are_shares() -> None:
    """Own code has no filling."""
    picture = inside_bar("over 60 us", rows(SLOW))
    assert 'width="81.00%"' in picture
    assert 'x="81.00%"' in picture
    assert picture.count("trough") == 1
    assert inside_bar("x", []) == ""
