"""The histograms of many stored values, checked and made together: one by one that takes several times as long.

A value is read in two steps. First its bytes are taken apart, and the reader notes the histograms among them. Once all
values are noted the reader makes all histograms, and then each value is made with them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath
from specmine.model.histogram import Histogram

from .errors import StoreCorrupt

T = TypeVar("T")
LENGTH = struct.Struct("<I")
Later = Callable[[Sequence[Histogram]], T]
"""Makes a value of the histograms that a reader made."""


class DamagedBytes(StoreCorrupt, ValueError):
    """Stored bytes are not what they should be."""


class HistogramReader:
    """Bytes of histograms, one after the other; ``codec`` says what they look like."""

    def __init__(self) -> None:
        """Begin with none."""
        self._sizes: list[int] = []
        self._buckets: list[bytes] = []
        self._counts: list[bytes] = []
        self.size = 0
        """Bytes noted so far."""
        self.named: dict[bytes, tuple[tuple[CallPath, ...], tuple[int, ...]]] = {}
        """Call paths by the bytes that name them: windows of a function often have the same."""

    def take(self, data: bytes, at: int, number: int) -> tuple[int, int]:
        """Note so many histograms, the first of which begins at a byte.

        Returns
        -------
        int
            Place of the first among all.
        int
            Where the last one ends.

        Raises
        ------
        DamagedBytes
            If they are cut short.
        """
        first, began = len(self._sizes), at
        try:
            for _ in range(number):
                (used,) = LENGTH.unpack_from(data, at)
                start, at = at + LENGTH.size, at + LENGTH.size + 10 * used
                self._sizes.append(used)
                self._buckets.append(data[start : start + 2 * used])
                self._counts.append(data[start + 2 * used : at])
        except struct.error as error:
            raise DamagedBytes(f"a stored histogram is damaged: {error}") from error
        if at > len(data):
            raise DamagedBytes("a stored histogram is damaged: it is cut short")
        self.size += at - began
        return first, at

    def histograms(self) -> list[Histogram]:
        """Return all that were noted, in their order; DamagedBytes if the bytes are those of none."""
        buckets, counts = np.frombuffer(b"".join(self._buckets), "<u2"), np.frombuffer(b"".join(self._counts), "<u8")
        ends = np.cumsum(self._sizes, dtype=np.int64)
        backwards = buckets[1:] <= buckets[:-1]
        backwards[ends[(ends > 0) & (ends < len(buckets))] - 1] = False  # there the next histogram begins
        if (buckets >= BUCKETS).any() or backwards.any() or not counts.all():
            raise DamagedBytes("a stored histogram is damaged: its buckets or counts are none")
        return Histogram.cut(buckets, counts, ends)


def read_at_once(read: Callable[[bytes, HistogramReader], Later[T]], blob: bytes) -> T:
    """Return a value of which no other is read."""
    reader = HistogramReader()
    later = read(blob, reader)
    return later(reader.histograms())
