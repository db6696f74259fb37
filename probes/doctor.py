"""Can this host be watched: each need, whether it is met, and the remedy; of a process ``process_checks``."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.model.errors import ProbeError, SpecmineError
from specmine.probes.arch.machine import machine
from specmine.probes.calibration.calibrate import kept_prices
from specmine.probes.calibration.recalibrate import measured_here
from specmine.probes.elf.client import CONFINE, Reader
from specmine.probes.kernel import namespaces
from specmine.probes.kernel.cache import default_folder, is_ours
from specmine.probes.kernel.loader import Loaded, load, loaded_earlier
from specmine.probes.kernel.privilege import check_bpf, effective_capabilities, lacking
from specmine.probes.process.proc_files import PROC
from specmine.probes.safety.rules import fips_mode

from .check import Check
from .process_checks import process_checks

__all__ = ["Check", "checks"]


def checks(pid: int | None = None, *, interpreter: str = "/usr/bin/python3") -> list[Check]:
    """Look at the host, and at one process if a pid is given. Never raises for what it finds.

    What was compiled, loaded and measured earlier in this boot is not done again.
    """
    folder = default_folder()
    found = [*_host(), *_kernel(interpreter, priced=pid is not None, cache=folder if is_ours(folder) else None)]
    if pid is not None:
        found += process_checks(pid)
    return found


def _host() -> Iterator[Check]:
    yield _machine()
    yield _privilege()
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


def _privilege() -> Check:
    try:
        missing = lacking(effective_capabilities())
    except SpecmineError as error:
        return Check(name="privilege", ok=False, detail=error.message, remedy=error.remedy)
    return Check(
        name="privilege",
        ok=not missing,
        detail=f"missing {', '.join(missing)}" if missing else "all capabilities are there",
        remedy="run as root, or as a service with the unit's capabilities",
    )


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
        namespaces.check_own()
    except SpecmineError as error:
        return Check(name="pid-namespace", ok=False, detail=error.message, remedy=error.remedy)
    detail = "one of its own: what runs outside cannot be watched" if namespaces.own_pid_namespace() else "the host's"
    return Check(name="pid-namespace", ok=True, detail=detail)


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
    try:
        check_bpf(interpreter)
    except SpecmineError as error:  # a compilation would take seconds to find the same
        yield Check(name="bpf", ok=False, detail=error.message, remedy=error.remedy)
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
