"""Which BPF programs and maps are loaded, for which kernel; a child compiles and loads them."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from specmine.model.errors import HostError, ProbeError
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.arch.machine import machine
from specmine.probes.holder.time_scale import TIME_SCALE

from .cache import read_json, this_boot, write_json
from .compiling_child import Answer, answer
from .maps import kernel_at_least
from .namespaces import own_pid_namespace
from .structs import MAX_SLOTS

_PROBES = Path(__file__).resolve().parents[1]
_SOURCES = (
    "prelude.h",
    "histogram.h",
    "layout.h",
    "verifier.h",
    "walk/unwind.h",
    "walk/scratch.h",
    "arch.h",
    "maps.h",
    "call/hit.h",
    "thread/process_ids.h",
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
    "blocked.bpf.c",
    "lifetimes.bpf.c",
)
"""In the order in which they are compiled, as one text; ``arch.h`` is the machine's."""
LINK_KINDS = ("session", "multi", "perf")
"""Kinds of uprobe link, best first."""
_COUNTING = "-DMAY_GOTO"
VARIANTS: tuple[tuple[str, ...], ...] = ((_COUNTING,), (), ("-DMAX_FRAMES=32",))
"""Flags to compile with, best first; the verifier counts rounds itself from 6.9 on, and without faults from 6.12."""
_SLOW = [f"-DHANDLER_LIMIT_NS={round(1024 * TIME_SCALE)}"] if TIME_SCALE > 1 else []
"""On a machine that is said to be slow a handler may take longer before it counts as interrupted."""
_MIB = 1 << 20
PATHS, SAMPLING = "paths", "sampling"
"""Groups of programs that may be loaded later: the verifier takes four times as long for them as for all others."""


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
    wakeups: bool = False
    """The program at the switch tracepoint may be attached to that of wake-ups, too."""
    later: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Group of programs -> the request that loads it; empty if all are loaded."""

    def close(self) -> None:
        """Close all fds; what holds no link is freed by the kernel."""
        for fd in (*self.maps.values(), *self.programs.values()):
            os.close(fd)


def _programs(mode: str, by_path: Iterable[bool]) -> list[str]:
    """Return the programs of timing probes over a kind of link, of those with call paths or without."""
    kinds = [probe.programs[mode] for probe in PROBE_KINDS.values() if probe.timed and probe.by_path in by_path]
    return [name for programs in kinds for name in (programs.entry, programs.back) if name]


def _calls(modes: Iterable[str], by_path: Iterable[bool]) -> dict[str, Any]:
    """Return the part of a request that tells which programs for calls are wanted."""
    probes = [probe for probe in PROBE_KINDS.values() if probe.timed and probe.by_path in by_path]
    return {
        "modes": [[mode, _programs(mode, by_path)] for mode in modes],
        "site_programs": [probe.entry_at_site for probe in probes],
    }


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
    postponing: bool = False,
    variants: tuple[tuple[str, ...], ...] | None = None,
) -> Loaded:
    """Compile and load the programs; without ``sampling`` not those that sample: the verifier takes long for them.

    With ``waiting`` calls are split into running, waiting and blocked where the kernel accounts for that. With
    ``postponing`` the groups ``Loaded.later`` are left for later, if all of them were loaded earlier in this boot:
    else this kernel may refuse them, and has to get other programs.

    ``variants`` are the flags to try, one after the other; None: those that suit this kernel.

    Raises
    ------
    HostError
        No privilege, no bcc, or a kernel that refuses all programs; the message says which.
    HelperError
        The child was killed, or stopped, again and again.
    """
    common = {
        "sources": [str(path) for path in bpf_sources()],
        "include": str(_PROBES / "bpf" / "include"),
        "sizes": map_sizes(memory_bytes, buckets),
        "syscalls": dict(machine().syscalls),
        "cache": str(cache) if cache else None,
        "pid_namespace": own_pid_namespace(),
    }
    if variants is None:
        variants = VARIANTS if kernel_at_least(6, 12) else VARIANTS[1:]
    ways = list(itertools.product(variants, sorted({waiting, False}, reverse=True)))
    earlier = loaded_earlier(cache, interpreter) if postponing and cache is not None and modes == LINK_KINDS else None
    error = HostError("nothing was tried")
    if earlier is not None and (earlier.flags, earlier.waiting) in ways:
        try:
            return _loaded_first(interpreter, common, earlier, sampling=sampling)
        except ProbeError as failed:
            error = failed
    for flags, split in ways:
        request = common | {"flags": [*flags, *_SLOW], "waiting": split, "following": True, "sampling": sampling}
        try:
            made = answer(interpreter, request | _calls(modes, (False, True)))
        except ProbeError as failed:  # an older verifier may need a shorter walk, or may trust no struct
            error = failed
            continue
        if cache is not None and sampling and modes == LINK_KINDS:
            record = Earlier(
                mode=made.mode, notes=made.notes, seconds=made.seconds, flags=flags, waiting=split, fields=made.fields
            )
            write_json(_kept_at(cache, interpreter), asdict(record))
        return _loaded(made, made.notes, flags)
    raise error


def _loaded_first(interpreter: str, common: Mapping[str, Any], earlier: Earlier, *, sampling: bool) -> Loaded:
    """Load what the first probes need, as it was loaded earlier."""
    same = {**common, "flags": [*earlier.flags, *_SLOW], "waiting": earlier.waiting, "fields": earlier.fields}
    made = answer(interpreter, same | _calls([earlier.mode], (False,)) | {"following": True, "sampling": False})
    more = same | {"following": False, "maps": list(made.maps)}
    later = {PATHS: more | _calls([earlier.mode], (True,)) | {"sampling": False}}
    if sampling:
        later[SAMPLING] = more | _calls([], ()) | {"sampling": True}
    return _loaded(made, earlier.notes, earlier.flags, later)


def _loaded(
    made: Answer, notes: tuple[str, ...], flags: Sequence[str], later: Mapping[str, Mapping[str, Any]] | None = None
) -> Loaded:
    return Loaded(
        mode=made.mode,
        maps=made.maps,
        entries=made.entries,
        programs=made.programs,
        notes=notes,
        seconds=made.seconds,
        waiting=made.waiting,
        wakeups=_COUNTING in flags,
        later=later or {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What came of loading these programs earlier in this boot."""

    mode: str
    notes: tuple[str, ...]
    seconds: float
    flags: tuple[str, ...] = ()
    waiting: bool = False
    """It was asked for that calls are split."""
    fields: bool = True
    """The programs may read fields of the kernel's structs."""


def loaded_earlier(cache: Path, interpreter: str) -> Earlier | None:
    """Return what came of loading the same programs earlier in this boot; None if nothing is known of it."""
    kept = read_json(_kept_at(cache, interpreter))
    try:
        return Earlier(
            mode=str(kept["mode"]),
            notes=tuple(map(str, kept["notes"])),
            seconds=float(kept["seconds"]),
            flags=tuple(map(str, kept["flags"])),
            waiting=bool(kept["waiting"]),
            fields=bool(kept["fields"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _kept_at(cache: Path, interpreter: str) -> Path:
    which = hashlib.sha256(f"{sources_digest()} {interpreter}".encode()).hexdigest()[:12]
    return cache / f"loaded-{this_boot()}-{which}.json"
