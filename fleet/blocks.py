"""The histograms of many rows as one structure of arrays: checked, read and added up without a loop over rows.

The bytes of a row are varints: the number of its histograms, their numbers of used buckets, the distances between
those buckets, the counts. They may come from anywhere: what no histogram can be is a ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram

from .varints import Numbers, Places, decode_parts, encode_parts, spans

_MOST_HISTOGRAMS = 1 << 14
_MOST_COUNT = np.uint64(1 << 52)  # calls, or ns of their time, in a bucket: a larger sum is written as the largest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """The histograms of some rows, row by row."""

    number: Places
    """Histograms of each row."""
    sizes: Places
    """Used buckets of each histogram."""
    buckets: Places
    counts: Numbers

    @property
    def row_of_histogram(self) -> Places:
        """The row of each histogram."""
        return np.repeat(np.arange(len(self.number)), self.number)

    @property
    def totals(self) -> Places:
        """Counts of each histogram, added up."""
        ends = np.concatenate(([0], np.cumsum(self.counts, dtype=np.int64)))
        last = np.cumsum(self.sizes)
        found: Places = ends[last] - ends[last - self.sizes]
        return found

    def histograms(self) -> list[Histogram]:
        """Return them one by one."""
        return Histogram.cut(self.buckets, self.counts, np.cumsum(self.sizes))


def block_at(values: Numbers, starts: Places, ends: Places) -> tuple[Block, Places]:
    """Return the histograms that rows of numbers begin with, and where each row goes on.

    Parameters
    ----------
    values : ndarray of uint64
    starts, ends : ndarray of int64, shape (rows,)
        Of each row in ``values``.

    Raises
    ------
    ValueError
        If the numbers are none.
    """
    if np.any(starts >= ends) or np.any(values[starts] > _MOST_HISTOGRAMS):
        raise ValueError("no number of histograms")
    number = values[starts].astype(np.int64)
    if np.any(starts + 1 + number > ends):
        raise ValueError("no sizes of histograms")
    read = values[spans(starts + 1, number)]
    if np.any(read > BUCKETS):
        raise ValueError("no sizes of histograms")
    sizes = read.astype(np.int64)
    until = np.concatenate(([0], np.cumsum(sizes)))
    last = np.cumsum(number)
    total = until[last] - until[last - number]
    at = starts + 1 + number
    if np.any(at + 2 * total > ends):
        raise ValueError("histograms are cut short")
    gaps, counts = values[spans(at, total)], values[spans(at + total, total)]
    if np.any(gaps >= BUCKETS) or np.any(counts == 0) or np.any(counts >= _MOST_COUNT):
        raise ValueError("histograms hold what none can")
    sums = np.concatenate(([0], np.cumsum(gaps, dtype=np.int64)))
    buckets = sums[1:] - np.repeat(sums[until[:-1]], sizes)
    inner = gaps == 0
    inner[until[:-1][sizes > 0]] = False  # the first gap of a histogram is its first bucket
    if np.any(buckets >= BUCKETS) or np.any(inner):
        raise ValueError("a histogram has a bucket twice, or beyond the last")
    return Block(number=number, sizes=sizes, buckets=buckets, counts=counts), at + 2 * total


def block_of(raws: list[bytes]) -> Block:
    """Return the histograms of rows that hold nothing else; ValueError for any other bytes."""
    values, sizes = decode_parts(raws)
    ends = np.cumsum(sizes)
    block, after = block_at(values, ends - sizes, ends)
    if np.any(after != ends):
        raise ValueError("numbers after the histograms")
    return block


def block_numbers(block: Block) -> tuple[Numbers, Places]:
    """Return the numbers of a block, and how many each row has; ``block_at`` reads them."""
    until = np.concatenate(([0], np.cumsum(block.sizes)))
    last = np.cumsum(block.number)
    total = until[last] - until[last - block.number]
    gaps = np.diff(block.buckets, prepend=0)
    first = until[:-1][block.sizes > 0]
    gaps[first] = block.buckets[first]
    width = 1 + block.number + 2 * total
    starts = np.cumsum(width) - width
    numbers = np.empty(int(width.sum()), np.uint64)
    numbers[starts] = block.number
    numbers[spans(starts + 1, block.number)] = block.sizes
    numbers[spans(starts + 1 + block.number, total)] = gaps
    numbers[spans(starts + 1 + block.number + total, total)] = np.minimum(block.counts, _MOST_COUNT - 1)
    return numbers, width


def block_bytes(block: Block) -> list[bytes]:
    """Return the bytes of each row of a block."""
    return encode_parts(*block_numbers(block))


def block_from(histograms: list[Histogram], number: Places) -> Block:
    """Return histograms as a block of rows of so many each."""
    return Block(
        number=number,
        sizes=np.array([len(each.buckets) for each in histograms], np.int64),
        buckets=np.concatenate([np.empty(0, np.int64), *(each.buckets for each in histograms)]).astype(np.int64),
        counts=np.concatenate([np.empty(0, np.uint64), *(each.counts.astype(np.uint64) for each in histograms)]),
    )
