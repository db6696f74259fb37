"""From addresses to functions and from the kernel's path ids to call paths, without waiting for the reader."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.probes.elf.demangle import is_clone
from specmine.probes.elf.facts import FunctionFacts, FunctionKind
from specmine.probes.kernel.structs import WALKS

from .module import Module
from .modules import Modules
from .stack_table import Paths

COMPLETE, JOINED, NO_ROW = 1, 2, 4
KEPT_PATHS = 12288
"""Paths told after which the kernel's note of them is cleared; it has room for 16,384."""
MAX_JOINS = 64
"""Probed callers that one path may be continued by; a longer chain is a broken one."""
UNKNOWN = Frame("[unknown]", "")
RUNTIME = Frame("[code made at run time]", "")
_BATCH = 4096


class Symbolizer:
    """Names for what the kernel counts; each is asked for once."""

    def __init__(self, modules: Modules) -> None:
        """Know nothing yet."""
        self._modules = modules
        self.paths = Paths(KEPT_PATHS)
        self._evictions = 0
        self.functions: dict[str, Function] = {}
        """All functions that were named in files that are open, by key."""
        self.module_of: dict[str, Module] = {}
        self._new_functions: list[Function] = []
        """Functions named since the last batch."""
        self.undigested: deque[str] = deque()
        """Functions whose machine code nobody has looked at, in the order in which they were named."""
        self.programs: set[Module] = set()
        """Modules that are a program's own executable."""
        self._known: dict[Module, dict[int, Function | None]] = {}
        self._asked: dict[Module, set[int]] = {}
        self._wanted: dict[Module, set[int]] = {}

    def learn(self, records: list[bytes]) -> None:
        """Take in paths that the kernel saw for the first time."""
        evictions, self._evictions = self._evictions, self._modules.evictions
        if self._evictions > evictions:  # walks that ask for those rows must be told, even if they were before
            self.paths.fill()
        for raw in self.paths.learn(records):
            if raw.outcome == NO_ROW and raw.addresses:
                self._modules.want(raw.layout, raw.addresses[-1] - 1)

    def function(self, module: Module, offset: int) -> Function | bool | None:
        """Return the function that holds a file offset, None if there is none, False if it is not known yet."""
        if module.facts is None:
            return None if module.settled else False
        known = self._known.setdefault(module, {})
        if offset in known:
            return known[offset]
        if offset not in self._asked.setdefault(module, set()):
            self._wanted.setdefault(module, set()).add(offset)
        return False

    def ask(self) -> None:
        """Send the questions that have gathered."""
        for module, offsets in list(self._wanted.items()):
            batch = sorted(offsets)[:_BATCH]
            offsets.difference_update(batch)
            if not offsets:
                del self._wanted[module]
            self._asked[module].update(batch)

            def then(answer: object, module: Module = module, batch: list[int] = batch) -> None:
                if module.gone:
                    return
                known = self._known.setdefault(module, {})
                found = answer if isinstance(answer, list) else [None] * len(batch)
                for offset, facts in zip(batch, found, strict=True):
                    known[offset] = self.admit(module, facts) if facts is not None else None
                self._asked[module].difference_update(batch)

            self._modules.ask("functions_at", module.fd, then, offsets=batch, module=module.name)

    def admit(self, module: Module, facts: FunctionFacts) -> Function:
        """Return the one Function value for what the reader found."""
        assert module.facts is not None
        function = Function(
            build_id=module.facts.build_id,
            offset=facts.parent if facts.kind is FunctionKind.FRAGMENT and facts.parent >= 0 else facts.offset,
            name=facts.name,
            module=module.name,
            aliases=tuple(facts.aliases),
            mangled=facts.mangled,
            in_program=module in self.programs,
        )
        known = self.functions.get(function.key)
        if known is not None:
            if self.module_of[function.key].gone and not module.gone:
                self.module_of[function.key] = module
            return known
        if module.gone:  # the answer came late
            return function
        self.functions[function.key] = function
        self.module_of[function.key] = module
        self._new_functions.append(function)
        self.undigested.append(function.key)
        return function

    def forget(self, gone: Collection[Module]) -> frozenset[str]:
        """Forget files that are closed, and their functions; return the keys of these.

        Functions of a build that another open file holds stay, and lie there from now on.
        """
        self.programs.difference_update(gone)
        for module in gone:
            for known in (self._known, self._asked, self._wanted):
                known.pop(module, None)
        twins = {each.facts.build_id: each for each in self._modules.by_file.values() if each.facts is not None}
        forgotten = set()
        for key, module in list(self.module_of.items()):
            if module in gone and (twin := twins.get(self.functions[key].build_id)) is not None:
                self.module_of[key] = twin
            elif module in gone:
                del self.functions[key], self.module_of[key]
                forgotten.add(key)
        self.undigested = deque(key for key in self.undigested if key not in forgotten)
        return frozenset(forgotten)

    def unread(self) -> set[Module]:
        """Return the files that are read once more, since functions of theirs are undigested."""
        return {self.module_of[key] for key in self.undigested if key in self.module_of}

    def move(self, key: str, module: Module) -> None:
        """Look for a function in another file of the same build from now on."""
        self.module_of[key] = module

    def take_functions(self) -> tuple[Function, ...]:
        """Return the functions named, or described anew, since the last call."""
        functions, self._new_functions = tuple(self._new_functions), []
        return functions

    def known_as(self, function: Function, *, stepped: bool = False, unsampled: bool = False) -> Function:
        """Note what was found out about a function's probes, and tell it: its price is another."""
        function = self.functions.get(function.key, function)
        known = replace(function, stepped=function.stepped or stepped, unsampled=function.unsampled or unsampled)
        self.functions[function.key] = known
        self._new_functions.append(known)
        return known

    def coded(self, key: str, code: str) -> None:
        """Note the digest of a function's machine code, and tell it."""
        if code and key in self.functions:
            self.functions[key] = replace(self.functions[key], code=code)
            self._new_functions.append(self.functions[key])

    def addresses(self, id: int) -> tuple[list[tuple[int, int]], int]:
        """Return the (layout, address) pairs of a path, innermost first, and how its walk ended (0: unknown)."""
        found: list[tuple[int, int]] = []
        outcome = JOINED
        for _ in range(MAX_JOINS):
            raw = self.paths.get(id)
            if raw is None:
                return found, 0
            found += [(raw.layout, a) for a in raw.addresses]
            outcome = raw.outcome
            if outcome != JOINED:
                break
            id = raw.parent
        return found, outcome

    def stack(self, id: int, *, exact: bool) -> list[Function | Frame] | None:
        """Return what stands on a path, innermost first; None while a name is outstanding.

        Parameters
        ----------
        exact : bool
            True if the innermost address is where the thread stood, not a return address.
        """
        found: list[Function | Frame] = []
        pending = False
        for i, (layout, address) in enumerate(self.addresses(id)[0]):
            # a return address may be the first byte after its function
            place = self._modules.find(layout, address if exact and i == 0 else address - 1)
            if place is None:
                found.append(RUNTIME if self._modules.layouts.get(layout) else UNKNOWN)
                continue
            function = self.function(*place)
            if function is False:
                pending = True
            elif isinstance(function, Function):
                found.append(function)
            else:
                module, offset = place
                found.append(Frame(f"{module.name}+0x{offset:x}", module.name))
        return None if pending else found

    def call_path(self, id: int, function: Function) -> CallPath | None:
        """Return the call path by which a timed function was reached; None while a name is outstanding."""
        if id == 0:
            return CallPath((function.frame,), complete=False)
        stack = self.stack(id, exact=False)
        if stack is None:
            return None
        whole = without_clones([function, *stack])
        frames = [f.frame if isinstance(f, Function) else f for f in whole]
        return CallPath(tuple(reversed(frames)), complete=self.addresses(id)[1] == COMPLETE)


def without_clones(stack: Sequence[Function | Frame]) -> list[Function | Frame]:
    """Return a stack in which a function and its .part or .constprop below it are one frame.

    Whether a compiler splits a function changes from build to build, and edges should not. Recursion stays: there
    both frames are the same function.
    """
    kept: list[Function | Frame] = []
    for each in stack:
        inner = kept[-1] if kept else None
        if (
            isinstance(each, Function)
            and isinstance(inner, Function)
            and each.frame == inner.frame
            and each.key != inner.key
            and (is_clone(each.mangled) or is_clone(inner.mangled))
        ):
            continue
        kept.append(each)
    return kept


def outcomes(counts: NDArray[np.uint64]) -> dict[str, int]:
    """Name the kernel's counts of how walks ended."""
    return {name: int(counts[number]) for number, name in WALKS.items()}
