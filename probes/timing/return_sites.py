"""Where the calls of watched functions return to: learnt as calls are seen, probed in batches.

An ordinary probe at each return site leaves the stack as it is, so exceptions, panics and debuggers find what they
expect. Calls from a place that is not probed yet, or cannot be, are counted as such and not timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from specmine.model.function import Reason
from specmine.probes.elf.facts import Grade, Site
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.maps import RememberedMap
from specmine.probes.kernel.structs import RETURN_PROBED, RETURN_REFUSED, RETURN_SHARED, RETURN_SITE
from specmine.probes.safety.gate import Gate
from specmine.probes.safety.rules import refuses_module
from specmine.probes.symbols.modules import Module, Modules

from .text_pages import MAX_PAGES, TextPages
from .timed_function import TimedFunction

MAX_SITES = 64
"""Return sites of one function; each costs its callers a trap whoever they call there."""
HOPELESS_CALLS = 300
"""Calls after which a function is given up if none of them returned to where a probe can be."""
UNFOLLOWED_CALLS, UNFOLLOWED_NS = 3000, 10_000_000_000
"""Calls, and time, after which it is given up if all returned to places that must not be trusted."""
PASSED_BY, PASSED_BY_LEAST = 6, 500
"""Traps for each call, and in all, at which a function's return sites are too busy; a timed call makes two."""
PASSED_BY_TIMES = 3
"""How often in a row that must be seen: while links are put on and off return sites trap and the entry does not."""
_PROGRAM = "call_site_return"

Caller = tuple[Module, int]
"""A return address: module and file offset."""


@dataclass(slots=True, eq=False)
class Returns:
    """The return sites of one function: kept over its on-phases."""

    sites: dict[Caller, int] = field(default_factory=dict)
    """File offset of the probe for each return address, -1 where none can be."""
    own: set[Caller] = field(default_factory=set)
    """Those whose call names the function: no other's return passes there."""
    asked: set[Caller] = field(default_factory=set)
    stepped: bool = False
    """Some of the probes are single-stepped."""
    fresh: list[Caller] = field(default_factory=list)
    """Learnt since the last batch of links."""
    crowded: bool = False
    """There was no room for its probes in the pages of code that may be changed at once."""
    keys: list[bytes] = field(default_factory=list)
    """What the kernel was told in this attachment."""
    seen: tuple[int, int] = (0, 0)
    """Traps and calls at the last look."""
    hits: int = 0
    """Traps that are not judged yet."""
    calls: int = 0
    passed_by: int = 0
    """How often in a row they were too many for the calls."""

    def look(self, hits: int, calls: int) -> None:
        """Judge the traps since the last look, once there are enough of them or of the calls."""
        self.hits += hits - self.seen[0]
        self.calls += calls - self.seen[1]
        self.seen = hits, calls
        busy = self.hits > PASSED_BY * self.calls + PASSED_BY_LEAST
        if busy or PASSED_BY * self.calls >= PASSED_BY_LEAST:
            self.passed_by = self.passed_by + 1 if busy else 0
            self.hits = self.calls = 0


