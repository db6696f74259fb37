"""Distributions and path trees drawn in text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.analysis.documents import title
from specmine.cli.text.assertions import assertion
from specmine.cli.text.call_tree import deciding_edges, tree
from specmine.cli.text.histogram import MOST_ROWS, distribution, histogram_bins
from specmine.model.buckets import BUCKET_EDGES, BUCKETS
from specmine.model.histogram import histogram_of
from specmine.model.json_codec import encode


def _written(durations_ns: list[int]) -> list[list[float]]:
    """Return the histogram as a document has it, by way of the daemon's own encoding."""
    written: list[list[float]] = json.loads(json.dumps(encode(histogram_of(durations_ns))))
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


PATHS = [
    {"frames": ["main", "a", "b", "c", "z"], "complete": True, "calls": 10, "behaviour": 0},
    {"frames": ["main", "a", "b", "z"], "complete": True, "calls": 20, "behaviour": 1},
    {"frames": ["b", "z"], "complete": False, "calls": 1, "behaviour": None},
]


def test_paths_merge_and_deciding_edges_stand_out() -> None:
    """Common beginnings are drawn once, calls add up, incomplete paths stand apart."""
    formula = [[{"caller": "b (app)", "callee": "c", "present": True}]]
    lines = tree(PATHS, deciding_edges([{"formula": formula}, {"formula": [[]]}]), 80)
    assert lines == [
        "  main -> a -> b   30",
        "    -> z   20  behaviour 2",
        "    => c -> z   10  behaviour 1",
        "  (incomplete: not followed to the thread's start)",
        "  b -> z   1  no behaviour",
    ]


def test_a_path_that_ends_inside_another_is_not_lost() -> None:
    """A path that is the beginning of another has its own mark."""
    paths = [
        {"frames": ["main", "z"], "complete": True, "calls": 5, "behaviour": 0},
        {"frames": ["main", "z", "z2", "z"], "complete": True, "calls": 7, "behaviour": 1},
    ]
    assert tree(paths, frozenset(), 80) == [
        "  main -> z   12  behaviour 1",
        "    -> z2 -> z   7  behaviour 2",
    ]


def test_a_path_of_few_calls_says_so() -> None:
    """Where it is not sure which behaviour it has, that is shown."""
    paths = [
        {"frames": ["main", "a", "z"], "complete": True, "calls": 900, "behaviour": 0, "certainty": 1.0},
        {"frames": ["main", "b", "z"], "complete": True, "calls": 3, "behaviour": 1, "certainty": 0.52},
    ]
    assert tree(paths, frozenset(), 80) == [
        "  main   903",
        "    -> a -> z   900  behaviour 1",
        "    -> b -> z   3  behaviour 2 (52% sure)",
    ]


def test_deep_trees_fit() -> None:
    """Sixty levels of forks stay within the width and lose no frame."""
    paths = [
        {"frames": [f"f{at}" for at in range(depth)] + ["z"], "complete": True, "calls": 1, "behaviour": 0}
        for depth in range(1, 60)
    ]
    lines = tree(paths, frozenset(), 80)
    assert max(map(len, lines)) <= 80
    assert all(f"f{at}" in "\n".join(lines) for at in range(59))


def test_nameless_functions_carry_their_module_once() -> None:
    """`module+0xoff` needs no module beside it."""
    assert title({"function": "libapr-1.so.0+0x1f0", "module": "libapr-1.so.0"}) == "libapr-1.so.0+0x1f0"
    assert title({"function": "z", "module": "app"}) == "z (app)"


@pytest.mark.parametrize("columns", [50, 80])
def test_many_classes_are_listed_under_each_other(columns: int) -> None:
    """A table that does not fit becomes a list in which no number is cut from its class."""
    uppers = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, None]
    entry = {
        "function": "f", "module": "m", "state": "explained", "calls": 600,
        "classes": [{"upper_seconds": upper, "share": 1 / 6} for upper in uppers],
        "behaviours": [{"expression": "`a b`->f and not c->f", "calls": 600, "shares": [1 / 6] * 6}],
    }  # fmt: skip
    text = "\n".join(assertion(entry, columns))
    assert max(map(len, text.split("\n"))) <= columns
    for name in ("<= 1.0 us", "<= 10 us", "<= 100 us", "<= 1.0 ms", "<= 10 ms", "> 10 ms"):
        assert f"17 % {name}" in text
