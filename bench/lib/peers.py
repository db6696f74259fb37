"""bpftrace and bcc's funclatency on functions of a process, for comparison: Debian's bpftrace and bpfcc-tools."""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60.0
_TRACEFS = (
    "mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing || exit; "
    'mountpoint -q /sys/kernel/debug || mount -t debugfs nodev /sys/kernel/debug; exec "$@"'
)
"""Both tools need it to detach; mounted for them alone where the host has none."""

_REGISTERS = """#ifndef BENCH_REGISTERS
#define BENCH_REGISTERS
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#endif
"""
"""The registers of x86-64 as the kernel gives them to a uprobe's program."""

COUNT = "uprobe:{at} {{ @calls = count(); }}"
HISTOGRAM = (
    "uprobe:{at} {{ @start[tid] = nsecs; }} "
    "uretprobe:{at} /@start[tid]/ {{ @hist = hist(nsecs - @start[tid]); delete(@start[tid]); }}"
)
BY_STACK = (
    "uprobe:{at} {{ @start[tid] = nsecs; }} "
    "uretprobe:{at} /@start[tid]/ {{ @hist[ustack] = hist(nsecs - @start[tid]); delete(@start[tid]); }}"
)
BY_FUNCTION = (
    "uprobe:{at} {{ @start[tid, {number}] = nsecs; }} "
    "uretprobe:{at} /@start[tid, {number}]/ "
    "{{ @hist[{number}] = hist(nsecs - @start[tid, {number}]); delete(@start[tid, {number}]); }}"
)


def bpftrace(pid: int, text: str) -> list[str]:
    """Return the command that runs a bpftrace program on a process; 0: on all that map the files it names."""
    return ["unshare", "-m", "sh", "-c", _TRACEFS, "sh", "bpftrace", "-q", *_only(pid), "-e", text]


def funclatency(pid: int, pattern: str) -> list[str]:
    """Return the command that runs funclatency on ``MODULE:FUNCTION`` of a process; 0: of all."""
    tool = next((name for name in ("funclatency-bpfcc", "funclatency") if _found(name)), "funclatency")
    return ["unshare", "-m", "sh", "-c", _TRACEFS, "sh", tool, *_only(pid), pattern]


def funclatency_all(pid: int, path: str, names: Sequence[str]) -> list[str]:
    """Return the command that runs funclatency on several functions of one file at once."""
    return [*funclatency(pid, f"{path}:^({'|'.join(map(re.escape, names))})$"), "-r", "-F"]


def _only(pid: int) -> list[str]:
    return ["-p", str(pid)] if pid else []


@contextmanager
def attached(command: Sequence[str], pid: int, places: Sequence[int]) -> Iterator[None]:
    """Run a tool until breakpoints stand at all addresses of the process; end it afterwards."""
    with subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=environment(),
    ) as tool:
        try:
            end = time.monotonic() + LIMIT_S
            while not all_probed(pid, places):
                if tool.poll() is not None or time.monotonic() > end:
                    tool.kill()
                    errors = tool.stderr.read().decode().strip().splitlines() if tool.stderr else []
                    raise SystemExit(f"{command[6]} does not attach: {errors[-1] if errors else 'no message'}")
                time.sleep(0.05)
            yield
        finally:
            stopped(tool, signal.SIGINT)


def stopped(process: subprocess.Popen[Any], number: int = signal.SIGTERM) -> None:
    """End a process and its group in order, then with force."""
    for each in (number, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=LIMIT_S)
            return


def environment() -> dict[str, str]:
    """Return an environment in which bcc compiles also where no kernel headers are installed."""
    if Path(f"/lib/modules/{os.uname().release}/build").exists():
        return dict(os.environ)
    return {**os.environ, "BCC_KERNEL_SOURCE": _headers()}


@functools.cache
def _headers() -> str:
    """Return a folder with specmine's stand-ins for kernel headers, and the registers that funclatency asks for."""
    folder = tempfile.mkdtemp(prefix="specmine-bench-headers-")
    atexit.register(shutil.rmtree, folder)
    shutil.copytree(ROOT / "probes" / "bpf" / "include", folder, dirs_exist_ok=True)
    (Path(folder) / "include" / "uapi" / "linux" / "ptrace.h").write_text(_REGISTERS)
    return folder


def all_probed(pid: int, places: Sequence[int]) -> bool:
    """Tell whether a breakpoint stands at each address."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        return all(_byte(memory.fileno(), at) == 0xCC for at in places)


def none_probed(pid: int, places: Sequence[int]) -> bool:
    """Tell whether a breakpoint stands at no address."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        return not any(_byte(memory.fileno(), at) == 0xCC for at in places)


def _byte(fd: int, at: int) -> int:
    return os.pread(fd, 1, at)[0]


def symbols(path: Path) -> dict[str, int]:
    """Return the file offsets of an ELF file's functions by name, out of both of its tables."""
    data, found = path.read_bytes(), {}
    for table in ((), ("-D",)):
        words = subprocess.run(["nm", *table, path], check=True, capture_output=True, text=True).stdout
        for line in words.splitlines():
            value, _, rest = line.partition(" ")
            if value and rest[:1] in "tTwWi":
                found[rest[2:].partition("@")[0]] = int(value, 16) - _shift(data, int(value, 16))
    return found


def _shift(data: bytes, address: int) -> int:
    """Return the distance of address and file offset in the segment that holds an address."""
    start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    for number in range(count):
        kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", data, start + number * size)
        if kind == 1 and virtual <= address < virtual + length:
            return int(virtual - offset)
    return 0


def places_in(pid: int, path: Path, offsets: Sequence[int]) -> list[int]:
    """Return the addresses of file offsets in a process that maps the file."""
    mapped = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and "x" in words[1] and os.path.realpath(words[5]) == os.path.realpath(path):
            low, high = (int(x, 16) for x in words[0].split("-"))
            mapped.append((low, high - low, int(words[2], 16)))
    return [low + at - first for at in offsets for low, length, first in mapped if first <= at < first + length]


def _found(name: str) -> bool:
    return any((Path(folder) / name).exists() for folder in os.environ.get("PATH", "").split(":"))
