"""Whether probes are there at all: the kill switch, and the process that holds every link."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from specmine.model.errors import HelperError
from specmine.model.restart_pause import RestartPause
from specmine.probes.calibration.recalibrate import Recalibration
from specmine.probes.kernel.links import LinkNews, Links
from specmine.probes.kernel.tracepoints import Tracepoints
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.breakpoints import Remaining
from specmine.probes.safety.nonlocal_exits import NonlocalExits
from specmine.probes.sampling.profiler import Profiler
from specmine.probes.timing.registry import Registry

HOLDER_PAUSE_NS = 4_000_000_000
"""The longest pause before another holder: one costs next to nothing, and without it nothing is watched."""


class Presence:
    """Takes in what the holder reports of the links, and has all attached anew after they were gone."""

    def __init__(
        self,
        links: Links,
        tracepoints: Tracepoints,
        registry: Registry,
        nonlocal_exits: NonlocalExits,
        profiler: Profiler,
        programs: ProcessTracker,
        recalibration: Recalibration,
        note: Callable[[str], object],
    ) -> None:
        """Attach nothing yet; ``note`` gets sentences about what broke."""
        self._links, self._tracepoints, self._registry = links, tracepoints, registry
        self._nonlocal_exits, self._profiler, self._programs = nonlocal_exits, profiler, programs
        self._recalibration, self._note = recalibration, note
        self.off = False
        """The kill switch is on."""
        self.due_ns = 0
        """When another holder is started, 0 while there is one."""
        self._pause = RestartPause(longest_ns=HOLDER_PAUSE_NS)
        self._died_ns = 0
        self._remaining = Remaining()
        self._unheard: list[LinkNews] = []
        """Reports of the holder, in order, that are to be taken in."""

    @property
    def idle(self) -> bool:
        """Nothing may, or can, be attached."""
        return self.off or bool(self.due_ns)

    @property
    def restarts(self) -> int:
        """How often the holder ended unasked."""
        return self._pause.ends

    def breakpoints(self) -> int:
        """Return how many are left in the programs' code while the kill switch is on; -1: not all was looked at."""
        return self._remaining.look(self._programs.members) if self.off else -1

    def begin(self, kill_switch: str) -> None:
        """Name the kill switch to the holder, and attach what follows processes unless it is on."""
        if kill_switch:
            self._links.switch(kill_switch)
        self.off = bool(kill_switch) and os.path.lexists(kill_switch)
        self._registry.switch(off=self.off)
        self._unheard = [] if self.off else self._tracepoints.follow()

    def poll(self, now_ns: int) -> None:
        """Start another holder if that is due; take in what the holder told."""
        if self.due_ns and now_ns >= self.due_ns:
            self._restart(now_ns)
        self._unheard += self._links.news()
        while self._unheard:
            news = self._unheard.pop(0)
            if news.what in ("off", "on"):
                self._switched(news, now_ns)
                continue
            if not self._nonlocal_exits.hear(news, now_ns):
                self._registry.hear(news, now_ns)
            if news.what == "released":
                self._resume(now_ns)
            elif news.what == "dead":
                self._died(news, now_ns)

    def _switched(self, news: LinkNews, now_ns: int) -> None:
        """The holder saw the kill switch come, and has taken everything off, or go."""
        was, self.off = self.off, news.what == "off"
        self._registry.switch(off=self.idle)
        self._remaining.begin()
        if self.off:
            self._recalibration.close()
            self._released(news, now_ns)
        elif was:
            self._resume(now_ns)

    def _released(self, news: LinkNews, now_ns: int) -> None:
        """No link is left."""
        gone = replace(news, what="released")
        self._nonlocal_exits.hear(gone, now_ns)
        self._registry.hear(gone, now_ns)

    def _died(self, news: LinkNews, now_ns: int) -> None:
        """All probes are gone; another holder is started after a pause."""
        self._died_ns = self._died_ns or now_ns
        self.due_ns = self._pause.ended(now_ns)
        self._note(f"the process that holds the probes is gone ({self._links.why_dead}): all probes are off")
        self._registry.switch(off=True)
        self._released(news, now_ns)

    def _restart(self, now_ns: int) -> None:
        """Start another holder, and have everything attached again."""
        try:
            self._links.restart()
        except HelperError as error:
            self.due_ns = self._pause.ended(now_ns)
            self._note(error.message)
            return
        lost_s, self.due_ns, self._died_ns = (now_ns - self._died_ns) / 1e9, 0, 0
        self._note(f"the probes are held by a new process; no call was seen for {lost_s:.1f} s")
        self._registry.switch(off=self.off)
        if not self.off:
            self._programs.rescan()  # forks and execs were not reported meanwhile
            self._resume(now_ns)

    def _resume(self, now_ns: int) -> None:
        """Attach again what the holder detached; the registry does so by itself."""
        self._unheard += self._tracepoints.follow()
        self._profiler.resume(now_ns)
