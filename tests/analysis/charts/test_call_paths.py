"""The widths of frames are the shares of their calls."""

from __future__ import annotations

import re
from typing import Any

import pytest

from specmine.analysis.charts.call_paths import call_paths


def path(frames: str, calls: int, behaviour: int | None, *, complete: bool = True) -> dict[str, Any]:
    """Return a path as a document has it."""
    return {"frames": frames.split(), "calls": calls, "behaviour": behaviour, "complete": complete}


def test_widths_are_shares_and_colours_behaviours() -> None:
    entry = {
        "function": "z",
        "paths": [
            path("main a z", 700, 0),
            path("main b z", 300, 1),
            path("b z", 9000, None, complete=False),
        ],
    }
    picture = call_paths(entry)
    frames = re.findall(r'width="([\d.]+)%" height="24" class="frame"><title>(\w+): ([\d,]+) calls', picture)
    assert [(name, float(width)) for width, name, _ in frames[1:]] == [
        ("a", 70.0),
        ("z", 70.0),
        ("b", 30.0),
        ("z", 30.0),
    ]
    assert picture.count("behaviour-0") == 2
    assert picture.count("behaviour-1") == 2
    assert "its 1,000 calls" in picture


@pytest.mark.parametrize("paths", [[], [path("a z", 5, 0, complete=False)]])
def test_without_complete_paths_there_is_no_picture(paths: list[dict[str, Any]]) -> None:
    assert call_paths({"function": "z", "paths": paths}) == ""


def test_a_thousand_frames_are_bounded() -> None:
    deep = path(" ".join(f"f{number}" for number in range(1000)), 5, 0)
    wide = [path(f"main g{number} h{number}", 1, 0) for number in range(1000)]
    assert len(call_paths({"function": "z", "paths": [deep, *wide]})) < 20_000
