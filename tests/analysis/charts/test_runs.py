"""A dot a run, a row a build."""

from __future__ import annotations

from xml.etree import ElementTree

from specmine.analysis.charts.runs import BuildRuns, runs

OLD = BuildRuns(name="v1 <b>", seconds=[70e-6, 80e-6, 0.0])
NEW = BuildRuns(name="v2", seconds=[160e-6] * 2, newest=True)


def test_each_run_is_a_dot_on_one_axis() -> None:
    """Slower runs lie to the right; a run without a duration has no dot; the newest build is coloured."""
    figure = ElementTree.fromstring(runs([NEW, OLD], "runs"))
    dots = [(each.attrib["class"], float(each.attrib["cx"][:-1])) for each in figure.iter("circle")]
    assert [kind for kind, _ in dots] == ["run-new"] * 2 + ["run"] * 2
    assert min(x for kind, x in dots if kind == "run-new") > max(x for kind, x in dots if kind == "run")
    said = ["".join(each.itertext()) for each in figure.iter("text")]
    assert "v2, 2 runs" in said
    assert "v1 <b>, 2 runs" in said
    assert any("74.8" in each for each in said), "the geometric mean of 70 and 80"


def test_nothing_is_drawn_of_nothing() -> None:
    assert runs([BuildRuns(name="v1", seconds=[0.0])], "runs") == ""
    assert runs([], "runs") == ""
