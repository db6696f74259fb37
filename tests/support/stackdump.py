"""Dump stacks with their registers at the moment of a walk, and unwind them again with elfutils.

The walk under test runs by the product's own maps and header; the dump is taken in the same program, so both see
one stack. ``unwind_offline.c`` does the second unwinding with libdw.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import json
import os
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from specmine.probes.arch.machine import machine
from specmine.probes.compiler import bpf_syscall
from specmine.probes.kernel.loader import Loaded, bpf_sources
from specmine.probes.kernel.maps import RingBuffer
from specmine.probes.kernel.structs import MAX_FRAMES, WALKS
from tests.support.paths import ROOT

HERE = Path(__file__).resolve().parent
BPF = ROOT / "probes" / "bpf"
DUMP = np.dtype(
    [
        *((name, "<u4") for name in ("tgid", "tid", "sampled", "outcome", "count", "pages")),
        ("base", "<u8"),
        ("regs", "<u8", 17),
        ("address", "<u8", MAX_FRAMES),
        ("stack", "u1", 131072),
    ]
)
_COMPILE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from compiler.bytecode import compile_object
print(json.dumps(compile_object(*json.loads(sys.argv[2]))))
"""
_SET_BPF, _ENABLE = 0x40042408, 0x2400
_UPROBE_MULTI, _PERF_EVENT_PROGRAM, _KPROBE_PROGRAM = 48, 7, 2


@functools.cache
def offline_unwinder() -> Path:
    """Compile the offline unwinder; it needs libdw's headers."""
    target = Path(tempfile.mkdtemp(prefix="specmine-unwind-")) / "unwind_offline"
    source = HERE / "unwind_offline.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", target, source, "-ldw", "-lelf"], check=True)
    return target


@dataclass
class Tally:
    """What a comparison of many stacks found."""

    compared: int = 0
    equal: int = 0
    """Every return address, and the end, are the same."""
    complete: int = 0
    frames: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """How the walks under test ended."""
    oracle: Counter[str] = field(default_factory=Counter)
    """How the offline unwinder ended."""
    paths: set[tuple[int, ...]] = field(default_factory=set)
    different: list[str] = field(default_factory=list)
    """Descriptions of the first stacks that are not equal."""
    incomplete: list[str] = field(default_factory=list)
    """Descriptions of the first stacks whose walk gave up."""
    unusable: int = 0
    """Stacks that the offline unwinder could not finish, for memory not in the dump; equal as far as it went."""

    def add(self, record: np.void, end: str, oracle: list[int], describe: Callable[[int, int], str]) -> None:
        """Compare one stack."""
        count, outcome = int(record["count"]), WALKS.get(int(record["outcome"]), "?")
        walked = [int(a) for a in record["address"][:count]]
        expected = oracle if record["sampled"] else oracle[1:]
        if end == "outside" and outcome == "complete" and walked[: len(expected)] == expected:
            self.unusable += 1
            return
        self.compared += 1
        self.outcomes[outcome] += 1
        self.oracle[end] += 1
        self.frames += count
        self.paths.add(tuple(walked))
        self.complete += outcome == "complete"
        if outcome == "deep":
            expected = expected[: len(walked)]
        same = walked == expected and (outcome != "complete" or end == "end")
        # where the walk gives up, what it has so far must be true
        same = same or (outcome not in ("complete", "deep") and walked == expected[:count])
        self.equal += same
        tgid = int(record["tgid"])
        if outcome != "complete" and len(self.incomplete) < 20:
            shown = [describe(tgid, a) for a in walked[-3:]]
            right = [describe(tgid, a) for a in expected[max(0, count - 3) : count + 2]]
            self.incomplete.append(f"{outcome}/{end} sampled={record['sampled']} at {count}: {shown} of {right}")
        if not same and len(self.different) < 20:
            at = next((i for i, (a, b) in enumerate(zip(walked, expected, strict=False)) if a != b), -1)
            shown = [describe(tgid, a) for a in walked]
            right = [describe(tgid, a) for a in expected]
            self.different.append(f"{outcome}/{end} at {at}, sampled={record['sampled']}: {shown} but {right}")


kernel: Any = bpf_syscall
"""Without annotations, since it runs under Python 3.6."""


def compiled_programs(sources: list[str], flags: list[str], interpreter: str = "/usr/bin/python3") -> Any:
    """Compile programs as the product does, each once, without loading them."""
    return _compiled(tuple(sources), tuple(flags), interpreter)


