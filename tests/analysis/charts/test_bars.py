"""A ratio lies where its axis says."""

from __future__ import annotations

from xml.etree import ElementTree

from specmine.analysis.charts.bars import ratio_axis, ratio_bar


def place(ratio: float) -> float:
    """Return where the dot of a ratio is, per cent."""
    (dot,) = ElementTree.fromstring(ratio_bar(ratio, (0.9 * ratio, 1.1 * ratio), 0.02, "slow")).iter("circle")
    return float(dot.attrib["cx"][:-1])


def test_twice_and_half_lie_as_far_from_no_change() -> None:
    """The axis is logarithmic; beyond its ends the dot stands at the end."""
    assert place(2.0) - place(1.0) == place(1.0) - place(0.5) == 25.0
    assert (place(100.0), place(0.001)) == (100.0, 0.0)


def test_the_head_labels_the_same_places() -> None:
    labels = {
        str(each.text): float(each.attrib["x"][:-1]) for each in ElementTree.fromstring(ratio_axis()).iter("text")
    }
    assert (labels["½×"], labels["same"], labels["2×"]) == (place(0.5), place(1.0), place(2.0))


def test_the_strip_of_what_counts_as_the_same_holds_the_tolerance() -> None:
    (strip,) = ElementTree.fromstring(ratio_bar(1.0, None, 0.5, "past")).iter("rect")
    low = float(strip.attrib["x"][:-1])
    assert abs(low - place(1 / 1.5)) < 0.01
    assert abs(low + float(strip.attrib["width"][:-1]) - place(1.5)) < 0.01
