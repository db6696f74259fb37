"""Can this host, and this process, be watched: each need, whether it is met, and the remedy."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.model.errors import ProbeError, SpecmineError
from specmine.probes.arch.machine import machine
from specmine.probes.calibration.calibrate import kept_prices
from specmine.probes.calibration.recalibrate import measured_here
from specmine.probes.elf.client import CONFINE, Reader
from specmine.probes.elf.facts import Grade
from specmine.probes.kernel.cache import default_folder, is_ours
from specmine.probes.kernel.loader import Loaded, load, loaded_earlier
from specmine.probes.kernel.maps import kernel_at_least
from specmine.probes.process import proc
from specmine.probes.process.mappings import Mapping, executable_mappings, open_mapped
from specmine.probes.process.proc_files import PROC, path_as_text
from specmine.probes.process.selection import Selection, check_choice
from specmine.probes.process.status import Condition, Conditions
from specmine.probes.safety.rules import (
    REMEDIES,
    fips_mode,
    forbids_replacing,
    refuses_module,
    refuses_process,
    refuses_returns,
)
from specmine.probes.symbols.module import Module

CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_PTRACE": 19,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
    "CAP_CHECKPOINT_RESTORE": 40,
}
_CAP_SYS_ADMIN = 21
_THE_KERNELS = ("[vdso]", "[vsyscall]", "[uprobes]")
"""Executable memory without a file that the kernel gives to processes."""
MOST_SITES = 2000
"""Functions of a program whose probe sites doctor looks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One need: found or not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True
    """False: specmine works without it, with less."""


def checks(pid: int | None = None, *, interpreter: str = "/usr/bin/python3") -> list[Check]:
    """Look at the host, and at one process if a pid is given. Never raises for what it finds.

    What was compiled, loaded and measured earlier in this boot is not done again.
    """
    folder = default_folder()
    found = [*_host(), *_kernel(interpreter, priced=pid is not None, cache=folder if is_ours(folder) else None)]
    if pid is not None:
        found += _process(pid)
    return found


def _host() -> Iterator[Check]:
    yield _machine()
    effective = _effective_capabilities()
    missing = [n for n, bit in CAPABILITIES.items() if not effective >> bit & 1]
    if effective >> _CAP_SYS_ADMIN & 1:
        missing = [n for n in missing if n in ("CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE")]
    yield Check(
        name="privilege",
        ok=not missing,
        detail=f"missing {', '.join(missing)}" if missing else "all capabilities are there",
        remedy="run as root, or as a service with the unit's capabilities",
    )
    yield _reader()
    yield _namespace()
    yield Check(
        name="fips",
        ok=not fips_mode(),
        detail="the host runs in FIPS mode" if fips_mode() else "off",
        remedy="cryptographic modules check themselves: their functions are refused (self-checking)",
        needed=False,
    )
    yield _lockdown()


def _machine() -> Check:
    try:
        return Check(name="machine", ok=True, detail=machine().name)
    except SpecmineError as error:
        return Check(name="machine", ok=False, detail=platform.machine(), remedy=error.remedy)


def _reader() -> Check:
    """Parse a file in the confined child, and look at what the child may do."""
    name, remedy = "reader", CONFINE
    with Reader() as reader:
        try:
            reader.check()
            text = (PROC / str(reader.pids()[0]) / "status").read_text()
        except (SpecmineError, OSError, IndexError) as error:
            return Check(name=name, ok=False, detail=str(error), remedy=remedy)
    told = dict(re.findall(r"^(Uid|CapEff|CapBnd|Seccomp):\s+(\w+)", text, re.MULTILINE))
    granted = int(told.get("CapEff", "1"), 16)
    ok = told.get("Seccomp") == "2" and told.get("Uid") != "0" and not granted
    return Check(
        name=name,
        ok=ok,
        detail=f"foreign files are parsed by user {told.get('Uid')}, with capabilities {granted:x}, "
        f"{'under' if told.get('Seccomp') == '2' else 'without'} a filter of system calls",
        remedy=remedy,
    )


def _namespace() -> Check:
    try:
        proc.check_own_namespace()
    except SpecmineError as error:
        return Check(name="pid-namespace", ok=False, detail=error.message, remedy=error.remedy)
    return Check(name="pid-namespace", ok=True, detail="the host's")


def _effective_capabilities() -> int:
    match = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match.group(1), 16) if match else 0


