"""The strips over time: where a point lies, what is marked, what is left out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from specmine.analysis.charts.trend import Change, Point, Start, Strip, trend

BEGIN = datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
END = BEGIN + timedelta(hours=2)
MEDIAN = Strip(key="p50", name="Median", normal=(9e-6, 11e-6), normal_text="9.0-11.0 us")
TAIL = Strip(key="p99", name="p99")


def points(*minutes: int, slow_from: int = 1000) -> list[Point]:
    """Return a point at each of some minutes."""
    return [
        Point(at=BEGIN + timedelta(minutes=minute), seconds={"p50": 20e-6 if minute >= slow_from else 10e-6})
        for minute in minutes
    ]


def drawn(text: str) -> ElementTree.Element:
    """Return the figure; it must be XML."""
    return ElementTree.fromstring(text)


def test_a_line_goes_through_the_points_and_ends_where_nothing_was_seen() -> None:
    """Two runs of points twenty minutes apart are two lines; longer durations lie higher."""
    figure = drawn(trend(points(*range(30), *range(50, 120), slow_from=90), [MEDIAN], (), (), (BEGIN, END), "t"))
    (path,) = figure.iter("path")
    line = path.attrib["d"]
    assert line.count("M") == 2
    places = [tuple(map(float, each.split())) for each in re.findall(r"[\d.]+ [\d.]+", line)]
    assert [round(x) for x, _ in places[:2]] == [0, 8]
    assert places[-1][1] < places[0][1]


def test_a_point_alone_is_a_dot() -> None:
    """It can be seen though no line leads to it; points that a line joins have none."""
    figure = drawn(trend(points(0, 40, *range(80, 100)), [MEDIAN], (), (), (BEGIN, END), "t"))
    _, dots = figure.iter("path")
    assert "dot" in dots.attrib["class"].split()
    assert [round(float(x)) for x in re.findall(r"M([\d.]+)", dots.attrib["d"])] == [0, 333]


def test_the_normal_range_lies_around_the_points_that_keep_it() -> None:
    figure = drawn(trend(points(*range(120)), [MEDIAN], (), (), (BEGIN, END), "t"))
    (band,) = [each for each in figure.iter("rect") if each.attrib["class"] == "band"]
    (path,) = figure.iter("path")
    height = float(path.attrib["d"][1:].split("h")[0].split()[1])
    assert float(band.attrib["y"]) < height < float(band.attrib["y"]) + float(band.attrib["height"])


def test_changes_and_starts_are_where_they_happened() -> None:
    """A violation of the last half hour covers the last quarter; the words of two starts never meet."""
    change = Change(begin=BEGIN + timedelta(minutes=90), end=END, kind="slow")
    starts = [Start(at=BEGIN + timedelta(minutes=minute), text="app build ab started") for minute in (88, 89)]
    figure = drawn(trend(points(*range(120)), [MEDIAN], starts, [change], (BEGIN, END), "t"))
    (wash,) = [each for each in figure.iter("rect") if each.attrib["class"] == "wash-slow"]
    assert (wash.attrib["x"], wash.attrib["width"]) == ("75.00%", "25.00%")
    assert len([each for each in figure.iter("line") if each.attrib["class"] == "cut"]) == 2
    assert sum("started" in "".join(each.itertext()) for each in figure.iter("text")) == 1


def test_a_quantile_that_no_point_has_gets_no_strip() -> None:
    text = trend(points(1, 2), [MEDIAN, TAIL], (), (), (BEGIN, END), "t")
    assert "Median" in text
    assert "p99" not in text
    assert trend((), [MEDIAN], (), (), (BEGIN, END), "t") == ""


def test_names_are_text() -> None:
    start = Start(at=BEGIN + timedelta(minutes=30), text="<script>")
    text = trend(points(1), [MEDIAN], [start], (), (BEGIN, END), "<b>")
    drawn(text)
    assert "<script>" not in text
    assert "<b>" not in text
