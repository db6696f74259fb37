"""Put the probes of one function on when they may be, and off when their time is over; say when it must be given up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.safety.rules import kind_refused
from specmine.probes.symbols.symbolizer import Symbolizer

from .attachment import Attachments
from .isolation import TURN_NS, Isolation
from .process_choice import ProcessChoice
from .rate_limit import RateLimit
from .return_sites import ReturnSites
from .timed_function import TimedFunction
from .windows import Windows

ROTATE_NS = 10_000_000_000
LOOK_NS = 1_000_000_000
"""How often the traps of a function that stays on are held against its calls."""
UNCLEAR_MOST = 20
"""Windows thrown away for unknown callers of a recursion before it is given up."""
RETRY_NS = 100_000_000
COMPARE_NS = 10_000_000_000
"""How often the code that a probe goes into is compared with its file."""

Refused = tuple[Kind, Reason] | None
"""Which kind of watching must end, and why; None if none must."""


@dataclass(slots=True, kw_only=True, eq=False)
class DutyCycle:
    """What is asked before the probes of a function go on or off."""

    by_function: dict[str, TimedFunction] = field(default_factory=dict)
    """All that are watched: whoever has the probes to itself takes those of others off."""
    programs: ProcessTracker
    bystanders: Bystanders
    naming: Symbolizer
    gate: Gate
    choosing: ProcessChoice
    windows: Windows
    isolation: Isolation
    returns: ReturnSites
    linking: Attachments
    buckets: RateLimit
    chance: random.Random

    def poll(self, w: TimedFunction, now_ns: int, *, off: bool) -> Refused:
        """Do what is due; ``off``: nothing is put on."""
        if w.on_ns:
            return self._while_on(w, now_ns)
        due = w.ready and not w.links and now_ns >= w.next_on_ns
        if due and not off and not self.isolation.holds_back(w, now_ns):
            return self._on(w, now_ns)
        return None

    def again(self, w: TimedFunction, now_ns: int) -> None:
        """Take the probes off, to be put on in another way at the next poll."""
        self.linking.off(w, now_ns)
        w.next_on_ns = now_ns

    def made(self, w: TimedFunction, at_ns: int) -> None:
        """The probes are on: say until when."""
        w.on_ns = at_ns
        on_ns = min(w.watch.on_ns or TURN_NS, TURN_NS) if w.isolated else w.watch.on_ns
        w.off_at_ns = at_ns + on_ns if on_ns else 0

    def limited(self, w: TimedFunction, at_ns: int, now_ns: int) -> Refused:
        """The bucket ran empty: wait until it would be full again."""
        w.limited = True
        self._look_at_returns(w, now_ns)
        refused = self._judge_returns(w, now_ns)
        if refused is not None:
            return refused
        if not w.watch.on_ns:  # the pause that follows is no part of a window that holds enough
            self.windows.drain(self.by_function.values())
            self.windows.cut_rest(w, at_ns)
        self.linking.off(w, at_ns)
        rate = w.watch.hits_per_second
        wait_ns = w.watch.burst_hits / rate * 1e9 if rate else 1e9
        w.next_on_ns = now_ns + int(wait_ns * self.chance.uniform(0.5, 1.5))
        return None

    def note_stepped(self, w: TimedFunction) -> None:
        """The budget must know the price of single steps."""
        if not w.function.stepped:
            w.function = self.naming.known_as(w.function, stepped=True)

    def _note_unsampled(self, w: TimedFunction) -> None:
        if not w.function.unsampled:
            w.function = self.naming.known_as(w.function, unsampled=True)  # the budget must know

    def _on(self, w: TimedFunction, now_ns: int) -> Refused:
        layouts = self.gate.mapped()
        if not layouts:
            return None
        by_site, reason = self.gate.way(w.watch.kind, layouts)
        if reason is not None:
            return Kind.TIME, reason
        if by_site != w.by_site:
            w.by_site, w.window = by_site, None
        if by_site:
            self._note_unsampled(w)
        pids = self.choosing.pids(w, begun=bool(self.windows.timed(w)))
        if not pids:
            w.next_on_ns = now_ns + RETRY_NS
            barred = self.gate.bars(0, [w.module])
            return (kind_refused(barred), barred) if barred is not None else None
        changed = self._changed(w, now_ns)
        if changed is not None:
            return Kind.COUNT, changed
        if w.isolated and not self._takes_turn(w, now_ns):
            return None
        self.buckets.fill(w)
        # the counters stand still until the links are made: what they show now is where counting begins
        if not w.watched_ns:
            self.windows.start_telling(w)
        if w.window is None:
            self.windows.begin(w, now_ns)
        self.returns.look_from(w, *self.buckets.traps_and_calls(w))
        self.linking.on(w, pids)
        w.rotate_ns, w.look_ns = now_ns + ROTATE_NS, now_ns + LOOK_NS
        return None

    def _changed(self, w: TimedFunction, now_ns: int) -> Reason | None:
        """Return why a function cannot be watched whose code in memory is not that of its file."""
        if now_ns < w.compared_ns:
            return None
        w.compared_ns = now_ns + COMPARE_NS
        return self.gate.changed(w.module, w.function.offset, w.site)

    def _takes_turn(self, w: TimedFunction, now_ns: int) -> bool:
        """Have the probes within its calls taken off; True once they are."""
        others = self.isolation.begin(w, self.by_function.values(), now_ns)
        for each in others or ():
            self.again(each, now_ns)
        if others is None or others:  # their links take a while to come off
            w.next_on_ns = now_ns + RETRY_NS
            return False
        return True

    def _while_on(self, w: TimedFunction, now_ns: int) -> Refused:
        if w.isolated and not self.isolation.has_turn(w):
            self.again(w, now_ns)
            return None
        if w.sampled and self.buckets.inner(w):  # calls inside untimed ones were taken for outermost
            self._note_unsampled(w)
            w.window = None
            self.again(w, now_ns)
            return None
        if w.by_site and w.links:
            refused = self._learn_sites(w, now_ns)
            if refused is not None:
                return refused
        if not w.links:  # every process that it was linked for has ended
            w.switch_off(now_ns)
        elif w.off_at_ns and now_ns >= w.off_at_ns:
            self._look_at_returns(w, now_ns)
            self.linking.off(w, now_ns)
            self.isolation.end(w)
            # at random, so that no rhythm of the program can hide from the on-phases
            pause_ns = max(TURN_NS if w.isolated else 0, w.watch.period_ns - w.watch.on_ns)
            w.next_on_ns = now_ns + int(pause_ns * self.chance.uniform(0.5, 1.5))
        elif now_ns >= w.rotate_ns:
            w.rotate_ns = now_ns + ROTATE_NS
            if 0 not in w.links.values() and len(self.programs.members) > len(w.links):
                self.linking.off(w, now_ns)
                return self._on(w, now_ns)
        else:
            self.buckets.refill(w, now_ns)
        return None

    def _learn_sites(self, w: TimedFunction, now_ns: int) -> Refused:
        """Probe the return sites learnt since the last poll; say if that is no use."""
        pids = self.linking.learn(w)
        if w.stepped_returns:
            self.note_stepped(w)
        if now_ns >= w.look_ns:
            self._look_at_returns(w, now_ns)
        refused = self._judge_returns(w, now_ns)
        if refused is None and 0 in pids and any(self.bystanders.share(m.file) for m in self.returns.modules(w)):
            self.again(w, now_ns)  # a caller lies in a file that others map too: link by process
        return refused

    def _look_at_returns(self, w: TimedFunction, now_ns: int) -> None:
        """Hold the traps at its return sites against its calls."""
        w.look_ns = now_ns + LOOK_NS
        if w.by_site:
            self.returns.look(w, *self.buckets.traps_and_calls(w))

    def _judge_returns(self, w: TimedFunction, now_ns: int) -> Refused:
        """Say whether a function cannot be timed by its return sites."""
        if not w.by_site:
            return None
        age_ns = now_ns - w.window.start_ns if w.window else 0
        reason = self.returns.verdict(w, self.buckets.calls(w), self.buckets.unlearnt(w), age_ns)
        if w.unclear >= UNCLEAR_MOST:
            text = (
                "it calls itself, and from places whose returns cannot be probed: which call is outermost is not known"
            )
            reason = Reason(code="unclear-recursion", text=text)
        return (Kind.TIME, reason) if reason is not None else None
