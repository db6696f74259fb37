"""Where probes may be: in which files and processes, and whether return addresses may be replaced there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.elf.facts import BinaryFacts
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules

from .attacher import Attacher
from .function.timed_function import TimedFunction
from .link_table import DRAIN_NS, LinkTable

FOLLOW_NS = 500_000_000
"""How often it is looked whether another file of the same build is mapped instead."""


class Placement:
    """Watches what processes map, and takes probes to where they may be."""

    def __init__(
        self,
        functions: Mapping[str, TimedFunction],
        attacher: Attacher,
        links: LinkTable,
        gate: Gate,
        modules: Modules,
        tracker: ProcessTracker,
        bystanders: Bystanders,
    ) -> None:
        """Place the probes of these functions, whichever there are."""
        self._functions = functions
        self._attacher, self._links, self._gate = attacher, links, gate
        self._modules, self._tracker, self._bystanders = modules, tracker, bystanders
        self._follow_ns = 0

    def replaced_pids(self) -> set[int]:
        """Return the processes in which return addresses are replaced now."""
        replacing = [w for w in self._functions.values() if w.probe.timed and not w.by_site]
        linked = {pid for w in replacing for pid in w.attachment.pids}
        return set(self._tracker.members) if 0 in linked else linked & self._tracker.members.keys()

    def return_pids(self, *, soon: bool) -> list[int]:
        """Return the processes in which calls are timed at return sites, or would be soon; those on now come first."""
        by_site = [w for w in self._functions.values() if w.by_site]
        if not by_site and not (soon and self.returns_by_site()):
            return []
        linked = {pid for w in by_site for pid in w.attachment.pids}
        return sorted(self._tracker.members, key=lambda pid: (pid not in linked, pid))

    def returns_by_site(self) -> bool:
        """Tell whether calls would be timed at return sites now."""
        layouts = self._gate.mapped()
        return bool(layouts) and self._gate.way(Kind.TIME, layouts)[0]

    def check_bystanders(self, now_ns: int) -> None:
        """Detach links for all from files that a bystander maps by now."""
        for w in self._functions.values():
            if 0 in w.attachment.pids and self._bystanders.share(w.module.file):
                self._attacher.reattach(w, now_ns)

    def rechecked(self, now_ns: int) -> Iterator[tuple[TimedFunction, Reason]]:
        """Change how returns are timed where a library has come that can unwind the stack; yield what is refused."""
        layouts = self._gate.mapped()
        for w in list(self._functions.values()):
            if not w.attachment.links:
                continue
            if not layouts:  # nobody knows yet what the new code does: no return address may be replaced till then
                if w.probe.timed and not w.by_site:
                    self._attacher.reattach(w, now_ns)
                continue
            by_site, reason = self._gate.way(w.watch.kind, layouts)
            if reason is not None:
                yield w, reason
            elif by_site and not w.by_site:
                self._attacher.reattach(w, now_ns)
                w.drop_window()

    def elsewhere(self, now_ns: int) -> Iterator[tuple[str, Module]]:
        """Yield functions with the file of the same build that more processes map: it was deployed again."""
        if now_ns < self._follow_ns:
            return
        self._follow_ns = now_ns + FOLLOW_NS
        layouts = self._modules.layouts
        used = Counter(member.layout for member in self._tracker.members.values() if member.layout in layouts)
        mapped: Counter[Module] = Counter()
        for number, processes in used.items():
            mapped.update(dict.fromkeys(filter(None, layouts[number].modules), processes))
        for key, w in list(self._functions.items()):
            facts = w.module.facts
            twins = [m for m in mapped if m is not w.module and facts is not None and _same_build(m, facts)]
            best = max(twins, key=lambda module: mapped[module], default=w.module)
            if mapped[best] > mapped[w.module]:
                yield key, best

    def suspect(self, pids: Iterable[int]) -> None:
        """Check now whether a debugger has come to these processes."""
        self._gate.suspect(map(int, pids))

    def leave_debugged(self, now_ns: int) -> None:
        """Detach probes from processes that must not have them any more: a debugger has come."""
        if self._gate.look_around(now_ns):
            for w in self._functions.values():
                if any(self._gate.bars(pid, [w.module]) is not None for pid in w.attachment.pids):
                    self._attacher.reattach(w, now_ns)
                    self._links.drain(now_ns + DRAIN_NS)  # return sites as well, open calls or not


def _same_build(module: Module, facts: BinaryFacts) -> bool:
    """Tell whether a file is the same build, and lies the same way: offsets in one mean the same in the other."""
    other = module.facts
    return other is not None and (other.build_id, other.segments) == (facts.build_id, facts.segments)
