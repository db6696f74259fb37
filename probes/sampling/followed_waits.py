"""Where threads wait, by following some of their waits: for kernels that do not show blocked threads from outside.

The switch tracepoint costs every thread of the host. So it is on only in some of the sums, as often as it stays cheap.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import SWITCHES_A_TIMED

from .sums import StackTime
from .switches import SwitchTracepoint

WAITS = 20
"""Waits followed in a second on average: a stack walk costs more than a timed call."""
_FIRST_WAITS, _FIRST_SUMS = 50, 4
"""Waits followed in each of the first sums."""
_QUIET = 0.125
SELDOM = 20
"""Waits are followed at least in one sum of so many."""


class FollowedWaits:
    """Follows waits in some of the sums."""

    def __init__(
        self,
        tracepoint: SwitchTracepoint,
        waits: HashMap,
        settings: NDArray[np.void],
        switches: NDArray[np.void],
    ) -> None:
        """Follow none yet."""
        self._tracepoint, self._waits, self._settings, self._switches = tracepoint, waits, settings, switches
        self._follows = False
        """The tracepoint is on for this sum."""
        self._every, self._one_in, self._turn, self._sums = 8, 1, 0, 0
        self._before = switches[0].copy()
        """Of the switches, at the start of this sum."""
        self._begun_ns = self._sum_ns = 0

    def begin(self, most: int, now_ns: int, sum_ns: int) -> None:
        """Begin a sum of so long, with the tracepoint on in one of so many that it stays cheap."""
        self._begun_ns, self._sum_ns, self._before = now_ns, sum_ns, self._switches[0].copy()
        wanted = bool(most) and self._turn % self._one_in == 0
        self._turn += 1
        self._follow(on=wanted)

    def stop(self) -> None:
        """Take the tracepoint off."""
        self._follow(on=False)

    def resume(self) -> None:
        """Have the tracepoint on in the next sum: the holder took everything off."""
        self._turn = 0

    def _follow(self, *, on: bool) -> None:
        self._settings["wait_every"][0] = self._every if on else 0
        self._tracepoint.want("profiler", on=on)
        self._follows = on

    def end(
        self, ended: list[StackTime], samples: int, hertz: int, *, sample_ns: float, most: int, now_ns: int
    ) -> tuple[list[StackTime], int]:
        """End the sum.

        Parameters
        ----------
        ended : list of StackTime
            The waits that ended in it.
        samples, hertz : int
            Samples of the CPU clock in it, and their rate on each busy CPU.
        sample_ns : float
            What one costs.
        most : int
            Waits to follow in a second.
        now_ns : int

        Returns
        -------
        list of StackTime
            All waits, those that go on too.
        int
            Stacks that were walked.
        """
        seen = round(sum(stack.samples for stack in ended))
        walked = round(seen / self._every)
        if not self._follows:
            return ended, walked
        stacks = [*ended, *self._open(now_ns)]
        part = self._one_in
        stacks = [one._replace(samples=one.samples * part, ns=one.ns * part, waits=one.waits * part) for one in stacks]
        self._sums += 1
        self._one_in = self._affordable(samples, hertz, sample_ns)
        # each wait that is followed costs a stack walk: follow so few that it stays cheap
        usual = min(_FIRST_WAITS, max(1, round(most * self._sum_ns * 1e-9 * self._one_in)))
        followed = _FIRST_WAITS if self._sums < _FIRST_SUMS else usual
        # few waits stand for hundreds each, so there may be none by chance; of each two passes one begins a wait
        passed = SWITCHES_A_TIMED * (int(self._switches[0]["own"]) - int(self._before["own"]))
        self._every = max(1, round(max(seen, passed / 2) / followed))
        return stacks, walked

    def _open(self, now_ns: int) -> list[StackTime]:
        """Return the waits that go on, since the last sum at most; in other sums there are as many."""
        _, since = self._waits.entries()
        since = since[since["weight"] > 0]
        begun = np.maximum(since["start"], np.uint64(self._begun_ns)).astype(np.int64)
        columns = (since["path"].tolist(), since["weight"].tolist(), np.clip(now_ns - begun, 0, None).tolist())
        return [StackTime(path, True, weight, ns * weight, weight) for path, weight, ns in zip(*columns, strict=True)]

    def _affordable(self, samples: int, hertz: int, sample_ns: float) -> int:
        """Return in one sum of how many waits may be followed.

        The tracepoint may cost watched programs what the samples of the clock cost them, or would if they were busy for
        an eighth of a CPU, and all others what samples of all CPUs would.
        """
        passed = {name: int(self._switches[0][name]) - int(self._before[name]) for name in ("timed", "ns", "own")}
        if not passed["timed"]:
            return 1
        one = SWITCHES_A_TIMED * passed["ns"] / passed["timed"]
        usual = hertz * self._sum_ns * 1e-9
        own = one * passed["own"] / (sample_ns * max(samples, _QUIET * usual))
        everybody = one * passed["timed"] / (sample_ns * usual * (os.cpu_count() or 1))
        return min(SELDOM, max(1, math.ceil(max(own, everybody))))
