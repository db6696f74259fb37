"""Where wall-clock time goes: samples of the CPU clock and of blocked threads, summed per function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import HotSample
from specmine.model.function import Function
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.maps import HashMap
from specmine.probes.symbols.return_addresses import ReturnAddresses
from specmine.probes.symbols.symbolizer import RUNTIME, Symbolizer

from .blocked_threads import BlockedThreads
from .followed_waits import WAITS, FollowedWaits
from .sums import FunctionSum, StackTime, add_innermost, add_stack, hot_samples
from .switches import PROGRAM as SWITCH_PROGRAM
from .switches import SwitchTracepoint

SUM_NS, SHORT_SUMS, LONG_NS = 500_000_000, 30, 2_000_000_000
"""Samples are summed over so long before they are told; after so many sums, when functions are known, over more: what
is told of each function in each sum costs us CPU time, and nobody judges a burst before it is over."""
PATIENCE_NS = 3_000_000_000
"""A sum whose names are still outstanding after so long is told without them."""
LOOK_PROGRAM = "on_look"
NO_FUNCTION = ""
"""Stands for what a JIT made."""


class Profiler:
    """Samples while asked to."""

    def __init__(
        self,
        links: Links,
        naming: Symbolizer,
        samples: HashMap,
        waits: HashMap,
        marks: NDArray[np.uint64],
        settings: NDArray[np.void],
        switches: NDArray[np.void],
        returns: ReturnAddresses | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Sample nothing yet.

        ``returns`` takes in where the calls on sampled stacks return to; ``note`` what a user should know.
        """
        self._returns = returns
        self._links, self._symbolizer = links, naming
        self._samples, self._settings = samples, settings
        self._clock: list[int] = []
        self.tracepoint = SwitchTracepoint(links, waits, marks, switches)
        self._followed = FollowedWaits(self.tracepoint, waits, settings, switches)
        self.blocked: BlockedThreads | None = None
        """What looks at blocked threads; None where the kernel will not: then waits are followed."""
        self._note = note
        self._is_noted = False
        self._hertz, self._sample_ns, self._most_waits = 0, 0.0, 0
        self._wanted_waits = 0
        """Waits to follow in a second where blocked threads cannot be looked at."""
        self._begun_ns = self._sums = 0
        self._open: list[tuple[int, list[StackTime]]] = []
        self.sampled = 0
        """Stacks walked: samples of the clock, each a trap of its own in the thread that it hit, and followed waits."""

    def set_rate(self, hertz: int, now_ns: int, *, sample_ns: float, waits: int = WAITS) -> None:
        """Sample at this rate per busy CPU, for so much a sample, and follow so many waits a second; 0 stops."""
        if hertz == self._hertz:
            return
        if self._clock:
            self._end_sum(now_ns)
            self._ask_names()
        self.stop()
        self._hertz, self._sample_ns = hertz, sample_ns
        if hertz:
            self._wanted_waits = waits if SWITCH_PROGRAM in self._links.programs else 0
            self._most_waits = 0 if self._can_look() else self._wanted_waits
            self._samples.drain()
            self.begin(now_ns)
        elif self.blocked is not None:
            self.blocked.forget()

    def _can_look(self) -> bool:
        """Tell whether blocked threads can be looked at, and begin to if so."""
        program = self._links.programs.get(LOOK_PROGRAM)
        if self.blocked is None and program is not None:
            try:
                self.blocked = BlockedThreads(program, self._settings)
            except OSError as error:
                self._cannot_look(error)
        return self.blocked is not None

    def _cannot_look(self, error: OSError) -> None:
        """Follow waits instead, until the next burst at least."""
        self.close()
        self._most_waits = self._wanted_waits
        if not self._is_noted:
            self._note(f"blocked threads cannot be looked at ({error.strerror}): waits are followed instead")
            self._is_noted = True

    def begin(self, now_ns: int) -> None:
        """Put the clock on, for a new sum."""
        self._clock = [self._links.clock(self._hertz)]
        self._begin_sum(now_ns)

    def stop(self) -> None:
        """Take the clock and the tracepoint off."""
        self._take_off()
        self._hertz = 0

    def close(self) -> None:
        """Take no more looks at blocked threads."""
        if self.blocked is not None:
            self.blocked.close()
            self.blocked = None

    def _take_off(self) -> None:
        for number in self._clock:
            self._links.close(number)
        self._clock = []
        self._followed.stop()

    def resume(self, now_ns: int) -> None:
        """Begin anew after the holder took everything off, except what was requested before that was known."""
        self._take_off()
        self.tracepoint.resume()
        self._followed.resume()
        if self._hertz:
            self._samples.drain()
            self.begin(now_ns)

    def passes_ns(self) -> tuple[float, float]:
        """Return what the switch tracepoint has cost watched programs, and everybody, ns."""
        return self.tracepoint.passes_ns()

    def _begin_sum(self, now_ns: int) -> None:
        self._begun_ns = now_ns
        self._followed.begin(self._most_waits, now_ns, self._sum_ns)
        self._settings["period_ns"][0] = 1_000_000_000 // self._hertz

    @property
    def _sum_ns(self) -> int:
        """How long the present sum is to last; where waits are followed it is in some of the sums only."""
        return LONG_NS if self._sums >= SHORT_SUMS and self.blocked is not None else SUM_NS

    def poll(self, now_ns: int, *, is_idle: bool = False) -> tuple[HotSample, ...]:
        """Return the hot samples whose names are known by now; of ``NO_FUNCTION`` those of code made at run time.

        ``is_idle``: nothing may be looked at, since specmine is switched off.
        """
        if self.blocked is not None and not is_idle:
            try:
                self.blocked.poll(now_ns)
            except OSError as error:
                self._cannot_look(error)
        if self._hertz and now_ns >= self._begun_ns + self._sum_ns:
            self._end_sum(now_ns)
            self._begin_sum(now_ns)
        told: tuple[HotSample, ...] = ()
        while self._open:
            since, stacks = self._open[0]
            sums = self._summed(stacks, give_up=now_ns - since > PATIENCE_NS)
            if sums is None:
                break
            self._open.pop(0)
            told += sums
        return told

    def _end_sum(self, now_ns: int) -> None:
        self._sums += 1
        keys, values = self._samples.drain()
        columns = (keys["path"], keys["waiting"] != 0, values["count"], values["ns"], values["count"])
        found = [StackTime(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        running = [stack for stack in found if not stack.is_blocked]
        samples = round(sum(stack.samples for stack in running))
        if self.blocked is None:
            waits = [stack for stack in found if stack.is_blocked]
            blocked, walked = self._followed.end(
                waits, samples, self._hertz, sample_ns=self._sample_ns, most=self._most_waits, now_ns=now_ns
            )
        else:
            blocked, walked = self.blocked.stacks(now_ns - self._begun_ns), 0
        self.sampled += samples + walked
        if running or blocked:
            self._open.append((now_ns, running + blocked))

    def _ask_names(self) -> None:
        """Ask for names that are outstanding at once: a burst is judged at the next turn or two."""
        for _, stacks in self._open:
            for stack in stacks:
                self._symbolizer.stack(stack.path, exact=True)
        self._symbolizer.ask()

    def _summed(self, stacks: list[StackTime], *, give_up: bool) -> tuple[HotSample, ...] | None:
        """Return what was found of each function; None while a name is outstanding."""
        sums: dict[str, FunctionSum] = defaultdict(FunctionSum)
        pending = False
        for stack in stacks:
            functions = self._symbolizer.stack(stack.path, exact=True)
            if functions is None:
                pending = True
                continue
            named = [f.key if isinstance(f, Function) else "" for f in functions]
            if RUNTIME in functions[:1]:
                add_innermost(sums[NO_FUNCTION], stack)
            if self._returns is not None:
                self._returns.note_stack(named, self._symbolizer.addresses(stack.path)[0])
            add_stack(sums, stack, named)
        return None if pending and not give_up else hot_samples(sums)
