"""Can this process be watched, and which parts of it cannot."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from specmine.model.errors import SpecmineError
from specmine.probes.elf.client import Reader
from specmine.probes.elf.facts import Grade
from specmine.probes.kernel.maps import kernel_at_least
from specmine.probes.kernel.namespaces import pid_namespace
from specmine.probes.process import proc
from specmine.probes.process.mappings import Mapping, executable_mappings, open_mapped
from specmine.probes.process.proc_files import path_as_text
from specmine.probes.process.selection import Selection, check_choice
from specmine.probes.process.status import Condition, Conditions
from specmine.probes.safety.rules import (
    REMEDIES,
    forbids_replacing,
    refuses_module,
    refuses_process,
    refuses_returns,
)
from specmine.probes.symbols.module import Module

from .check import Check

_THE_KERNELS = ("[vdso]", "[vsyscall]", "[uprobes]")
"""Executable memory without a file that the kernel gives to processes."""
MOST_SITES = 2000
"""Functions of a program whose probe sites are looked for."""


def process_checks(pid: int) -> Iterator[Check]:
    """Yield the needs of one process. Never raises for what it finds."""
    try:
        check_choice(Selection(pid=pid))
    except SpecmineError as error:
        yield Check(name="process", ok=False, detail=error.message, remedy=error.remedy)
        return
    yield Check(name="process", ok=True, detail=f"{pid}, {path_as_text(proc.executable_path(pid))}")
    elsewhere = pid_namespace(pid) not in ("", pid_namespace())
    yield Check(
        name="container",
        ok=True,
        detail="it lives in a pid namespace of its own and is watched from the host's" if elsewhere else "none",
    )
    condition = Conditions().of(pid)
    yield from _condition(condition)
    try:
        mappings = executable_mappings(pid)
    except OSError as error:
        yield Check(name="mappings", ok=False, detail=f"{error.strerror}", remedy="CAP_SYS_PTRACE is needed")
        return
    modules = []
    with Reader() as reader:
        for mapping in mappings:
            if mapping.file[1]:
                modules.append(_described(reader, pid, mapping))
        own = next((m for m in mappings if m.path == proc.executable_path(pid)), None)
        sites = _sites(reader, pid, own) if own is not None else None
    unread = [f"{m.name} ({m.error})" for m in modules if m.facts is None]
    yield Check(
        name="binaries",
        ok=not unread,
        detail="; ".join(unread) if unread else f"{len(modules)} files can be read",
        remedy="functions in these files stay nameless",
        needed=False,
    )
    if sites is not None:
        yield sites
    yield made_at_run_time(mappings)
    yield _probes(modules, condition)
    yield _returns(modules, condition)


def _condition(condition: Condition) -> Iterator[Check]:
    """Tell what of the process itself decides how it may be probed."""
    tracer = f"traced by {condition.tracer_name} ({condition.tracer})" if condition.tracer else "none is attached"
    yield Check(
        name="debugger",
        ok=not condition.tracer,
        detail=tracer,
        remedy=REMEDIES["debugger"],
        needed=False,
    )
    kept = "return addresses stay as they are"
    yield Check(name="shadow-stack", ok=True, detail=f"on: {kept}" if condition.shadow_stack else "off")
    how = {0: "off", 1: "strict"}.get(condition.seccomp, "a filter")
    yield Check(name="seccomp", ok=True, detail=f"{how}: {kept}" if condition.seccomp else how)


def made_at_run_time(mappings: list[Mapping]) -> Check:
    """Tell whether the process runs code that no file holds."""
    made = [each for each in mappings if not each.file[1] and each.path not in _THE_KERNELS]
    size = sum(each.end - each.start for each in made)
    return Check(
        name="jit",
        ok=not size,
        detail=f"{size / 1024:,.0f} KiB of memory for code made at run time" if size else "no code made at run time",
        remedy="that code is in no file: it has no probes and no names here, and call paths end there",
        needed=False,
    )


def _probes(modules: list[Module], condition: Condition) -> Check:
    """Tell which files may hold no probe at all."""
    found = [refuses_module(each) or refuses_process(replace(condition, tracer=0), each) for each in modules]
    reasons = [each for each in found if each is not None]
    said = "; ".join(f"{each.text} [{each.code}]" for each in reasons)
    return Check(
        name="code",
        ok=not reasons,
        detail=said or "probes may go into every file",
        remedy="; ".join(sorted({each.remedy for each in reasons})),
        needed=False,
    )


def _returns(modules: list[Module], condition: Condition) -> Check:
    """Tell whether and how returns are timed."""
    reason, why = refuses_returns(modules), forbids_replacing(modules, [condition])
    if reason is not None:
        said = f"{reason.text} [{reason.code}]"
        return Check(name="returns", ok=False, detail=said, remedy=reason.remedy, needed=False)
    how = f"at return sites, the stack stays as it is: {why.text} [{why.code}]" if why else "by session links"
    return Check(name="returns", ok=True, detail=f"timed {how}")


def _sites(reader: Reader, pid: int, mapping: Mapping) -> Check:
    """Tell how the probes of the program's functions would be run: the price is in it."""
    try:
        fd = open_mapped(pid, mapping)
        try:
            found = reader.find(fd, ["*"], Path(mapping.path).name)
            some = [each.offset for each in found[:: max(1, len(found) // MOST_SITES)]]
            sites = reader.sites(fd, some, kernel_emulates_nops=kernel_at_least(6, 16))
        finally:
            os.close(fd)
    except (OSError, SpecmineError) as error:
        return Check(name="sites", ok=False, detail=f"cannot be found: {error}", needed=False)
    grades = Counter(
        ("moved to an emulated instruction" if each.offset != each.function else "emulated at the first byte")
        if each.grade is Grade.EMULATED
        else f"{each.grade} ({each.code})"
        for each in sites
    )
    shares = ", ".join(f"{100 * count / len(sites):.0f} % {grade}" for grade, count in grades.most_common() if count)
    sampled = f", {len(some)} looked at" if len(some) < len(found) else ""
    return Check(
        name="sites", ok=bool(sites), detail=f"{len(found)} functions{sampled}: {shares or 'none'}", needed=False
    )


def _described(reader: Reader, pid: int, mapping: Mapping) -> Module:
    module = Module(mapping.file, mapping.path, -1, settled=True)
    try:
        fd = open_mapped(pid, mapping)
    except OSError as error:
        module.error = error.strerror or str(error)
        return module
    try:
        module.facts = reader.facts(fd)
    except SpecmineError as error:
        module.error = error.message
    finally:
        os.close(fd)
    return module
