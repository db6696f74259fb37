"""Compile and load the BPF programs in the child that has bcc; receive maps and programs as fds."""

from __future__ import annotations

import array
import errno
import hashlib
import itertools
import json
import os
import select
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from specmine.model.errors import HelperError, HostError, ProbeError
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.arch.machine import machine
from specmine.probes.holder.process_state import is_stopped
from specmine.probes.holder.time_scale import TIME_SCALE

from .cache import read_json, this_boot, write_json
from .maps import kernel_at_least
from .structs import MAX_SLOTS

_PROBES = Path(__file__).resolve().parents[1]
_SOURCES = (
    "prelude.h",
    "histogram.h",
    "layout.h",
    "walk/unwind.h",
    "walk/scratch.h",
    "arch.h",
    "maps.h",
    "call/hit.h",
    "thread/threads.h",
    "walk/stack_window.h",
    "walk/lookup.h",
    "walk/walk.h",
    "thread/prng.h",
    "call/off_cpu.h",
    "call/call_samples.h",
    "call/rate_limit_events.h",
    "thread/cached_process.h",
    "thread/shadow_stack.h",
    "call/tail_calls.h",
    "call/return_sites.h",
    "call/inside.h",
    "call/durations.h",
    "call/handler_timing.h",
    "call/entry.h",
    "call/return.h",
    "calls.bpf.c",
    "call/waits.h",
    "samples.bpf.c",
    "lifetimes.bpf.c",
)
"""In the order in which they are compiled, as one text; ``arch.h`` is the machine's."""
LINK_KINDS = ("session", "multi", "perf")
"""Kinds of uprobe link, best first."""
VARIANTS: tuple[tuple[str, ...], ...] = (("-DMAY_GOTO",), (), ("-DMAX_FRAMES=32",))
"""Flags to compile with, best first; the verifier counts rounds itself from 6.9 on, and without faults from 6.12."""
_TIMEOUT_S = 60.0 * TIME_SCALE
LOOK_S, STOPPED_LOOKS = 0.25, 4
"""How often it is looked whether the child is stopped, and how often in a row it must be to be killed."""
PAUSES_S = (0.5, 2.0)
"""After a child that broke another is started, so often and after such pauses."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The loaded programs and their maps, as fds of this process."""

    mode: str
    """Kind of link that the self-test chose."""
    maps: dict[str, int]
    entries: dict[str, int]
    """Number of entries of each map; of ring buffers the bytes."""
    programs: dict[str, int]
    notes: tuple[str, ...]
    seconds: float
    waiting: bool = False
    """Calls are split into running, waiting and blocked."""

    def close(self) -> None:
        """Close all fds; what holds no link is freed by the kernel."""
        for fd in (*self.maps.values(), *self.programs.values()):
            os.close(fd)


def _programs(mode: str) -> list[str]:
    """Return the programs of timing probes over a kind of link."""
    kinds = [probe.programs[mode] for probe in PROBE_KINDS.values() if probe.timed]
    return [name for programs in kinds for name in (programs.entry, programs.back) if name]


def bpf_sources() -> list[Path]:
    """Return the sources of the BPF programs for this machine, in the order in which they are compiled."""
    return [machine().bpf / name if name == "arch.h" else _PROBES / "bpf" / name for name in _SOURCES]


def sources_digest() -> str:
    """Return a short digest of the sources: other programs have other prices."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in bpf_sources())).hexdigest()[:12]


def map_sizes(memory_bytes: int, buckets: int) -> dict[str, int]:
    """Divide the kernel memory that the maps may take, at most half of it for unwind rows.

    Every number is independent of the number of CPUs. A row is 8 bytes and so is an index entry.
    """
    scale = max(memory_bytes, 16 * _MIB) / (64 * _MIB)

    def power_of_two(wanted: float) -> int:
        return 1 << max(12, int(wanted).bit_length() - 1)

    return {
        "histogram": MAX_SLOTS * buckets,
        "rows": power_of_two(2 * _MIB * scale),
        "page_index": power_of_two(_MIB * scale),
        "layouts": 256,
        "processes": 16384,
        "path_histogram": power_of_two(65536 * scale),
        "off_cpu": power_of_two(16384 * scale),
        "inside": power_of_two(16384 * scale),
        "seen_paths": 16384,
        "return_sites": 16384,
        "samples": 8192,
        "waits": 16384,
        "stacks": power_of_two(512 * 1024 * scale),
        "events": 1 << 17,
        "alarms": 1 << 14,
    }


def load(
    *,
    interpreter: str,
    memory_bytes: int,
    buckets: int,
    modes: tuple[str, ...] = LINK_KINDS,
    cache: Path | None = None,
    sampling: bool = True,
    waiting: bool = True,
    variants: tuple[tuple[str, ...], ...] | None = None,
) -> Loaded:
    """Compile and load the programs; without ``sampling`` not those that sample, which take the verifier a second.

    With ``waiting`` calls are split into running, waiting and blocked where the kernel accounts for that.

    ``variants`` are the flags to try, one after the other; None: those that suit this kernel.

    Raises
    ------
    HostError
        No privilege, no bcc, or a kernel that refuses all programs; the message says which.
    """
    request = {
        "sources": [str(path) for path in bpf_sources()],
        "include": str(_PROBES / "bpf" / "include"),
        "sizes": map_sizes(memory_bytes, buckets),
        "modes": [[mode, _programs(mode)] for mode in modes],
        "site_programs": [probe.entry_at_site for probe in PROBE_KINDS.values() if probe.timed],
        "syscalls": dict(machine().syscalls),
        "selftest": True,
        "sampling": sampling,
        "cache": str(cache) if cache else None,
    }
    if variants is None:
        variants = VARIANTS if kernel_at_least(6, 12) else VARIANTS[1:]
    error = HostError("nothing was tried")
    for flags, split in itertools.product(variants, sorted({waiting, False}, reverse=True)):
        try:
            loaded = _tried(interpreter, request | {"flags": list(flags), "waiting": split})
            if cache is not None and sampling and modes == LINK_KINDS:
                kept = {"mode": loaded.mode, "notes": list(loaded.notes), "seconds": loaded.seconds}
                write_json(_kept_at(cache, interpreter), kept)
            return loaded
        except ProbeError as failed:  # an older verifier may need a shorter walk, or may trust no struct
            error = failed
    raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What came of loading these programs earlier in this boot."""

    mode: str
    notes: tuple[str, ...]
    seconds: float


