"""Rows added up: what several rows hold as one row each, bucket by bucket, without a loop over rows.

Call paths are added by their numbers in the database: nothing here knows their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKET_MIDDLES, BUCKETS
from specmine.model.histogram import Histogram, added

from .blocks import Block, block_bytes, block_of
from .codec import LARGEST, deflated, path_block, path_bytes, portions
from .varints import Places, decode_parts, encode_parts, signed, unsigned


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBytes:
    """What a row holds."""

    counts: bytes
    paths: bytes | None
    path_ids: bytes | None


def summed(rows: Sequence[RowBytes], group: Places, number: int) -> list[RowBytes]:
    """Return the sum of the rows of each group.

    Parameters
    ----------
    rows : sequence of RowBytes
        Without splits.
    group : ndarray of int64, shape (len(rows),)
        Of each row, in [0, number).
    number : int
        Groups.

    Raises
    ------
    ValueError
        If a row is damaged.
    """
    counts = [deflated(each) for each in block_bytes(_sum_of_counts(rows, group, number))]
    filled = [at for at, each in enumerate(rows) if each.paths is not None]
    if not filled:
        return [RowBytes(counts=each, paths=None, path_ids=None) for each in counts]
    block, ids = _sum_of_paths([rows[at] for at in filled], group[filled], number)
    return [
        RowBytes(counts=count, paths=deflated(paths) if many else None, path_ids=these if many else None)
        for count, paths, these, many in zip(
            counts, path_bytes(block), path_lists(block.number, ids), block.number.tolist(), strict=True
        )
    ]


def path_lists(number: Places, paths: Places) -> list[bytes]:
    """Return the numbers of each row's call paths, as ``decode_path_numbers`` reads them.

    Parameters
    ----------
    number : ndarray of int64, shape (rows,)
        Paths of each row.
    paths : ndarray of int64
        Their numbers, row by row.
    """
    distances = np.diff(paths, prepend=0)
    first = (np.cumsum(number) - number)[number > 0]
    distances[first] = paths[first]
    return encode_parts(signed(distances), number)


def lists_of_paths(lists: Sequence[bytes]) -> tuple[Places, Places]:
    """Return how many paths each of ``path_lists`` has, and their numbers, row by row; ValueError if one is damaged."""
    numbers, sizes = decode_parts(list(lists))
    sums = np.concatenate(([0], np.cumsum(unsigned(numbers))))
    return sizes, sums[1:] - np.repeat(sums[np.cumsum(sizes) - sizes], sizes)


def histogram_sum(counts: Sequence[bytes]) -> Histogram:
    """Return the sum of histograms, given the bytes of each."""
    return histogram_sums(counts, np.zeros(len(counts), np.int64), 1)[0]


def histogram_sums(counts: Sequence[bytes], group: Places, number: int) -> list[Histogram]:
    """Return the sum of the histograms of each group, given the bytes of each; see ``summed``."""
    rows = [RowBytes(counts=each, paths=None, path_ids=None) for each in counts]
    return _sum_of_counts(rows, group, number).histograms()


def times_of_splits(splits: Sequence[bytes]) -> NDArray[np.float64]:
    """Return how long the calls of rows ran, waited for a CPU and were blocked, given the bytes of their splits.

    Returns
    -------
    ndarray of float64, shape (len(splits), 4)
        ns, with the probes' own cost in the first; in the last column the calls.

    Raises
    ------
    ValueError
        If a row is damaged.
    """
    found = np.zeros((len(splits), 4))
    for places, raws in portions(splits, len(splits) * LARGEST):
        block = block_of(raws)
        if np.any(block.number != 3):
            raise ValueError("a split has not three histograms")
        waiting, blocked, calls = block.totals.reshape(-1, 3).T
        of_histogram = np.repeat(np.arange(len(block.sizes)), block.sizes)
        times = np.bincount(of_histogram, block.counts * BUCKET_MIDDLES[block.buckets], len(block.sizes))
        found[places] = np.column_stack((times.reshape(-1, 3)[:, 2], waiting, blocked, calls))
    return found


def _sum_of_counts(rows: Sequence[RowBytes], group: Places, number: int) -> Block:
    keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for places, raws in portions([each.counts for each in rows], len(rows) * LARGEST):
        block = block_of(raws)
        if np.any(block.number != 1):
            raise ValueError("a row has not one histogram")
        of_row = np.repeat(group[places], block.sizes)
        key, count = added(of_row * BUCKETS + block.buckets, block.counts)
        keys.append(key)
        counts.append(count)
    key, count = added(np.concatenate(keys), np.concatenate(counts))
    sizes = np.bincount(key // BUCKETS, minlength=number)
    return Block(number=np.ones(number, np.int64), sizes=sizes, buckets=key % BUCKETS, counts=count)


def _sum_of_paths(rows: Sequence[RowBytes], group: Places, number: int) -> tuple[Block, Places]:
    """Return the paths' histograms of each group, and the paths' numbers."""
    sizes, ids = lists_of_paths([each.path_ids or b"" for each in rows])
    known, place = np.unique(ids, return_inverse=True)
    begins = np.cumsum(sizes) - sizes
    keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for places, raws in portions([each.paths or b"" for each in rows], len(rows) * LARGEST):
        block = path_block(raws).paths
        if not np.array_equal(block.number, sizes[places]):
            raise ValueError("a row has not one histogram for each of its call paths")
        begin, end = int(begins[places[0]]), int(begins[places[-1]] + sizes[places[-1]])
        of_histogram = np.repeat(group[places], block.number) * len(known) + place[begin:end]
        key, count = added(np.repeat(of_histogram, block.sizes) * BUCKETS + block.buckets, block.counts)
        keys.append(key)
        counts.append(count)
    key, count = added(np.concatenate(keys), np.concatenate(counts))
    histogram, size = np.unique(key // BUCKETS, return_counts=True)
    block = Block(
        number=np.bincount(histogram // len(known), minlength=number),
        sizes=size, buckets=key % BUCKETS, counts=count,
    )  # fmt: skip
    return block, known[histogram % len(known)]
