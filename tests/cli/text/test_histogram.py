"""Distributions and path trees drawn in text."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.analysis.histogram_bins import histogram_bins
from specmine.cli.text.histogram import MOST_ROWS, distribution
from specmine.model.buckets import BUCKET_EDGES, BUCKETS
from specmine.model.histogram import Histogram
from specmine.model.json_codec import encode


def _written(durations_ns: list[int]) -> list[list[float]]:
    """Return the histogram as a document has it, by way of the daemon's own encoding."""
    written: list[list[float]] = json.loads(json.dumps(encode(Histogram.from_durations(durations_ns))))
    return written


def test_every_bucket_is_drawn_where_it_belongs() -> None:
    """A bucket of the document stands at its edges; one that cannot be is left out."""
    edges = BUCKET_EDGES
    bins = histogram_bins(_written([int(np.ceil(edge)) for edge in edges[:-1]]))
    assert np.allclose([low for low, _, _ in bins], edges[:-1] * 1e-9, rtol=1e-12)
    assert histogram_bins([[-1, 5], [BUCKETS, 5]]) == []


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(40, 10**10), min_size=1, max_size=200),
    st.lists(st.floats(1e-8, 10.0), max_size=4),
    st.integers(50, 200),
)
def test_drawings_count_every_call_once_and_fit(durations: list[int], borders: list[float], columns: int) -> None:
    """The numbers beside the bars add up to all calls, whatever the borders, and lines fit."""
    bins = histogram_bins(_written(durations))
    lines = distribution(bins, borders, columns, ascii_only=True)
    bars = [line for line in lines if "#" in line]
    assert sum(int(line.split("#")[-1].split()[0].replace(",", "")) for line in bars) == len(durations)
    assert max(map(len, lines)) <= columns
    assert len(lines) <= MOST_ROWS + 2 * len(borders) + 3


def test_a_border_stands_between_the_bars() -> None:
    """What is faster stands above the border's line, with its share."""
    bins = histogram_bins(_written([20_000] * 7 + [100_000] * 3))
    lines = distribution(bins, [6.1e-5], 80, ascii_only=False)
    place = next(at for at, line in enumerate(lines) if "border 61 us, 70 % shorter" in line)
    assert sum("█" in line for line in lines[:place]) == 1
    assert sum("█" in line for line in lines[place:]) == 1


def test_the_probes_cost_is_taken_off() -> None:
    """Durations are drawn less what the probes add."""
    (low, high, calls), = histogram_bins(_written([10_000]), bias_s=1e-6)  # fmt: skip
    assert (low < 9e-6 < high, calls) == (True, 1)
    assert distribution([], [], 80, ascii_only=False) == []
