"""Probes at the return sites of timed functions: learned as calls come, attached in batches.

An ordinary probe at each return site leaves the stack as it is. So exceptions, panics and debuggers find what they
expect. Calls from a place that is not probed yet, or cannot be, are counted as such and not timed.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from specmine.probes.elf.facts import Grade, Site
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.maps import CachedMap
from specmine.probes.kernel.structs import COOKIE_STEPPED, RETURN_PROBED, RETURN_REFUSED, RETURN_SHARED, RETURN_SITE
from specmine.probes.safety.gate import Gate
from specmine.probes.safety.rules import refuses_module
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.return_addresses import ReturnAddresses

from .function.return_sites import Caller, ReturnSites, modules_of
from .function.timed_function import TimedFunction
from .text_pages import TextPages

IDENTITY = 0xFFFF_00FF
"""Slot and generation of a cookie, without the flags of a link."""
_PROGRAM = "call_site_return"


class ReturnProbes:
    """The return-site probes of all functions whose returns are timed without touching the stack."""

    def __init__(
        self,
        links: Links,
        modules: Modules,
        kernel: CachedMap,
        gate: Gate,
        addresses: ReturnAddresses,
        *,
        emulates_nops: bool,
    ) -> None:
        """Know no return site but what ``addresses`` hold."""
        self._addresses = addresses
        self._links, self._modules, self._kernel, self._gate = links, modules, kernel, gate
        self._emulates_nops = emulates_nops
        self._pages = TextPages()
        self._sites: dict[str, ReturnSites] = {}
        self._pending: dict[int, tuple[TimedFunction, list[Caller]]] = {}

    def forget(self, function: str) -> None:
        """Forget where the calls of a function return to: its callers lie in other files now."""
        self._sites.pop(function, None)

    def forget_files(self, gone: Collection[Module], functions: Collection[str]) -> None:
        """Forget callers in files that were closed, and all of some functions: no probe can be put there any more."""
        for key in functions:
            self._sites.pop(key, None)
        self._addresses.forget(functions)
        for sites in self._sites.values():
            sites.forget(gone)

    def forget_layouts(self, layouts: Collection[int]) -> None:
        """Forget the return addresses in layouts whose numbers others get."""
        self._addresses.forget_layouts(layouts)
        for sites in self._sites.values():
            keys = sites.take_keys()
            numbers = np.frombuffer(b"".join(keys), RETURN_SITE)["layout"].tolist()
            for key, number in zip(keys, numbers, strict=True):
                if number in layouts:
                    self._kernel.remove(key)
                else:
                    sites.add_key(key)

    def sites_of(self, function: str) -> ReturnSites:
        """Return the return sites of a function, by its key; they outlast requests for it."""
        return self._sites.setdefault(function, ReturnSites())

    def expect(self, w: TimedFunction) -> bool:
        """Ask for the sites that calls were seen to return to before any is timed; False if there is none to ask for.

        Each call that returns to an unknown place costs a trap and gives no duration.
        """
        asked = False
        for layout, address in self._addresses.of(w.function.key):
            caller = self._modules.find(layout, address)
            if caller is not None and caller not in w.returns.asked:
                asked = True
                w.returns.ask(caller)
                self._ask(w, caller)
        return asked

    def note(self, function: str, layout: int, address: int) -> None:
        """Take in a return address of a function that is not timed now."""
        self._addresses.note(function, (layout, address))

    def begin(self, w: TimedFunction, pids: list[int], cookie: int) -> list[int]:
        """Ask for probes at all sites known so far, and tell the kernel; entries must be linked after this."""
        w.returns.begin()
        if not self._has_room(w, w.returns.probed):
            w.returns.crowd()
            return []
        numbers = self._attach(w, w.returns.probed, pids, cookie)
        self._publish(w, list(w.returns.sites))
        return numbers

    def adopt(self, w: TimedFunction, pid: int, cookie: int) -> list[int]:
        """Ask for probes at the known sites in one process more."""
        return self._attach(w, w.returns.probed, [pid], cookie)

    def end(self, w: TimedFunction) -> None:
        """Remove the entries of this attachment from the kernel's map."""
        self._pages.remove(w.function.key)
        self._pending = {number: pending for number, pending in self._pending.items() if pending[0] is not w}
        for key in w.returns.take_keys():
            self._kernel.remove(key)

    def learn(self, w: TimedFunction, layout: int, address: int) -> None:
        """Take in a return address that the kernel met for the first time in this attachment."""
        caller = self._modules.find(layout, address)
        if caller is None:
            self._put(w, layout, address, RETURN_REFUSED)
        elif caller in w.returns.sites:
            self._publish(w, [caller])  # another process maps it elsewhere
        elif caller not in w.returns.asked:
            w.returns.ask(caller)
            self._ask(w, caller)

    def _ask(self, w: TimedFunction, caller: Caller) -> None:
        module, offset = caller
        if refuses_module(module) is not None:  # a caller whose code must stay as it is
            w.returns.learn(caller, -1)
            return

        def then(answer: object) -> None:
            if module.gone:
                return
            site = answer[0] if isinstance(answer, list) and answer else None
            if not isinstance(site, Site):
                w.returns.learn(caller, -1)
                return
            w.returns.learn(
                caller,
                site.offset if site.grade is not Grade.REFUSED else -1,
                stepped=site.grade is Grade.STEPPED,
                direct=module is w.module and site.callee == w.function.offset,
            )

        self._modules.ask("return_sites", module.fd, then, offsets=[offset], kernel_emulates_nops=self._emulates_nops)

    def flush(self, w: TimedFunction, pids: list[int], cookie: int) -> list[int]:
        """Ask for probes at the sites learned since the last call; the kernel is told when they are made."""
        learned, sites = w.returns.take_learned(), w.returns.sites
        for caller in learned:
            if sites[caller] >= 0 and self._gate.changed(caller[0], sites[caller], sites[caller]) is not None:
                w.returns.refuse(caller)
        self._publish(w, [caller for caller in learned if sites[caller] < 0])
        probed = [caller for caller in learned if sites[caller] >= 0]
        if not self._has_room(w, probed):
            w.returns.crowd()
        numbers = self._attach(w, [] if w.returns.crowded else probed, pids, cookie)
        if numbers:
            self._pending[numbers[-1]] = (w, probed)
        return numbers

    def made(self, number: int) -> None:
        """Let the kernel count on the sites of a link that is on now."""
        pending = self._pending.pop(number, None)
        if pending is not None:
            self._publish(*pending)

    def _has_room(self, w: TimedFunction, callers: list[Caller]) -> bool:
        """Take the pages of the function's entry and of these return sites; False if they are too many."""
        sites = w.returns.sites
        places = [(w.module.file, w.site), *((module.file, sites[module, at]) for module, at in callers)]
        return self._pages.add(w.function.key, places)

    def _attach(self, w: TimedFunction, callers: list[Caller], pids: list[int], cookie: int) -> list[int]:
        numbers = []
        for module in modules_of(callers):
            here = [caller for caller in callers if caller[0] is module]
            stepped = {w.returns.sites[caller] for caller in here if caller in w.returns.stepped}
            offsets = sorted({w.returns.sites[caller] for caller in here})
            cookies = [cookie | COOKIE_STEPPED * (offset in stepped) for offset in offsets]
            for pid in pids:
                numbers.append(self._links.attach_site(module.fd, offsets, cookies, _PROGRAM, pid))
        return numbers

    def _publish(self, w: TimedFunction, callers: list[Caller]) -> None:
        """Put return addresses into the kernel's map, in every layout that maps them."""
        for module, offset in callers:
            if module.gone:
                continue
            state = RETURN_PROBED if (module, offset) in w.returns.direct else RETURN_SHARED
            if w.returns.sites[module, offset] < 0:
                state = RETURN_REFUSED
            for number, layout in self._modules.layouts.items():
                for mapping, mapped in zip(layout.mappings, layout.modules, strict=True):
                    inside = mapping.offset <= offset < mapping.offset + mapping.end - mapping.start
                    if mapped is module and inside:
                        self._put(w, number, mapping.start + offset - mapping.offset, state)

    def _put(self, w: TimedFunction, layout: int, address: int, state: int) -> None:
        key = np.array([(address, layout, w.attachment.cookies[0] & IDENTITY)], RETURN_SITE).tobytes()
        if self._kernel.put(key, np.uint64(state).tobytes()):
            w.returns.add_key(key)
