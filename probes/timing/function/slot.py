"""One slot of the kernel's arrays: limits that the programs read, counters that they write."""

from __future__ import annotations

from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple

from numpy.typing import NDArray

from specmine.probes.kernel.structs import COUNTERS, PERIODS, SLOT

NO_LIMIT = 1 << 62

_WORD = 8
_PLACE = {name: where[1] // _WORD for name, where in (COUNTERS.fields or {}).items()}
"""Counter -> its place among the words of a slot: each is of 8 bytes."""
_LIMIT = {name: where[1] // _WORD for name, where in (SLOT.fields or {}).items()}["limit"]
_ALL = Struct(f"={COUNTERS.itemsize // _WORD}Q")


class Hits(NamedTuple):
    """What the kernel counted at one function's probes."""

    hits: int
    calls: int = 0
    timed: int = 0
    inner: int = 0
    unlearnt: int = 0
    stepped: int = 0

    def since(self, before: Hits) -> Hits:
        """Return what was counted after an earlier total."""
        return Hits(*(now - then for now, then in zip(self, before, strict=True)))


_hits_of = itemgetter(*(_PLACE[name] for name in Hits._fields))


class Slot:
    """The record of one timed function in the kernel."""

    def __init__(self, number: int, limits: NDArray[Any], counters: NDArray[Any]) -> None:
        """Work on the memory-mapped arrays of all slots."""
        self.number = number
        self._limits = limits[number : number + 1]
        # as words: an index into a record makes an array, which takes ten times as long, and these are often read
        self._limit = self._limits.view("<u8")[_LIMIT : _LIMIT + 1].data
        self._counters = counters[number : number + 1].view("<u8").data

    def count(self, name: str) -> int:
        """Return a running total by its name in ``COUNTERS``."""
        found: int = self._counters[_PLACE[name]]
        return found

    @property
    def hits(self) -> Hits:
        """Running totals of what hit the probes, copied at once: calls go on while they are read."""
        return Hits(*_hits_of(_ALL.unpack(self._counters.tobytes())))

    def count_of_period(self, name: str, period: int) -> int:
        """Return a count of the calls that began in a period, or in one of the same remainder."""
        found: int = self._counters[_PLACE[name] + period % PERIODS]
        return found

    def next_period(self) -> int:
        """Begin a period of ``max_open`` and return its number."""
        period = int(self._limits["period"][0]) + 1
        self._limits["period"] = period
        return period

    def set_max_open(self, max_open_ns: int) -> None:
        """Have no duration taken of calls that last longer."""
        self._limits["max_open"] = max_open_ns

    @property
    def limit(self) -> int:
        """The number of hits at which the kernel asks for the probes to be detached."""
        found: int = self._limit[0]
        return found

    def set_limit(self, hits: int) -> None:
        """Let the kernel take hits up to this total."""
        self._limit[0] = hits

    def set_generation(self, generation: int) -> None:
        """Make the cookies of one attachment the valid ones."""
        self._limits["generation"] = generation

    def set_costs(self, entry_ns: int, return_ns: int, step_ns: int) -> None:
        """Set what a hit at the entry, at the return, and at a single-stepped return site adds to calls around it."""
        self._limits["entry_ns"], self._limits["return_ns"], self._limits["step_ns"] = entry_ns, return_ns, step_ns

    def set_era(self, number: int) -> None:
        """Count the calls that begin from now on apart from those before; 0: no calls within them are of interest."""
        self._limits["era"] = number

    def set_timed_share(self, share: float) -> None:
        """Set the share of the calls that is timed; 1: all."""
        self._limits["timed_of_4g"] = int(share * (1 << 32)) if share < 1 else 0
