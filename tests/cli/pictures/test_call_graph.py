"""Call graphs are laid out so that boxes stand apart and deciding edges are drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.cli.pictures.call_graph import MOST_FUNCTIONS, drawing


def path(text: str, number: int = 1) -> dict[str, Any]:
    """Return the path of letters."""
    return {"frames": list(text), "complete": True, "calls": number}


def test_chains_are_one_box_unless_an_edge_decides() -> None:
    """main and a know only each other; a deciding edge between two stays visible."""
    paths = [path("mabcz", 7), path("mabz", 5), path("macz", 3)]
    boxes = {box.lines: box for box in drawing(paths, {("b", "c")}).boxes}
    assert set(boxes) == {("m", "a", "15"), ("b", "12"), ("c", "10"), ("z", "15")}
    apart = drawing(paths, {("m", "a")})
    assert ("m", "15") in {box.lines for box in apart.boxes}
    assert [line.decides for line in apart.lines].count(True) == 1


def test_a_graph_too_large_shows_the_busiest_and_the_deciding() -> None:
    """The number of functions is bounded, and an edge that decides is among them however rare."""
    paths = [{"frames": ["m", f"f{n}", f"g{n}", "z"], "calls": 1000 - n} for n in range(200)]
    got = drawing(paths, {("f150", "g150")})
    assert len(got.boxes) <= MOST_FUNCTIONS
    assert (got.paths, any(line.decides for line in got.lines)) == (200, True)
    assert 2 <= got.shown < 200


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text("abcdez", min_size=1, max_size=9), st.integers(0, 99)), min_size=1, max_size=12))
def test_no_box_lies_on_another(some: list[tuple[str, int]]) -> None:
    """Whatever the paths, recursion included: boxes keep apart, every edge has both its ends."""
    got = drawing([path(text, number) for text, number in some], set())
    assert all(-1e-6 <= box.x - box.width / 2 <= box.x + box.width / 2 <= got.width + 1e-6 for box in got.boxes)
    for layer in range(got.layers):
        row = sorted((box for box in got.boxes if box.layer == layer), key=lambda box: box.x)
        assert all(a.x + a.width / 2 < b.x - b.width / 2 for a, b in pairwise(row))
    ends = {(box.x, box.layer) for box in got.boxes}
    assert all({line.points[0], line.points[-1]} <= ends for line in got.lines)
