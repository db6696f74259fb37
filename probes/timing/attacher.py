"""Attach the probes of one function where they may be, and detach them."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.process.code_sizes import CodeSizes
from specmine.probes.safety.gate import Gate
from specmine.probes.safety.rules import kind_refused
from specmine.probes.symbols.symbolizer import Symbolizer

from .activity import ActivityMeter
from .function.timed_function import TimedFunction
from .link_table import LinkTable
from .process_choice import Chosen, ProcessChoice
from .windows import Windows

RETRY_NS = 100_000_000

Refused = tuple[Kind, Reason] | None
"""Which kind of observation must end, and why; None if none must."""


class Attacher:
    """Attaches one function at a time."""

    def __init__(
        self,
        gate: Gate,
        choice: ProcessChoice,
        links: LinkTable,
        windows: Windows,
        activity: ActivityMeter,
        symbolizer: Symbolizer,
        code_sizes: CodeSizes,
    ) -> None:
        """Attach nothing yet."""
        self._code_sizes = code_sizes
        self._gate, self._choice, self._links = gate, choice, links
        self._windows, self._activity, self._symbolizer = windows, activity, symbolizer

    def choose(self, w: TimedFunction, now_ns: int, beside: Chosen | None = None) -> list[int] | Refused:
        """Return the processes in which the probes may be attached now, [] or None for none, or why never.

        ``beside``: only where another function is probed.
        """
        layouts = self._gate.mapped()
        if not layouts:
            return None
        by_site, reason = self._gate.way(w.watch.kind, layouts)
        if reason is not None:
            return Kind.TIME, reason
        w.time_returns(by_site=by_site)
        if by_site:
            self.note_unsampled(w)
        pids = self._choice.pids(w, begun=bool(self._windows.timed(w)), beside=beside)
        if not pids:
            w.schedule.attach_at(now_ns + RETRY_NS)
            barred = self._gate.bars(0, [w.module])
            return (kind_refused(barred), barred) if barred is not None else None
        if w.probe.timed and not by_site and not self._code_sizes.all_as_read(pids if pids[0] else self._gate.pids()):
            w.schedule.attach_at(now_ns + RETRY_NS)  # a library came: it is judged first
            return None
        if w.schedule.take_compare(now_ns):
            changed = self._gate.changed(w.module, w.function.offset, w.site)
            if changed is not None:
                return Kind.COUNT, changed
        return pids

    def attach(self, w: TimedFunction, pids: list[int], now_ns: int, companions: Sequence[int] = ()) -> None:
        """Ask for the probes in these processes; ``companions``: links of others that end with the bucket."""
        w.bucket.fill(self._activity.burst_hits(w))
        # the counters stand still until the links are made: what they show now is where counting begins
        if not w.attachment.watched_ns:
            self._activity.start(w)
        if w.window is None:
            self._windows.begin(w, now_ns)
        w.returns.check_from(*traps_and_calls(w))
        self._activity.write_costs(w)
        self._links.attach(w, pids, companions)
        self._windows.coming(w, now_ns)
        w.schedule.attached(now_ns)

    def detach(self, w: TimedFunction, now_ns: int) -> None:
        """Detach the probes."""
        self._links.detach(w, now_ns)

    def reattach(self, w: TimedFunction, now_ns: int) -> None:
        """Detach the probes, to be attached in another way at the next poll."""
        self._links.detach(w, now_ns)
        w.schedule.attach_at(now_ns)

    def learn(self, w: TimedFunction) -> None:
        """Probe the return sites learned since the last call."""
        self._links.learn(w)
        w.bucket.resize(self._activity.burst_hits(w))

    def note_stepped(self, w: TimedFunction) -> None:
        """Report single steps: the budget must know their price."""
        if not w.function.stepped:
            w.describe(self._symbolizer.known_as(w.function, stepped=True))

    def note_unsampled(self, w: TimedFunction) -> None:
        """Report that the calls cannot be sampled: the budget must know."""
        if not w.function.unsampled:
            w.describe(self._symbolizer.known_as(w.function, unsampled=True))


def traps_and_calls(w: TimedFunction) -> tuple[int, int]:
    """Return the traps taken so far, without those since the bucket ran empty, and all calls counted."""
    return min(w.slot.count("hits"), w.slot.limit), w.slot.count("calls") + w.slot.count("inner")
