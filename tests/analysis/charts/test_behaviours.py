"""The strips of behaviours: one each, in its colour, with its own marks and normal range."""

from __future__ import annotations

import re

import pytest

from specmine.analysis.charts.behaviours import MOST, Strip, behaviour_strips
from specmine.analysis.charts.marks import Marks

FAST = [(10e-6, 20e-6, 300.0), (20e-6, 40e-6, 700.0)]
SLOW = [(100e-6, 200e-6, 50.0)]


def strip(name: str, bins: list[tuple[float, float, float]], **more: object) -> Strip:
    """Return a strip with a median."""
    values: dict[str, object] = {"share": 0.5, "marks": Marks(median=bins[0][0] if bins else None), **more}
    return Strip(name=name, bins=bins, **values)  # type: ignore[arg-type]


def test_each_behaviour_has_a_strip_in_its_colour() -> None:
    """Names are text, shares are told, and the second strip stands below the first."""
    drawn = behaviour_strips([strip("if <a>->z", FAST, share=0.7), strip("if b->z", SLOW, share=0.3)], "t")
    assert "if &lt;a&gt;->z" in drawn or "if &lt;a&gt;-&gt;z" in drawn
    told = drawn.replace("\N{NO-BREAK SPACE}", " ")
    assert ": 70 % of the calls" in told
    assert ": 30 % of the calls" in told
    tops = {kind: float(top) for top, kind in re.findall(r'y="(\d+)" width="10" [^>]*class="behaviour-(\d)"', drawn)}
    assert sorted(tops) == ["0", "1"]
    assert tops["0"] < tops["1"]
    assert drawn.count('class="steps steps-0"') == drawn.count('class="steps steps-1"') == 1
    assert told.count(">median ") == 2
    height = float(re.search(r'<svg height="(\d+)"', drawn)[1])  # type: ignore[index]
    assert all(float(each) <= height for each in re.findall(r' y2?="(\d+)"', drawn))


def test_one_behaviour_alone_is_not_drawn() -> None:
    """It would repeat the picture of all calls; a behaviour without calls has no strip but keeps its colour."""
    assert behaviour_strips([strip("a", FAST)], "t") == ""
    assert behaviour_strips([strip("a", FAST), strip("b", [])], "t") == ""
    drawn = behaviour_strips([strip("a", FAST), strip("b", []), strip("c", SLOW)], "t")
    assert "steps-2" in drawn
    assert "steps-1" not in drawn
    many = behaviour_strips([strip(str(at), FAST) for at in range(MOST + 3)], "t")
    assert many.count('class="steps steps-') == MOST


def test_the_axis_holds_all_that_is_marked() -> None:
    """The normal range may lie beside all calls of now; every mark stays on the axis."""
    marks = Marks(median=15e-6, tail=38e-6, normal=(1e-6, 2e-6), borders=(60e-6,))
    drawn = behaviour_strips([strip("a", FAST, marks=marks, before=SLOW), strip("b", SLOW)], "t")
    places = [float(each) for each in re.findall(r' x1?="([\d.]+)%"', drawn)]
    assert all(0 <= each <= 100 for each in places)
    (left, width), *_ = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%"[^>]*class="band"', drawn)
    assert float(left) < 10
    assert float(left) + float(width) < float(re.findall(r'x1="([\d.]+)%"[^>]*class="mark"', drawn)[0])
    assert drawn.count('class="cut"') == 1


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e3])
def test_heights_are_shares_of_the_behaviours_own_calls(scale: float) -> None:
    """A rare behaviour is drawn as high as a frequent one, whatever the number of its calls."""
    rare = [(low, high, calls * scale) for low, high, calls in FAST]
    path = re.findall(
        r'class="steps steps-\d" d="([^"]*)"', behaviour_strips([strip("a", FAST), strip("b", rare)], "t")
    )
    assert path[0] == path[1] != ""