def _lockdown() -> Check:
    try:
        text = Path("/sys/kernel/security/lockdown").read_text()
    except OSError:
        return Check(name="lockdown", ok=True, detail="not known to this kernel")
    match = re.search(r"\[(\w+)\]", text)
    level = match.group(1) if match else "none"
    return Check(
        name="lockdown",
        ok=level != "confidentiality",
        detail=level,
        remedy="lockdown=confidentiality forbids BPF to read memory: boot with integrity or none",
    )


def _prices(loaded: Loaded, cache: Path | None) -> Prices | ProbeError:
    """Return what probes cost on this host; to measure it takes half a second."""
    kept = kept_prices(cache, loaded.mode) if cache is not None else None
    if kept is not None:
        return kept
    try:
        return measured_here(loaded)
    except ProbeError as error:
        return error


def _price(prices: Prices | ProbeError) -> Check:
    if isinstance(prices, ProbeError):
        return Check(name="prices", ok=False, detail=prices.message, remedy="see the kernel's words")
    timed, stepped = prices.time_ns, prices.time_ns + prices.stepped_ns
    return Check(
        name="prices",
        ok=True,
        detail=f"a call costs {prices.count_ns:,.0f} ns counted, {timed:,.0f} ns timed, {stepped:,.0f} ns timed where "
        f"the entry is single-stepped, {prices.path_ns:,.0f} ns with its call path",
    )


def _kernel(interpreter: str, *, priced: bool, cache: Path | None) -> Iterator[Check]:
    release = platform.release()
    yield Check(name="kernel", ok=True, detail=release)
    btf = Path("/sys/kernel/btf/vmlinux").exists()
    yield Check(
        name="btf",
        ok=btf,
        detail="/sys/kernel/btf/vmlinux" if btf else "the kernel has no type information",
        remedy="waits are neither sampled nor followed without it; use a kernel built with CONFIG_DEBUG_INFO_BTF",
        needed=False,
    )
    lacking = _without(_effective_capabilities(), "CAP_BPF", "CAP_PERFMON")
    if lacking:  # a compilation would take seconds to find the same
        yield Check(
            name="bpf",
            ok=False,
            detail=f"the kernel does not permit BPF without {' and '.join(lacking)}",
            remedy="run as root or with CAP_BPF and CAP_PERFMON",
        )
        return
    try:
        earlier = loaded_earlier(cache, interpreter) if cache is not None else None
    except SpecmineError:  # no machine that it is built for: what loads says so
        earlier = None
    kept = kept_prices(cache, earlier.mode) if priced and cache is not None and earlier is not None else None
    if earlier is not None and (kept is not None or not priced):
        said = f"programs were loaded earlier in this boot, in {earlier.seconds:.1f} s"
        yield Check(name="bpf", ok=True, detail=said)
        yield _links(earlier.mode, earlier.notes)
        if kept is not None:
            yield _price(kept)
        return
    try:
        loaded = load(interpreter=interpreter, memory_bytes=16 << 20, buckets=BUCKETS, cache=cache)
    except SpecmineError as error:
        yield Check(name="bpf", ok=False, detail=error.message, remedy=error.remedy or "see the kernel's words")
        return
    prices = _prices(loaded, cache) if priced else None
    loaded.close()
    yield Check(name="bpf", ok=True, detail=f"programs compile and load in {loaded.seconds:.1f} s")
    yield _links(loaded.mode, loaded.notes)
    if prices is not None:
        yield _price(prices)


def _links(mode: str, notes: Sequence[str]) -> Check:
    return Check(
        name="links",
        ok=mode != "perf",
        detail=f"{mode} links work" + "".join(f"; {each}" for each in notes),
        remedy="probes come off slowly here: at most 6 functions at once, no duty cycles; use kernel 6.6 or later",
        needed=False,
    )


def _without(effective: int, *names: str) -> list[str]:
    """Return which of these capabilities are missing; CAP_SYS_ADMIN stands for them."""
    if effective >> _CAP_SYS_ADMIN & 1:
        return []
    return [name for name in names if not effective >> CAPABILITIES[name] & 1]


def _process(pid: int) -> Iterator[Check]:
    try:
        check_choice(Selection(pid=pid))
    except SpecmineError as error:
        yield Check(name="process", ok=False, detail=error.message, remedy=error.remedy)
        return
    yield Check(name="process", ok=True, detail=f"{pid}, {path_as_text(proc.executable_path(pid))}")
    elsewhere = proc.pid_namespace(pid) not in ("", proc.pid_namespace())
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
