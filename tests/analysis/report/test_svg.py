"""Plots show the range of most values."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from specmine.analysis.report.svg import COLOURS, ratios_svg, shortest_range
from specmine.mining.regression.comparison import Change


def test_the_shortest_range_of_most_values() -> None:
    """950 values around 100 and 50 far above: the range is that of the 950."""
    rng = np.random.default_rng(2)
    near = rng.normal(100, 1, 950)
    low, high = shortest_range([*near, *rng.uniform(1e3, 1e5, 50)])
    assert (low, high) == (near.min(), near.max())
    assert shortest_range([5.0]) == (5.0, 5.0)


def test_ratios_lie_where_their_axis_says() -> None:
    """Twice as long is right of no change, half as long as far left; a part without an interval is left out."""
    part = {"ratio": 1.0, "interval": [0.99, 1.01], "verdict": "equivalent"}
    step = {
        **part,
        "verdict_of_summary": "equivalent",
        "behaviours": [
            {"ratio": 2.0, "interval": [1.9, 2.1], "verdict": "worse"},
            {"ratio": 0.5, "interval": [0.4, 0.6], "verdict": "better"},
            {"ratio": None, "interval": None, "verdict": "undecided"},
        ],
    }
    drawing = ratios_svg(step, ["all calls", "<slow>", "fast", "nothing"], 0.02)
    same, slow, fast = (
        (float(each.attrib["cx"]), each.attrib["fill"]) for each in ElementTree.fromstring(drawing).iter("circle")
    )
    assert abs((slow[0] - same[0]) - (same[0] - fast[0])) < 0.2
    assert slow[0] > same[0]
    assert (slow[1], fast[1]) == (COLOURS[Change.WORSE], COLOURS[Change.BETTER])
    assert "nothing" not in drawing
    assert ">1×<" in drawing
    assert ratios_svg({**step, "ratio": None, "behaviours": []}, ["all calls"], 0.02) == ""
