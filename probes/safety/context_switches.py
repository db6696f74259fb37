"""Where a process goes from one stack to another by glibc: setcontext and swapcontext.

Many programs carry code that could and never does: libcrypto has asynchronous jobs, and what speaks TLS has libcrypto.
While none of these functions is called, frames are left as everywhere else; the first call tells that it has begun.
"""

from __future__ import annotations

from collections.abc import Collection

from specmine.probes.elf.facts import FunctionFacts, Grade, Site
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules

NAMES = ("setcontext", "swapcontext")
_CALLS = ("calls setcontext", "calls swapcontext", "calls makecontext")
_LIBC = ("libc.so.6", "libc-2")
_OTHERS = ("libucontext",)
"""Libraries that have functions of these names, too."""


class ContextSwitches:
    """The probe sites of those functions in each glibc, as far as they are known."""

    def __init__(self, modules: Modules, *, emulates_nops: bool) -> None:
        """Know none."""
        self._modules, self._emulates_nops = modules, emulates_nops
        self._places: dict[Module, tuple[int, ...] | None] = {}

    def places(self, modules: list[Module]) -> dict[Module, tuple[int, ...]] | None:
        """Return the file offsets of the probes that are needed in a process with these modules.

        Nothing is needed where no file calls the functions; None while it is being found out. A file that calls them
        where they cannot be probed has no places: ``is_told`` is False.
        """
        if not any(may_switch(each) for each in modules):
            return {}
        libraries = [each for each in modules if each.name.startswith(_LIBC)]
        for each in libraries:
            if each not in self._places:
                self._ask(each)
        if any(self._places[each] is None for each in libraries):
            return None
        return {each: self._places[each] or () for each in dict.fromkeys(libraries)}

    def forget(self, gone: Collection[Module]) -> None:
        """Forget modules that no process maps any more."""
        for module in gone:
            self._places.pop(module, None)

    def _ask(self, module: Module) -> None:
        self._places[module] = None

        def judged(answer: object) -> None:
            sites = [each for each in answer if isinstance(each, Site)] if isinstance(answer, list) else []
            good = tuple(each.offset for each in sites if each.grade is not Grade.REFUSED)
            self._places[module] = good if len(good) == len(NAMES) else ()

        def found(answer: object) -> None:
            functions = [each for each in answer if isinstance(each, FunctionFacts)] if isinstance(answer, list) else []
            offsets = [each.offset for each in functions]
            self._modules.ask("sites", module.fd, judged, offsets=offsets, kernel_emulates_nops=self._emulates_nops)

        self._modules.ask("find", module.fd, found, globs=list(NAMES), module=module.name)


def may_switch(module: Module) -> bool:
    """Tell whether a file calls functions that go to another stack."""
    return module.facts is not None and any(each in _CALLS for each in module.facts.unwinder)


def is_told(modules: list[Module], places: dict[Module, tuple[int, ...]]) -> bool:
    """Tell whether a process that goes to another stack would be noticed: there is one glibc, and it is probed."""
    if not any(may_switch(each) for each in modules):
        return True
    return len(places) == 1 and all(places.values()) and not any(each.name.startswith(_OTHERS) for each in modules)
