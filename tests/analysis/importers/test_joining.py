"""Parts are shared out by size, and windows joined until they hold enough calls."""

from __future__ import annotations

import numpy as np

from specmine.analysis.importers.joining import joined_windows, shared


def test_ten_parts_are_shared_by_size() -> None:
    """Each series has one part at least, and never more parts than calls."""
    assert shared(10, [700, 300]) == [7, 3]
    assert shared(10, [1_000, 1]) == [9, 1]
    assert shared(10, [4]) == [4]
    assert shared(10, []) == []


def test_windows_are_joined_until_they_hold_enough() -> None:
    """A rest that holds too few belongs to the part before; too few parts are cut evenly instead."""
    counts = np.arange(6), np.array([50, 60, 120, 30, 80, 10])
    assert joined_windows(6, counts, 1, 100).tolist() == [0, 0, 1, 2, 2, 2]
    assert joined_windows(6, counts, 1, 10).tolist() == [0, 1, 2, 3, 4, 5]
    assert joined_windows(6, counts, 3, 300).tolist() == [0, 0, 1, 1, 2, 2]
