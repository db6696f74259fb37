"""Follow how watched processes leave frames without returning from them: exceptions, panics, longjmp.

A call that an exception ends never passes its return site. If the same call instruction then calls another function,
that one's return looks like the first one's. So where returns are timed at return sites, the jumps by which frames
are left (reading/landings.py) carry a probe that strikes out the calls below. Such a jump comes at an exception only.
Processes in which not all of them are known are not *followed*: there only calls that name their function are timed;
nor, from its first switch to another stack on (contexts.py), is one that does such a thing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from specmine.model.batch import Prices
from specmine.probes.elf.facts import Site
from specmine.probes.kernel.links import LinkNews, Links
from specmine.probes.kernel.structs import FREE_SLOTS, GENERATION_SHIFT
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules

from .context_switches import ContextSwitches, is_told

SLOT_NUMBER, CONTEXT_SLOT = FREE_SLOTS, FREE_SLOTS + 1
"""Hits at landings, and at switches of stacks, are counted there."""
MAX_FOLLOWED = 64
"""Processes followed at once."""
RATE, BURST = 300.0, 3000
"""Landings a second, and at once, above which a process is too busy throwing: each costs a single-stepped probe."""
PAUSE_NS = 10_000_000_000
KEEP_NS = 1_000_000_000
"""How long processes are followed on after the last function with return sites went."""
_EXIT_LIBRARIES = ("libc.so", "libc-2", "libgcc_s.so", "libunwind.so")
"""Libraries in which such jumps must be found for a process to be followed."""
_EXIT_EVIDENCE = ("has exception tables", "is static")
"""Findings about a file which tell that it leaves frames by itself."""


@dataclass(slots=True, eq=False)
class _Followed:
    """One process and the links in it."""

    layout: int
    links: set[int] = field(default_factory=set)
    contexts: set[int] = field(default_factory=set)
    """Those of them that tell of another stack."""
    pending: set[int] = field(default_factory=set)
    paused_ns: int = 0
    """Until when it is left alone, 0: it is not."""


class NonlocalExits:
    """The probes at the jumps of all processes with return sites."""

    def __init__(
        self,
        links: Links,
        modules: Modules,
        programs: ProcessTracker,
        *,
        slots: NDArray[Any],
        counters: NDArray[Any],
        prices: Prices,
        emulates_nops: bool,
    ) -> None:
        """Follow nobody."""
        self._links, self._modules, self._programs = links, modules, programs
        self._contexts = ContextSwitches(modules, emulates_nops=emulates_nops)
        self._switchers: set[int] = set()
        """Processes that have gone to another stack."""
        self._begun = 0
        self._slots, self._counters, self._prices = slots, counters, prices
        self._charged_ns, self._charged_hits = 0.0, 0
        """What was charged at earlier prices, and for how many hits."""
        self.reprice(prices)
        self._places: dict[Module, tuple[int, ...] | None] = {}
        """File offsets of each module's jumps; None: asked for."""
        self._processes: dict[int, _Followed] = {}
        self._owner: dict[int, int] = {}
        self._filled_ns = self._wanted_ns = 0

    def reprice(self, prices: Prices) -> None:
        """Have the kernel take this host's new prices from the calls around a landing."""
        self._charged_ns, self._charged_hits = self.cost_ns, self._all_hits
        self._prices = prices
        self._slots["entry_ns"][SLOT_NUMBER] = round(prices.count_mean_ns + prices.stepped_mean_ns)

    @property
    def cost_ns(self) -> float:
        """What these probes cost the programs so far, as predicted."""
        hits = self._all_hits - self._charged_hits
        return self._charged_ns + hits * (self._prices.count_ns + self._prices.stepped_ns)

    @property
    def _hits(self) -> int:
        return int(self._counters["hits"][SLOT_NUMBER])

    @property
    def _all_hits(self) -> int:
        return self._hits + int(self._counters["hits"][CONTEXT_SLOT])

    def follow(self, pids: Collection[int], now_ns: int) -> None:
        """Follow these processes, those before them for a while longer; called at each poll."""
        self._refill(now_ns)
        if pids:
            self._wanted_ns = now_ns
        over = now_ns - self._wanted_ns > KEEP_NS
        for pid in [p for p in self._processes if over or p not in self._programs.members]:
            self._leave(pid)
        self._switchers &= self._programs.members.keys()
        for pid in pids:
            member = self._programs.members.get(pid)
            if member is None or not member.layout:
                continue
            known = self._processes.get(pid)
            if known is not None and known.layout != member.layout:  # a library came that may hold more such jumps
                self._leave(pid)
                known = None
            if known is None and len(self._processes) < MAX_FOLLOWED:
                self._begin(pid, member.layout)
            elif known is not None and known.paused_ns and now_ns >= known.paused_ns:
                del self._processes[pid]

    def hear(self, news: LinkNews, now_ns: int) -> bool:
        """Take in what became of a link; False if it is none of these."""
        if news.what == "released":
            for pid in list(self._processes):
                self._leave(pid)  # the holder may have attached since what was requested before this was known
            return False
        if news.id not in self._owner:
            return False
        pid = self._owner[news.id]
        process = self._processes[pid]
        if news.what == "made":
            process.pending.discard(news.id)
            if not process.pending:
                self._programs.follow(pid, followed=True)
        elif news.what in ("failed", "alarm"):
            if news.what == "alarm" and news.id in process.contexts:
                self._switchers.add(pid)
            self._leave(pid)
            self._processes[pid] = _Followed(process.layout, paused_ns=now_ns + PAUSE_NS)
        return True

    def _begin(self, pid: int, layout: int) -> None:
        modules = [m for m in self._modules.layouts[layout].modules if m is not None and m.facts is not None]
        unknown = [m for m in modules if m not in self._places]
        for module in unknown:
            self._ask(module)
        contexts = self._contexts.places(modules)
        if contexts is None or any(self._places[m] is None for m in modules):
            return
        process = self._processes[pid] = _Followed(layout)
        known = all(self._is_known(m) for m in modules) and is_told(modules, contexts)
        if not known or pid in self._switchers:
            return
        self._begun = self._begun % 0x7FFF + 1  # what is told of a switch closes the links of this process only
        for module in dict.fromkeys(modules):
            self._attach(pid, module, self._places[module], "call_landing", SLOT_NUMBER)
        process.contexts = {
            self._attach(pid, module, places, "call_context", CONTEXT_SLOT | self._begun << GENERATION_SHIFT)
            for module, places in contexts.items()
        }
        process.pending = set(process.links)
        if not process.links:
            self._programs.follow(pid, followed=True)

    def _attach(self, pid: int, module: Module, places: tuple[int, ...] | None, program: str, cookie: int) -> int:
        if not places:
            return 0
        number = self._links.attach_site(module.fd, list(places), [cookie] * len(places), program, pid)
        self._processes[pid].links.add(number)
        self._owner[number] = pid
        return number

    def forget(self, gone: Collection[Module]) -> None:
        """Forget modules that no process maps any more."""
        for module in gone:
            self._places.pop(module, None)
        self._contexts.forget(gone)

    def _ask(self, module: Module) -> None:
        self._places[module] = None

        def then(answer: object) -> None:
            found = answer if isinstance(answer, list) else []
            self._places[module] = tuple(each.offset for each in found if isinstance(each, Site))

        self._modules.ask("landings", module.fd, then)

    def _is_known(self, module: Module) -> bool:
        """Tell whether the jumps by which this file leaves frames, if it does, were found."""
        findings = module.facts.unwinder if module.facts is not None else ()
        leaves = module.name.startswith(_EXIT_LIBRARIES) or any(each.startswith(_EXIT_EVIDENCE) for each in findings)
        return not leaves or (bool(self._places[module]) and not any(each.startswith("calls ") for each in findings))

    def _leave(self, pid: int) -> None:
        for number in self._processes[pid].links:
            self._links.close(number)
        self._forget(pid)

    def _forget(self, pid: int) -> None:
        for number in self._processes.pop(pid).links:
            self._owner.pop(number, None)
        self._programs.follow(pid, followed=False)

    def _refill(self, now_ns: int) -> None:
        passed, self._filled_ns = (now_ns - self._filled_ns if self._filled_ns else 0), now_ns
        full = self._hits + BURST
        limit = int(self._slots["limit"][SLOT_NUMBER]) if passed else full
        self._slots["limit"][SLOT_NUMBER] = min(full, limit + round(RATE * passed / 1e9))
