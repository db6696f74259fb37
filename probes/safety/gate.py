"""The gate before every probe: where it goes, whether it may be there, and how the return may be timed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable

from specmine.model.function import Function, Reason
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.elf.facts import Grade, Site
from specmine.probes.process.status import FRESH_NS, Conditions
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.symbols.module import VDSO, Module
from specmine.probes.symbols.modules import Modules

from .rules import forbids_replacing, forbids_yet, refuses_module, refuses_process, refuses_returns, with_remedy
from .text_check import is_changed

MOST_CHECKED = 8
"""Processes whose code is compared with the file: forked ones share what their parent changed."""
LONGEST_INSTRUCTION = 15


class Gate:
    """Judges functions by their code, files by what they do with it, processes by what they map and how they run."""

    def __init__(self, modules: Modules, programs: ProcessTracker, *, mode: str, emulates_nops: bool) -> None:
        """Judge for one kind of link; ``emulates_nops``: the kernel emulates nops of more than one byte."""
        self._modules, self._programs = modules, programs
        self._mode, self._emulates_nops = mode, emulates_nops
        self._sites: dict[str, Site] = {}
        self._conditions = Conditions()
        self._look_ns = 0

    def site(self, function: Function, module: Module, then: Callable[[Site | Reason], None]) -> None:
        """Find the function's probe site; ``then`` gets it, or why there is none, now or in a later poll."""
        known = self._sites.get(function.key)
        refused = refuses_module(module)
        if module.file == VDSO:
            then(with_remedy(Reason(code="vdso", text="the kernel's own code cannot be probed")))
        elif refused is not None:
            then(refused)
        elif known is not None:
            then(_judged(known))
        else:
            self._ask(function, module, then)

    def _ask(self, function: Function, module: Module, then: Callable[[Site | Reason], None]) -> None:
        def answered(answer: object) -> None:
            if module.gone:
                return
            if isinstance(answer, list) and answer and isinstance(answer[0], Site):
                self._sites[function.key] = answer[0]
                then(_judged(answer[0]))
            else:
                then(with_remedy(Reason(code="unreadable", text=f"its code cannot be read: {answer}")))

        arguments = {"offsets": [function.offset], "kernel_emulates_nops": self._emulates_nops}
        self._modules.ask("sites", module.fd, answered, **arguments)

    def forget(self, functions: Collection[str]) -> None:
        """Forget the probe sites of functions whose files were closed."""
        for key in functions:
            self._sites.pop(key, None)

    def look_around(self, now_ns: int) -> bool:
        """Look at the processes again, a few at a time; False if it was too soon for that."""
        if now_ns < self._look_ns:
            return False
        self._look_ns = now_ns + FRESH_NS // 2
        self._conditions.look(self._programs.members, now_ns)
        return True

    def suspect(self, pids: Iterable[int]) -> None:
        """Look at these processes at the next look, and have that be now."""
        for pid in pids:
            self._conditions.doubt(pid)
            self._look_ns = 0

    def bars(self, pid: int, modules: Collection[Module]) -> Reason | None:
        """Return why no probe may be in one of these files in a process, None if it may.

        0 stands for every watched process that maps one of them, or whose files are not known yet.
        """
        for each in (pid,) if pid else sorted(self._programs.members):
            condition = self._conditions.of(each)
            if not condition.troubled or not (pid or self._may_map(each, modules)):
                continue
            for module in modules:
                reason = refuses_process(condition, module)
                if reason is not None:
                    return reason
        return None

    def _may_map(self, pid: int, modules: Collection[Module]) -> bool:
        layout = self._modules.layouts.get(self._programs.members[pid].layout)
        return layout is None or not set(modules).isdisjoint(layout.modules)

    def changed(self, module: Module, start: int, at: int) -> Reason | None:
        """Return why a file's code from ``start`` may not be probed ``at`` a place: a process runs something else."""
        expected = os.pread(module.fd, at + LONGEST_INSTRUCTION - start, start) if module.fd >= 0 else b""
        looked = 0
        for pid, member in sorted(self._programs.members.items()):
            layout = self._modules.layouts.get(member.layout)
            for mapping, mapped in zip(layout.mappings, layout.modules, strict=True) if layout else ():
                if mapped is module and mapping.offset <= start < mapping.offset + mapping.end - mapping.start:
                    looked += 1
                    if is_changed(pid, mapping.start + start - mapping.offset, expected, mapping):
                        text = f"process {pid} has changed the code there: it is not what {module.name} says"
                        return with_remedy(Reason(code="changed-text", text=text))
            if looked >= MOST_CHECKED:
                break
        return None

    def pids(self) -> list[int]:
        """Return all watched processes."""
        return sorted(self._programs.members)

    def mapped(self) -> list[int]:
        """Return the layouts in use; [] while what some process maps is not known."""
        layouts = {m.layout for m in self._programs.members.values()}
        known = self._modules.layouts
        settled = all(
            n in known and all(module is None or module.settled for module in known[n].modules) for n in layouts
        )
        return sorted(layouts) if settled else []

    def way(self, kind: Kind, layouts: list[int]) -> tuple[bool, Reason | None]:
        """Return whether returns must be timed by return sites, and why they cannot be timed at all (or None)."""
        if not PROBE_KINDS[kind].timed:
            return False, None
        mapped = {m for n in layouts for m in self._modules.layouts[n].modules if m is not None}
        modules = sorted(mapped, key=lambda m: m.path)
        reason = forbids_replacing(modules, map(self._conditions.of, sorted(self._programs.members)))
        for number in layouts if reason is None else ():
            reason = reason or forbids_yet(self._modules.layouts[number])
        if reason is not None and self._mode == "perf":
            return True, reason  # probes that come off slowly cannot follow return sites
        return reason is not None, refuses_returns(modules)


def _judged(site: Site) -> Site | Reason:
    return with_remedy(Reason(code=site.code, text=site.text)) if site.grade is Grade.REFUSED else site