class ReturnSites:
    """The return sites of all functions whose returns are timed without touching the stack."""

    def __init__(
        self, links: Links, modules: Modules, kernel: RememberedMap, gate: Gate, *, emulates_nops: bool
    ) -> None:
        """Know none."""
        self._links, self._modules, self._kernel, self._gate = links, modules, kernel, gate
        self._emulates_nops = emulates_nops
        self._pages = TextPages()
        self._of: dict[str, Returns] = {}
        self._pending: dict[int, tuple[TimedFunction, list[Caller]]] = {}

    def modules(self, w: TimedFunction) -> set[Module]:
        """Return the modules that are known to call the function from a place that can be probed."""
        return {module for (module, _), site in self._returns(w).sites.items() if site >= 0}

    def begin(self, w: TimedFunction, pids: list[int], cookie: int) -> list[int]:
        """Ask for probes at all sites known so far, and tell the kernel; entries must be linked after this."""
        r = self._returns(w)
        r.fresh = []
        w.stepped_returns = r.stepped
        good = [c for c, site in r.sites.items() if site >= 0]
        r.crowded = not self._room(w, good)
        if r.crowded:
            return []
        numbers = self._attach(w, good, pids, cookie)
        self._tell(w, list(r.sites))
        return numbers

    def adopt(self, w: TimedFunction, pid: int, cookie: int) -> list[int]:
        """Ask for probes at the known sites in one process more."""
        return self._attach(w, [c for c, site in self._returns(w).sites.items() if site >= 0], [pid], cookie)

    def end(self, w: TimedFunction) -> None:
        """Forget what the kernel was told in this attachment."""
        r = self._returns(w)
        self._pages.remove(w.function.key)
        for key in r.keys:
            self._kernel.remove(key)
        r.keys = []

    def learn(self, w: TimedFunction, layout: int, address: int) -> None:
        """Take in a return address that the kernel saw for the first time in this attachment."""
        place = self._modules.find(layout, address)
        if place is None:
            self._put(w, layout, address, RETURN_REFUSED)
            return
        r = self._returns(w)
        if place in r.sites:
            self._tell(w, [place])  # another process maps it elsewhere
            return
        if place in r.asked:
            return
        r.asked.add(place)
        module, offset = place
        if refuses_module(module) is not None:  # a caller whose code must stay as it is
            r.sites[place] = -1
            r.fresh.append(place)
            return

        def then(answer: object) -> None:
            known = isinstance(answer, list) and answer and isinstance(answer[0], Site)
            site = answer[0] if known and isinstance(answer, list) else None
            r.sites[place] = site.offset if site is not None and site.grade is not Grade.REFUSED else -1
            r.stepped |= site is not None and site.grade is Grade.STEPPED
            if site is not None and module is w.module and site.callee == w.function.offset:
                r.own.add(place)
            w.stepped_returns = r.stepped
            r.fresh.append(place)

        self._modules.ask("return_sites", module.fd, then, offsets=[offset], kernel_emulates_nops=self._emulates_nops)

    def flush(self, w: TimedFunction, pids: list[int], cookie: int) -> list[int]:
        """Ask for probes at the sites learnt since the last call; the kernel is told when they are made."""
        r = self._returns(w)
        fresh, r.fresh = r.fresh, []
        for caller in fresh:
            module, site = caller[0], r.sites[caller]
            if site >= 0 and self._gate.changed(module, site, site) is not None:
                r.sites[caller] = -1
        self._tell(w, [c for c in fresh if r.sites[c] < 0])
        good = [c for c in fresh if r.sites[c] >= 0]
        r.crowded |= not self._room(w, good)
        numbers = self._attach(w, [] if r.crowded else good, pids, cookie)
        if numbers:
            self._pending[numbers[-1]] = (w, good)
        return numbers

    def made(self, number: int) -> None:
        """A link is on: the kernel may count on its sites."""
        pending = self._pending.pop(number, None)
        if pending is not None:
            self._tell(*pending)

    def look_from(self, w: TimedFunction, hits: int, calls: int) -> None:
        """Judge no traps and calls up to these: the probes were off."""
        self._returns(w).seen = hits, calls

    def look(self, w: TimedFunction, hits: int, calls: int) -> None:
        """Judge by the traps taken and the calls seen since the last look whether others pass the return sites."""
        self._returns(w).look(hits, calls)

    def verdict(self, w: TimedFunction, calls: int, unlearnt: int, age_ns: int) -> Reason | None:
        """Return why the function cannot be timed by its return sites, None if it can as far as was seen.

        Parameters
        ----------
        calls, unlearnt : int
            Outermost calls counted in the open window, and those that could not be timed.
        age_ns : int
            Of the window.
        """
        r = self._returns(w)
        if sum(site >= 0 for site in r.sites.values()) > MAX_SITES:
            text = f"it is called from more than {MAX_SITES} places, each of which would need a probe"
            return Reason(code="too-many-callers", text=text)
        if r.crowded:
            text = f"its return sites and those of others lie in more than {MAX_PAGES} pages of code"
            return Reason(code="many-pages", text=text)
        answered = r.sites and len(r.asked) == len(r.sites)
        if answered and calls >= HOPELESS_CALLS and all(site < 0 for site in r.sites.values()):
            text = "no call to it that was seen returns to an instruction that can be probed"
            return Reason(code="no-return-site", text=text)
        if answered and calls == unlearnt >= UNFOLLOWED_CALLS and age_ns >= UNFOLLOWED_NS:
            text = (
                "it is called through pointers or from other files only, and how its process leaves frames is not known"
            )
            return Reason(code="unfollowed", text=text)
        if r.passed_by >= PASSED_BY_TIMES:
            text = "other calls end at the places that it returns to, so often that probes there cost too much"
            return Reason(code="busy-return-site", text=text)
        return None

    def _returns(self, w: TimedFunction) -> Returns:
        return self._of.setdefault(w.function.key, Returns())

    def _room(self, w: TimedFunction, callers: list[Caller]) -> bool:
        """Take the pages of the function's entry and of these return sites; False if they are too many."""
        sites = self._returns(w).sites
        places = [(w.module.file, w.site), *((module.file, sites[module, at]) for module, at in callers)]
        return self._pages.add(w.function.key, places)

    def _attach(self, w: TimedFunction, callers: list[Caller], pids: list[int], cookie: int) -> list[int]:
        sites = self._returns(w).sites
        numbers = []
        for module in sorted({m for m, _ in callers}, key=lambda m: m.path):
            offsets = sorted({sites[c] for c in callers if c[0] is module})
            for pid in pids:
                cookies = [cookie] * len(offsets)
                numbers.append(self._links.attach_site(module.fd, offsets, cookies, _PROGRAM, pid))
        return numbers

    def _tell(self, w: TimedFunction, callers: list[Caller]) -> None:
        """Tell the kernel of return addresses, in every layout that maps them."""
        r = self._returns(w)
        for module, offset in callers:
            state = RETURN_PROBED if (module, offset) in r.own else RETURN_SHARED
            if r.sites[module, offset] < 0:
                state = RETURN_REFUSED
            for number, layout in self._modules.layouts.items():
                for mapping, mapped in zip(layout.mappings, layout.modules, strict=True):
                    inside = mapping.offset <= offset < mapping.offset + mapping.end - mapping.start
                    if mapped is module and inside:
                        self._put(w, number, mapping.start + offset - mapping.offset, state)

    def _put(self, w: TimedFunction, layout: int, address: int, state: int) -> None:
        key = np.array([(address, layout, w.cookies[0] & 0xFFFF_00FF)], RETURN_SITE).tobytes()
        if self._kernel.put(key, np.uint64(state).tobytes()):
            self._returns(w).keys.append(key)
