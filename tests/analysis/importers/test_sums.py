"""Sums over blocks equal those over all calls at once, dense or not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from specmine.analysis.importers.sums import Sums, by_first, ranks, stacked


@pytest.mark.parametrize("size", [1_000, 1 << 40])
def test_numbers_are_counted_over_all_blocks(size: int) -> None:
    """Few possible numbers are counted in an array, many in pairs; a Counter gives the same."""
    rng = np.random.default_rng(1)
    blocks = [rng.integers(0, 1_000, 500) * (size // 1_000) for _ in range(4)]
    sums = Sums(size)
    for block in blocks:
        sums.add(block)
    numbers, calls = sums.total()
    assert dict(zip(numbers.tolist(), calls.tolist(), strict=True)) == Counter(np.concatenate(blocks).tolist())
    assert (np.diff(numbers) > 0).all()


def test_nothing_added_is_nothing_counted() -> None:
    """Sums without a block are empty."""
    assert [len(each) for each in Sums(1 << 40).total()] == [0, 0]


def test_numbers_are_parted_by_their_quotient() -> None:
    """Each quotient comes once, with its remainders and their calls."""
    found = by_first(np.array([3, 12, 17, 40]), np.array([1, 2, 3, 4]), 10)
    assert [(which, rest.tolist(), calls.tolist()) for which, rest, calls in found] == [
        (0, [3], [1]),
        (1, [2, 7], [2, 3]),
        (4, [0], [4]),
    ]


def test_ranks_go_on_from_block_to_block() -> None:
    """The third call of a series has the rank 2, whatever stands between."""
    before = np.zeros(3, dtype=np.int64)
    assert ranks(np.array([1, 0, 1]), before).tolist() == [0, 0, 1]
    assert ranks(np.array([0, 1, 2]), before).tolist() == [1, 2, 0]
    assert before.tolist() == [2, 3, 1]


def test_tables_are_found_in_one() -> None:
    """Each table begins where it is said; a number without a table begins anywhere."""
    table, start = stacked({2: np.array([5, 6]), 0: np.array([7])}, 3)
    assert [table[start[2]], table[start[2] + 1], table[start[0]]] == [5, 6, 7]
