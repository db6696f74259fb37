"""On-phases that a function shares with its callees: they are timed in the very calls that are looked into.

A callee that follows has no on-phases of its own. Its probes are asked for right before those of the function, so they
are on before its first call. Nobody waits for a report that they are: where a function is called often, its on-phase
is over by then.
"""

from __future__ import annotations

from collections.abc import Mapping

from specmine.probes.timing.attacher import Attacher, Refused
from specmine.probes.timing.function.timed_function import TimedFunction
from specmine.probes.timing.isolation import Isolation
from specmine.probes.timing.process_choice import Chosen

GATHER_NS = 500_000_000
"""How long the on-phase waits for callees whose sites are not known yet."""


class SharedPhases:
    """Finds the callees that follow a function, and attaches their probes with its own."""

    def __init__(self, functions: Mapping[str, TimedFunction], attacher: Attacher, isolation: Isolation) -> None:
        """Look among these functions, by key."""
        self._functions, self._attacher, self._isolation = functions, attacher, isolation
        self._refused: list[tuple[TimedFunction, Refused]] = []

    def followers(self, w: TimedFunction) -> list[TimedFunction]:
        """Return the callees that are on in the on-phases of a function."""
        if not w.watch.looks_inside:
            return []
        return [
            other for other in self._functions.values() if other.watch.inside_of == w.function.key and other is not w
        ]

    def is_led(self, w: TimedFunction) -> bool:
        """Tell whether the function that a callee follows has its probes on, or asked for."""
        leader = self._functions.get(w.watch.inside_of)
        return leader is not None and leader.shares and bool(leader.attachment.links)

    def is_gathered(self, w: TimedFunction, now_ns: int) -> bool:
        """Tell whether the on-phase of a function may begin: its callees are ready, or were waited for long enough."""
        if all(self._may_begin(other, now_ns) and other.returns.answered for other in self.followers(w)):
            return True
        return now_ns >= w.schedule.gather(now_ns + GATHER_NS)

    def attach_followers(self, w: TimedFunction, pids: list[int], now_ns: int) -> list[int]:
        """Ask for the probes of the callees of a function, in the processes chosen for it; return their links."""
        links: list[int] = []
        for other in self.followers(w):
            if self._may_begin(other, now_ns) and not other.attachment.links:
                chosen = self._attacher.choose(other, now_ns, beside=Chosen(w.lifetime, pids))
                if isinstance(chosen, tuple):
                    self._refused.append((other, chosen))
                elif chosen:
                    self._attacher.attach(other, chosen, now_ns)
            links += [*other.attachment.links, *other.attachment.site_links]
        return links

    def take_refused(self) -> list[tuple[TimedFunction, Refused]]:
        """Return the callees that must not be probed, and why, since the last call."""
        refused, self._refused = self._refused, []
        return refused

    def _may_begin(self, w: TimedFunction, now_ns: int) -> bool:
        return w.ready and not self._isolation.holds_back(w, now_ns)
