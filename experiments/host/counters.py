"""The host's counters of CPU, disk, network and pressure: read in one place, parsed by pure functions."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from specmine.experiments.types import Counters

_USER_HZ = os.sysconf("SC_CLK_TCK")
_CPU_LINE = re.compile(r"^cpu(\d+) (.*)$", re.MULTILINE)
_BUSY, _STEAL = (0, 1, 2, 5, 6), 7  # user nice system irq softirq; guest time is part of user
_SECTOR = 512
_VIRTUAL_DISKS = ("loop", "ram", "zram", "dm-", "md")


def read_counters(proc: Path = Path("/proc")) -> Counters:
    """Return the counters now; what the host does not count is left out."""
    busy, steal = parse_stat(_text(proc / "stat"))
    return Counters(
        at_ns=time.monotonic_ns(),
        busy=busy,
        steal=steal,
        interrupts=parse_interrupts(_text(proc / "interrupts")),
        disk_bytes=parse_diskstats(_text(proc / "diskstats")),
        network_bytes=parse_network(_text(proc / "net" / "dev")),
        pressure={
            name: parse_pressure(text) for name in ("cpu", "memory", "io") if (text := _text(proc / "pressure" / name))
        },
    )


def parse_stat(text: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return busy and stolen seconds by CPU from ``/proc/stat``."""
    busy, steal = {}, {}
    for match in _CPU_LINE.finditer(text):
        fields = [int(field) for field in match[2].split()]
        busy[int(match[1])] = sum(fields[at] for at in _BUSY) / _USER_HZ
        steal[int(match[1])] = fields[_STEAL] / _USER_HZ if len(fields) > _STEAL else 0.0
    return busy, steal


def parse_interrupts(text: str) -> dict[int, int]:
    """Return local timer interrupts by CPU from ``/proc/interrupts``; {} if the kernel does not report them."""
    lines = text.split("\n")
    for line in lines:
        name, _, rest = line.partition(":")
        if name.strip() in ("LOC", "arch_timer"):
            cpus = [int(word[3:]) for word in lines[0].split() if word.startswith("CPU")]
            return dict(zip(cpus, (int(word) for word in rest.split()[: len(cpus)]), strict=False))
    return {}


def parse_diskstats(text: str) -> int:
    """Return bytes read and written by whole disks from ``/proc/diskstats``."""
    total = 0
    names = {words[2] for line in text.split("\n") if len(words := line.split()) > 9}
    for line in text.split("\n"):
        words = line.split()
        if len(words) > 9 and not words[2].startswith(_VIRTUAL_DISKS) and not _is_partition(words[2], names):
            total += (int(words[5]) + int(words[9])) * _SECTOR
    return total


def parse_network(text: str) -> int:
    """Return bytes received and sent by all interfaces but the loopback from ``/proc/net/dev``."""
    total = 0
    for line in text.split("\n"):
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and name.strip() != "lo" and len(words) > 8:
            total += int(words[0]) + int(words[8])
    return total


def parse_pressure(text: str) -> float:
    """Return the seconds in which some task stalled from a file of ``/proc/pressure``."""
    match = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return int(match[1]) / 1e6 if match else 0.0


def busy_ratio(before: Counters, after: Counters) -> Mapping[int, float]:
    """Return the share of time that each CPU was busy between two readings."""
    seconds = max(1e-9, (after.at_ns - before.at_ns) / 1e9)
    return {cpu: max(0.0, after.busy[cpu] - before.busy.get(cpu, 0.0)) / seconds for cpu in after.busy}


def pressure_ratio(before: Counters, after: Counters) -> Mapping[str, float]:
    """Return the share of time with a stall between two readings, by resource."""
    seconds = max(1e-9, (after.at_ns - before.at_ns) / 1e9)
    return {name: (total - before.pressure.get(name, total)) / seconds for name, total in after.pressure.items()}


def _is_partition(name: str, names: set[str]) -> bool:
    parent = re.fullmatch(r"(.*\d)p\d+|([a-z]+)\d+", name)
    return parent is not None and (parent[1] or parent[2]) in names


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("ascii", errors="replace")
    except OSError:
        return ""
