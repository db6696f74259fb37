"""Whether any probe was hit since the kernel's hashes were last read: a read walks all their buckets, hit or not."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from specmine.probes.kernel.structs import FREE_SLOTS


class HitWatch:
    """Compares the hits of all timed functions with those at the last read."""

    def __init__(self, counters: NDArray[Any]) -> None:
        """Know of no read yet. ``counters`` are those of all slots."""
        self._hits = counters["hits"][:FREE_SLOTS]
        self._total = -1
        self._since_ns = 0
        self._late = False
        """A handler that was running at the last read may have written after it."""

    def take_news(self, now_ns: int) -> bool:
        """Tell whether the hashes may hold anything new, and take it for read.

        A handler counts its hit before it writes. So they are read once more at a later time after the last hit.

        Parameters
        ----------
        now_ns : int
            The same for all calls of one poll.
        """
        total = int(self._hits.sum())
        if total != self._total:
            self._total, self._since_ns, self._late = total, now_ns, True
            return True
        if self._late and now_ns > self._since_ns:
            self._late = False
            return True
        return False
