"""The tracepoints of the scheduler, which every thread of the host passes: on only while they are needed.

That of switches tells when threads begin and end to wait, that of wake-ups by whom they are woken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specmine.probes.kernel.links import Links
from specmine.probes.kernel.maps import HashMap
from specmine.probes.kernel.structs import SWITCHES_A_TIMED

PROGRAM = "on_switch"
FOLLOWING = "waits"
"""Who needs the wake-ups, too."""


class SwitchTracepoint:
    """One link for all who need it, and what its passes have cost."""

    def __init__(self, links: Links, waits: HashMap, marks: NDArray[np.uint64], switches: NDArray[np.void]) -> None:
        """Attach nothing yet."""
        self._links, self._waits, self._marks, self._switches = links, waits, marks, switches
        self._wanted: set[str] = set()
        self._numbers: list[int] = []
        self._of_wakeups = 0
        self.wakeups = True
        """The program can be attached to wake-ups, too."""

    def want(self, who: str, *, on: bool) -> None:
        """Have it on for somebody, or no more."""
        self._wanted = self._wanted | {who} if on else self._wanted - {who}
        if self._wanted and not self._numbers:
            self._attach()
        elif not self._wanted:
            self._detach()
        self._wakeups(on=FOLLOWING in self._wanted)

    def resume(self) -> None:
        """Attach anew if it is needed: the holder took everything off."""
        self._detach()
        self._wakeups(on=False)
        if self._wanted:
            self._attach()
        self._wakeups(on=FOLLOWING in self._wanted)

    def _attach(self) -> None:
        self._waits.drain()
        self._marks[:] = 0
        self._numbers = [self._links.tracepoint("sched_switch", PROGRAM)]

    def _detach(self) -> None:
        for number in self._numbers:
            self._links.close(number)
        self._numbers = []

    def _wakeups(self, *, on: bool) -> None:
        if on and self.wakeups and not self._of_wakeups:
            self._of_wakeups = self._links.tracepoint("sched_waking", PROGRAM)
        elif not on and self._of_wakeups:
            self._links.close(self._of_wakeups)
            self._of_wakeups = 0

    def passes_ns(self) -> tuple[float, float]:
        """Return what its passes have cost watched programs, and everybody, ns.

        A pass whose time is taken takes longer by telling whose it is: about what the kernel takes to call the program.
        """
        s = self._switches[0]
        one = SWITCHES_A_TIMED * int(s["ns"]) / max(1, int(s["timed"]))
        return int(s["own"]) * one, int(s["timed"]) * one