def loaded_earlier(cache: Path, interpreter: str) -> Earlier | None:
    """Return what came of loading the same programs earlier in this boot; None if nothing is known of it."""
    kept = read_json(_kept_at(cache, interpreter))
    try:
        mode, notes = str(kept["mode"]), tuple(map(str, kept["notes"]))
        return Earlier(mode=mode, notes=notes, seconds=float(kept["seconds"]))
    except (KeyError, TypeError, ValueError):
        return None


def _kept_at(cache: Path, interpreter: str) -> Path:
    which = hashlib.sha256(f"{sources_digest()} {interpreter}".encode()).hexdigest()[:12]
    return cache / f"loaded-{this_boot()}-{which}.json"


def _tried(interpreter: str, request: dict[str, object]) -> Loaded:
    """Run the child, and again after a pause if it breaks."""
    for pause_s in PAUSES_S:
        try:
            return _run(interpreter, request)
        except HelperError:
            time.sleep(pause_s)
    return _run(interpreter, request)


def _run(interpreter: str, request: dict[str, object]) -> Loaded:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = str(_PROBES / "compiler" / "__main__.py")
    with ours, tempfile.TemporaryDirectory(prefix="specmine-") as folder, tempfile.TemporaryFile() as words:
        try:
            with theirs:
                child = subprocess.Popen(
                    [interpreter, "-I", "-B", script, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=words,
                    cwd=folder,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": folder, "HOME": folder},
                )
        except OSError as error:
            raise HostError(f"cannot run {interpreter}: {error.strerror}") from error
        try:
            ours.send(json.dumps(request).encode())
            _await_answer(ours, child.pid)
            data, fds = _receive(ours)
        except OSError as error:
            child.kill()
            raise HelperError(f"the compiling child did not answer: {error}") from error
        finally:
            child.wait()
        words.seek(0)
        noise = words.read().decode(errors="replace").strip().splitlines()
    if not data:
        failed = HelperError if child.returncode < 0 else ProbeError  # killed, or of itself
        raise failed("the compiling child ended without an answer: " + " | ".join(noise[-3:]))
    return _answered(json.loads(data), fds, interpreter, noise)


def _answered(answer: dict[str, object], fds: list[int], interpreter: str, noise: list[str]) -> Loaded:
    if not answer["ok"]:
        kind, text = answer["kind"], str(answer["error"])
        if kind == "bcc":
            raise HostError(f"{interpreter} has no bcc ({text})", remedy="install python3-bpfcc")
        refused = os.strerror(errno.EPERM)
        if kind == "permission" or any(refused in line for line in noise):  # bcc only prints why it made no map
            raise HostError(
                f"the kernel does not permit BPF ({text})", remedy="run as root or with CAP_BPF and CAP_PERFMON"
            )
        raise ProbeError(f"{text} {' | '.join(noise[-3:])}".strip())
    maps, programs = answer["maps"], answer["programs"]
    assert isinstance(maps, list) and isinstance(programs, list)
    names = [m["name"] for m in maps]
    return Loaded(
        mode=str(answer["mode"]),
        maps=dict(zip(names, fds, strict=False)),
        entries={m["name"]: m["entries"] for m in maps},
        programs=dict(zip(programs, fds[len(names) :], strict=True)),
        notes=tuple(str(n) for n in answer["notes"]) if isinstance(answer["notes"], list) else (),
        waiting=bool(answer["waiting"]),
        seconds=float(str(answer["seconds"])),
    )


def _await_answer(channel: socket.socket, pid: int) -> None:
    """Wait for the child's answer, or its end. TimeoutError if it is stopped, or takes too long."""
    stopped, until_s = 0, time.monotonic() + _TIMEOUT_S
    while not select.select([channel], [], [], LOOK_S)[0]:
        stopped = stopped + 1 if is_stopped(pid) else 0
        if stopped >= STOPPED_LOOKS or time.monotonic() > until_s:
            raise TimeoutError("it was stopped" if stopped else "it takes too long")


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    data, extra, _, _ = channel.recvmsg(1 << 18, socket.CMSG_SPACE(4 * 250))
    fds = array.array("i")
    for level, kind, payload in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(payload[: len(payload) - len(payload) % 4])
    return data, list(fds)
