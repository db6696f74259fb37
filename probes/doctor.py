"""Can this host, and this process, be watched: each need, whether it is met, and the remedy."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specmine.mining.observation import BUCKETS

from . import processes as proc
from .errors import SpecmineError
from .loading import load
from .modules import Module
from .reader import Reader
from .safety import refuses_returns

CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_PTRACE": 19,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
    "CAP_CHECKPOINT_RESTORE": 40,
}
_CAP_SYS_ADMIN = 21
_HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel gives the first pid namespace this fixed number."""


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
    """Look at the host, and at one process if a pid is given. Never raises for what it finds."""
    found = [*_host(), *_kernel(interpreter)]
    if pid is not None:
        found += _process(pid)
    return found


def _host() -> Iterator[Check]:
    machine = platform.machine()
    yield Check(name="machine", ok=machine == "x86_64", detail=machine, remedy="only x86-64 is supported")
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
    namespace = os.readlink("/proc/self/ns/pid")
    yield Check(
        name="pid-namespace",
        ok=namespace == _HOST_PID_NAMESPACE,
        detail="the host's" if namespace == _HOST_PID_NAMESPACE else f"{namespace}, not the host's",
        remedy="run specmine in the host's pid namespace",
    )
    yield _lockdown()


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


def _kernel(interpreter: str) -> Iterator[Check]:
    release = platform.release()
    yield Check(name="kernel", ok=True, detail=release)
    btf = Path("/sys/kernel/btf/vmlinux").exists()
    yield Check(
        name="btf",
        ok=btf,
        detail="/sys/kernel/btf/vmlinux" if btf else "the kernel has no type information",
        remedy="waits are not sampled without it; use a kernel built with CONFIG_DEBUG_INFO_BTF",
        needed=False,
    )
    try:
        loaded = load(interpreter=interpreter, memory_bytes=16 << 20, buckets=BUCKETS)
    except SpecmineError as error:
        yield Check(name="bpf", ok=False, detail=error.message, remedy=error.remedy or "see the kernel's words")
        return
    loaded.close()
    yield Check(name="bpf", ok=True, detail=f"programs compile and load in {loaded.seconds:.1f} s")
    yield Check(
        name="links",
        ok=loaded.mode != "perf",
        detail=f"{loaded.mode} links work" + "".join(f"; {n}" for n in loaded.notes),
        remedy="probes come off slowly here: at most 6 functions at once, no duty cycles; use kernel 6.6 or later",
        needed=False,
    )


def _process(pid: int) -> Iterator[Check]:
    try:
        proc.check_choice(proc.Selection(pid=pid))
    except SpecmineError as error:
        yield Check(name="process", ok=False, detail=error.message, remedy=error.remedy)
        return
    status = (proc.PROC / str(pid) / "status").read_text(errors="replace")
    yield Check(name="process", ok=True, detail=f"{pid}, {proc.executable_path(pid)}")
    tracer = int(_field(status, "TracerPid") or 0)
    yield Check(
        name="debugger",
        ok=not tracer,
        detail=f"traced by process {tracer}" if tracer else "none is attached",
        remedy="detach the debugger first",
        needed=False,
    )
    try:
        mappings = proc.executable_mappings(pid)
    except OSError as error:
        yield Check(name="mappings", ok=False, detail=f"{error.strerror}", remedy="CAP_SYS_PTRACE is needed")
        return
    modules = []
    with Reader() as reader:
        for mapping in mappings:
            if mapping.file[1]:
                modules.append(_described(reader, pid, mapping))
    unread = [f"{m.name} ({m.error})" for m in modules if m.facts is None]
    yield Check(
        name="binaries",
        ok=not unread,
        detail="; ".join(unread) if unread else f"{len(modules)} files can be read",
        remedy="functions in these files stay nameless",
        needed=False,
    )
    reason = refuses_returns(modules)
    yield Check(
        name="returns",
        ok=reason is None,
        detail=reason.text if reason else "the durations of calls can be measured",
        remedy=reason.remedy if reason else "",
        needed=False,
    )


def _field(status: str, name: str) -> str:
    match = re.search(rf"^{name}:\s*(\S+)", status, re.MULTILINE)
    return match.group(1) if match else ""


def _described(reader: Reader, pid: int, mapping: proc.Mapping) -> Module:
    module = Module(mapping.file, mapping.path, -1, settled=True)
    try:
        fd = proc.open_mapped(pid, mapping)
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
