"""What the kernel reports of this host; no other file of the experiments reads it."""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from specmine.experiments.types import MS, Host

from .cgroups import hierarchy, limit_of

_SLICE = re.compile(r"^se\.slice\s*:\s*(\d+)$", re.MULTILINE)
_MODEL = re.compile(r"^model name\s*:\s*(.*)$", re.MULTILINE)
_PR_GET_TIMERSLACK = 30
_CLOCK_MONOTONIC_COARSE = 6  # its resolution is a tick; missing in the time module
_VIRTUAL = (("QEMU", "qemu"), ("VMware", "vmware"), ("Xen", "xen"), ("KVM", "kvm"), ("Microsoft", "hyper-v"))


def read_host(*, pid: int | str = "self") -> Host:
    """Return the facts of the host for one process: its CPUs and its limit included.

    Parameters
    ----------
    pid : int or 'self'
        The process.
    """
    sysfs = Path("/sys/devices/system/cpu")
    return Host(
        cpus=tuple(sorted(os.sched_getaffinity(0 if pid == "self" else int(pid)))),
        kernel=os.uname().release,
        boot_id=_text("/proc/sys/kernel/random/boot_id").strip(),
        cpu_model=_first(_MODEL, _text("/proc/cpuinfo")),
        hertz=hertz(time.clock_getres(_CLOCK_MONOTONIC_COARSE)),
        slice_ns=parse_slice(_text("/proc/self/sched")),
        rr_slice_ns=int(_text("/proc/sys/kernel/sched_rr_timeslice_ms") or 0) * MS,
        siblings=siblings(_text(path) for path in sysfs.glob("cpu[0-9]*/topology/thread_siblings_list")),
        quota=limit_of(pid, hierarchy()),
        slack_ns=ctypes.CDLL(None).prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0),
        clocksource=_text("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip(),
        virtual=_virtual(),
    )


def forbidden_cpus() -> frozenset[int]:
    """Return the CPUs that are isolated or without ticks: they were taken out of general use on purpose."""
    sysfs = Path("/sys/devices/system/cpu")
    return frozenset(cpu for name in ("isolated", "nohz_full") for cpu in cpu_list(_text(sysfs / name)))


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the CPUs of a list such as ``0-3,8``."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def siblings(texts: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of CPUs that share a core."""
    return tuple(sorted({cpu_list(text) for text in texts if text.strip()}))


def hertz(resolution_s: float) -> int:
    """Return the ticks a second from the resolution of the coarse clock."""
    return round(1 / resolution_s)


def parse_slice(text: str) -> int:
    """Return the slice of a fair task from ``/proc/PID/sched``, ns; 0 if the kernel does not report it."""
    match = _SLICE.search(text)
    return int(match[1]) if match else 0


def _virtual() -> str:
    """Return the kind of hypervisor, '' if there is no sign of one."""
    flagged = re.search(r"^flags\s*:.*\bhypervisor\b", _text("/proc/cpuinfo"), re.MULTILINE)
    vendor = _text("/sys/class/dmi/id/sys_vendor") + _text("/sys/class/dmi/id/product_name")
    named = next((name for word, name in _VIRTUAL if word.lower() in vendor.lower()), "")
    return named or ("yes" if flagged else "")


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1].strip() if match else ""


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
