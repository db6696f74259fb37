"""Points on plain axes show the range of most values."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from specmine.analysis.charts.lag import lag_plot, sequence, shortest_range


def test_the_shortest_range_of_most_values() -> None:
    """950 values around 100 and 50 far above: the range is that of the 950."""
    rng = np.random.default_rng(2)
    near = rng.normal(100, 1, 950)
    low, high = shortest_range([*near, *rng.uniform(1e3, 1e5, 50)])
    assert (low, high) == (near.min(), near.max())
    assert shortest_range([5.0]) == (5.0, 5.0)


def test_a_call_stands_over_the_one_before_it() -> None:
    """Calls that take turns lie off the diagonal; a long one is drawn at the edge."""
    figure = ElementTree.fromstring(lag_plot([1e-6, 2e-6] * 20 + [1.0], "<run>"))
    places = {(each.attrib["cx"], each.attrib["cy"]) for each in figure.iter("circle")}
    assert places == {("0.0%", "0.0%"), ("100.0%", "100.0%"), ("100.0%", "0.0%")}
    assert lag_plot([1.0], "run") == ""


def test_runs_stand_in_their_order() -> None:
    """The larger value is higher, and a line divides builds."""
    figure = ElementTree.fromstring(sequence([1e-6, 1e-6, 3e-6], [2], "runs"))
    xs, ys = zip(
        *((float(each.attrib["cx"][:-1]), float(each.attrib["cy"])) for each in figure.iter("circle")), strict=True
    )
    assert list(xs) == sorted(xs)
    assert ys[2] < ys[0] == ys[1]
    (line,) = figure.iter("line")
    assert xs[1] < float(line.attrib["x1"][:-1]) < xs[2]
    assert sequence([], [], "runs") == ""