@functools.cache
def _compiled(sources: tuple[str, ...], flags: tuple[str, ...], interpreter: str) -> Any:
    done = subprocess.run(
        [interpreter, "-c", _COMPILE, BPF.parent, json.dumps([sources, str(BPF / "include"), flags])],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def attached(program: int, fd: int, offsets: list[int], pid: int) -> int:
    """Attach a loaded program at file offsets of an open file, in one process; return the link."""
    path = ctypes.create_string_buffer(f"/proc/self/fd/{fd}".encode())
    places = (ctypes.c_uint64 * len(offsets))(*offsets)
    attr = struct.pack(
        "<IIIIQQQQIII4x",
        *(program, 0, _UPROBE_MULTI, 0),
        *(ctypes.addressof(path), ctypes.addressof(places), 0, 0),
        *(len(offsets), 0, pid),
    )
    return int(kernel.bpf(kernel.BPF_LINK_CREATE, attr))


class Dumper:
    """The dumping programs, loaded beside the product's, over its maps."""

    def __init__(self, loaded: Loaded, *, gap_ns: int = 1_000_000, interpreter: str = "/usr/bin/python3") -> None:
        """Compile and load; nothing is attached yet."""
        kernel.SYSCALLS.update(machine().syscalls)
        self._fds: list[int] = []
        flags = ["-Wno-everything", "-DTASK_PID=0", "-DTASK_TGID=0", "-DTASK_STATE=0", f"-DDUMP_GAP_NS={gap_ns}ULL"]
        flags += [f"-DMAX_FRAMES={MAX_FRAMES}"]
        sources = [str(path) for path in bpf_sources() if path.suffix == ".h"]
        sources.append(str(HERE / "stackdump.bpf.c"))
        compiled = compiled_programs(sources, flags, interpreter)
        numbers = []
        for spec in compiled["maps"]:
            if spec["name"] in loaded.maps:
                numbers.append(loaded.maps[spec["name"]])
                continue
            fd, info = kernel.make_map(spec, {})
            self._fds.append(fd)
            numbers.append(fd)
            if spec["name"] == "dumps":
                self._ring = RingBuffer(fd, info["entries"])
        kinds = {"dump_entry": (_KPROBE_PROGRAM, _UPROBE_MULTI), "dump_sample": (_PERF_EVENT_PROGRAM, 0)}
        self._programs = {
            name: kernel.load_program(name, compiled["programs"][name], numbers, *kind) for name, kind in kinds.items()
        }
        self._fds += self._programs.values()
        self._links: list[int] = []
        self._oracle = subprocess.Popen([offline_unwinder()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def probe(self, fd: int, offsets: list[int], pid: int) -> None:
        """Dump at file offsets of an open file, in one process: nobody else may pay."""
        self._links.append(attached(self._programs["dump_entry"], fd, offsets, pid))

    def sample(self, hertz: int) -> None:
        """Dump at samples of the CPU clock."""
        attr = bytearray(128)
        struct.pack_into("<IIQQ", attr, 0, 1, 128, 0, hertz)  # software, cpu-clock
        struct.pack_into("<Q", attr, 40, 1 << 10)  # a frequency
        buffer = ctypes.create_string_buffer(bytes(attr), len(attr))
        for cpu in range(os.cpu_count() or 1):
            fd = kernel.libc.syscall(machine().syscalls["perf_event_open"], buffer, -1, cpu, -1, 8)
            if fd < 0:
                raise OSError(ctypes.get_errno(), "perf_event_open")
            self._links.append(fd)
            fcntl.ioctl(fd, _SET_BPF, self._programs["dump_sample"])
            fcntl.ioctl(fd, _ENABLE, 0)

    def detach(self) -> None:
        """Take all probes off."""
        for fd in self._links:
            os.close(fd)
        self._links = []

    def compare(self, tally: Tally, describe: Callable[[int, int], str]) -> None:
        """Unwind what was dumped since the last call, and compare."""
        assert self._oracle.stdin is not None and self._oracle.stdout is not None
        for data in self._ring.read(256):
            record = np.frombuffer(data, DUMP, count=1)[0]
            self._oracle.stdin.write(data[: DUMP.itemsize])
            self._oracle.stdin.flush()
            end, *addresses = self._oracle.stdout.readline().decode().split()
            if end != "no-process":
                tally.add(record, end, [int(a, 16) for a in addresses], describe)

    def close(self) -> None:
        """Detach and end the offline unwinder."""
        self.detach()
        assert self._oracle.stdin is not None and self._oracle.stdout is not None
        self._oracle.stdin.close()
        self._oracle.wait(60)
        self._oracle.stdout.close()
        for fd in self._fds:
            os.close(fd)
