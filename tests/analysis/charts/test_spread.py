"""The tree of the spread as a drawing says what the terminal says: same parts, same numbers, same order."""

from __future__ import annotations

import re
from typing import Any

from starlette.testclient import TestClient

from specmine.analysis.charts.spread import ROW, spread_tree_chart
from specmine.analysis.wording.spread_tree import branches, signed
from specmine.cli.text.inside import spread_tree
from specmine.web.app import make_app
from tests.support.web_documents import HOSTILE, SampleSource, sample


def spread(*parts: tuple[str, float]) -> dict[str, Any]:
    """Return what the spread of a function consists of: callees and their shares; '' is its own code."""
    return {
        "calls": 100, "mean_seconds": 1e-3, "deviation_seconds": 1e-4, "excess_seconds": None, "not_timed": [],
        "parts": [
            {"what": "callee" if name else "running", "variance": share, "excess": None, "mean_seconds": 1e-4}
            | ({"callee": name, "module": "app"} if name else {})
            for name, share in parts
        ],
    }  # fmt: skip


TOP = {"function": "top", "module": "app", "spread": spread(("lock", 0.8), ("parse", 0.25), ("", -0.05))}
LOCK = {"function": "lock", "module": "app", "spread": spread(("wait", 0.97), ("", 0.03))}


def test_terminal_and_drawing_say_the_same() -> None:
    """Five parts on two levels; a share that is negative is drawn without filling."""
    tree = branches(TOP, [TOP, LOCK])
    assert [(each.depth, each.row.name) for each in tree] == [
        (1, "lock"), (2, "wait"), (2, "own code"), (1, "parse"), (1, "own code"),
    ]  # fmt: skip
    drawn = spread_tree_chart("top", tree)
    assert f'height="{ROW * 5}"' in drawn
    widths = [float(each) for each in re.findall(r'<rect[^>]* width="([\d.]+)%"', drawn)]
    assert [round(each / widths[0], 2) for each in widths] == [1.0, 1.21, 0.04, 0.31, 0.06]
    lines = spread_tree(TOP, [TOP, LOCK], 80)
    for each in tree:
        assert signed(each.row.variance) in drawn
        assert any(each.row.name in line and signed(each.row.variance) in line for line in lines)
    assert drawn.count("trough") == 2
    assert spread_tree_chart("top", []) == ""


def test_the_page_has_the_tree() -> None:
    """The page draws it below the shares, with names escaped; without a spread there is no heading."""
    documents = sample()
    entry = next(each for each in documents.functions if len(each.get("classes") or []) == 2)
    client = TestClient(make_app(SampleSource(documents), "127.0.0.1"), base_url="http://127.0.0.1")
    address = {"name": str(entry["function"]), "module": str(entry["module"])}
    assert "What its spread consists of" not in client.get("/function", params=address).text
    entry["spread"] = spread((HOSTILE, 1.0))  # type: ignore[index]
    text = client.get("/function", params=address).text
    assert "What its spread consists of" in text
    assert HOSTILE not in text
