"""The configuration: one frozen tree with a default for every key.

``default.yaml`` beside this file shows every key with its default and what it does. A key in the file is the
attribute here without the unit at its end: ``windows.length: 10s`` is ``config.windows.length_ns``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import resources
from typing import TypeVar

from specmine.mining.settings import MiningSettings

from .fields import (
    Reader,
    address,
    choice,
    duration,
    integer,
    key,
    key_name,
    mode,
    optional,
    path,
    ratio,
    size,
    text,
    texts,
)

US, MS, SECOND, HOUR, DAY = 1_000, 1_000_000, 1_000_000_000, 3_600_000_000_000, 86_400_000_000_000
MIB, GIB = 1 << 20, 1 << 30
_words: Reader = texts
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One choice of programs: exactly one of ``exe``, ``pid``, ``unit`` and ``cgroup``."""

    name: str | None = key(optional(text), None)
    """What to call it; by default what was chosen."""
    exe: str | None = key(optional(path), None)
    """Path of the executable: all its processes, also those that start later."""
    pid: int | None = key(optional(integer(1, 1 << 22)), None)
    unit: str | None = key(optional(text), None)
    """systemd unit."""
    cgroup: str | None = key(optional(text), None)
    """Glob over cgroup paths below the cgroup mount."""

    def __post_init__(self) -> None:
        """Check that one thing is chosen."""
        chosen = [way for way in ("exe", "pid", "unit", "cgroup") if getattr(self, way) is not None]
        if len(chosen) != 1:
            what = " and ".join(chosen) or "nothing"
            raise ValueError(f"choose a program by exactly one of exe, pid, unit and cgroup, not by {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """Hints about functions, as globs over their names."""

    watch: tuple[str, ...] = key(_words, ())
    ignore: tuple[str, ...] = key(_words, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What observing may cost."""

    overhead: float = key(ratio(0.0001, 1.0), 0.01)
    """CPU time added to the watched program's threads, as a share of theirs."""
    floor_ns: int = key(duration(0, SECOND), MS)
    """The same per second and program, below which ``overhead`` does not bind."""
    agent: float = key(ratio(0.0001, 1.0), 0.01)
    """CPU time of specmine's own processes, as a share of one CPU."""
    verification: float = key(ratio(0.0, 0.9), 1 / 3)
    """Share of ``overhead`` kept for checking what is known already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How long one observation lasts."""

    calls: int = key(integer(100, 1_000_000), 1000)
    length_ns: int = key(duration(100 * MS, HOUR), 10 * SECOND)
    minimum_calls: int = key(integer(20, 1_000_000), 200)
    limit_ns: int = key(duration(100 * MS, DAY), 60 * SECOND)
    max_open_ns: int = key(duration(10 * MS, HOUR), 10 * SECOND)
    """After this long a call without an end is given up as censored."""

    def __post_init__(self) -> None:
        """Check what must be ordered."""
        if self.limit_ns < self.length_ns:
            raise ValueError("limit is shorter than length")
        if self.calls < self.minimum_calls:
            raise ValueError("calls is less than minimum_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How hot functions are found."""

    rate: int = key(integer(1, 1000), 49)
    """Samples a second on each busy CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where knowledge is kept, and how much of it."""

    path: str = key(path, "/var/lib/specmine/specmine.db")
    limit_bytes: int = key(size(MIB, 1024 * GIB), 512 * MIB)
    merge_after_ns: int = key(duration(SECOND, 365 * DAY), HOUR)
    """Observations older than this merge, ten to one."""
    merge_again_after_ns: int = key(duration(SECOND, 365 * DAY), DAY)
    """Merged ones older than this merge once more, ten to one."""

    def __post_init__(self) -> None:
        """Check what must be ordered."""
        if self.merge_again_after_ns < self.merge_after_ns:
            raise ValueError("merge_again_after is shorter than merge_after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What Prometheus scrapes."""

    listen: tuple[str, int] | None = key(address, ("127.0.0.1", 9752))
    """Host and port; None: switched off."""
    series: int = key(integer(100, 1_000_000), 2000)
    """Most time series in one scrape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Socket:
    """Where the command line asks."""

    path: str = key(path, "/run/specmine/specmined.sock")
    mode: int = key(mode, 0o666)
    group: str | None = key(optional(text), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSettings:
    """What the daemon measures of the host itself."""

    enabled: bool = True
    run: tuple[str, ...] | None = key(optional(_words), None)
    """Names, the most important first; None: all that a daemon repeats by default."""
    share: float = key(ratio(0.0, 0.1), 0.001)
    """CPU time of their load, as a share of one CPU, beyond an allowance of 15 CPU seconds at the start."""
    delay_ns: int = key(duration(0, DAY), 300 * SECOND)
    """None runs this soon after the start."""

    def __post_init__(self) -> None:
        """Check that the experiments are there."""
        if self.run is None:
            return
        from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415  1 MB, for those who choose some

        unknown = [name for name in self.run if name not in EXPERIMENTS]
        if unknown:
            raise ValueError(f"run: there is no experiment {unknown[0]!r}; known: {', '.join(EXPERIMENTS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The kernel side."""

    memory_bytes: int = key(size(4 * MIB, 16 * GIB), 64 * MIB)
    """Most kernel memory for all BPF maps together."""
    interpreter: str = key(path, "/usr/bin/python3")
    """The Python that can import bcc."""
    waiting: bool = True
    """Split timed calls into running, waiting for a CPU and blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What is logged to stderr, and how."""

    level: str = key(choice("debug", "info", "warning", "error"), "info")
    format: str = key(choice("logfmt", "json"), "logfmt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration."""

    programs: tuple[Program, ...] = ()
    functions: Functions = field(default_factory=Functions)
    budget: Budget = field(default_factory=Budget)
    windows: Windows = field(default_factory=Windows)
    verify_every_ns: int = key(duration(SECOND, DAY), 60 * SECOND)
    """Every function with an assertion is observed again at least this often."""
    sampling: Sampling = field(default_factory=Sampling)
    mining: MiningSettings = field(default_factory=MiningSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    metrics: Metrics = field(default_factory=Metrics)
    socket: Socket = field(default_factory=Socket)
    host_lock: str = key(path, "/run/specmine/host.lock")
    """One daemon a host holds it."""
    kill_switch: str = key(path, "/run/specmine/off")
    """While there is a file of this path no probe is on."""
    kernel: Kernel = field(default_factory=Kernel)
    experiments: ExperimentSettings = field(default_factory=ExperimentSettings)
    log: Log = field(default_factory=Log)

    def __post_init__(self) -> None:
        """Check what must fit together across sections."""
        if self.windows.minimum_calls < self.mining.minimum_calls:
            raise ValueError(
                f"windows.minimum_calls is {self.windows.minimum_calls}, less than the"
                f" {self.mining.minimum_calls} of mining.minimum_calls: such windows would never be judged"
            )


RESTART_KEYS = (
    "programs",
    "sampling",
    "store.path",
    "metrics.listen",
    "socket",
    "host_lock",
    "kill_switch",
    "kernel",
    "windows.max_open",
    "log.format",
)
"""Keys, or beginnings of keys, that a reload cannot change."""


def default_text() -> str:
    """Return the text of the packaged ``default.yaml``."""
    return resources.files(__package__).joinpath("default.yaml").read_text(encoding="utf-8")


def changed_keys(old: Config, new: Config) -> tuple[str, ...]:
    """Return the full names of the keys whose values differ, in the order of the tree."""
    return tuple(_changed(old, new, ""))


def needs_restart(name: str) -> bool:
    """Tell whether a change of this key takes effect only after a restart."""
    return any(name == known or name.startswith(f"{known}.") for known in RESTART_KEYS)


def until_restart(old: Config, new: Config) -> Config:
    """Return the new configuration with the old values of the keys that take effect only after a restart.

    Raises
    ------
    ValueError
        If they do not fit together.
    """
    return _until_restart(old, new, "")


def _until_restart(old: Part, new: Part, prefix: str) -> Part:
    kept: dict[str, object] = {}
    for item in fields(old):  # type: ignore[arg-type]
        before, after = getattr(old, item.name), getattr(new, item.name)
        name = f"{prefix}{key_name(item.name)}"
        if needs_restart(name):
            kept[item.name] = before
        elif is_dataclass(before):
            kept[item.name] = _until_restart(before, after, f"{name}.")
    return replace(new, **kept)  # type: ignore[type-var]


def _changed(old: object, new: object, prefix: str) -> Iterator[str]:
    for item in fields(old) if is_dataclass(old) else ():
        before, after = getattr(old, item.name), getattr(new, item.name)
        name = f"{prefix}{key_name(item.name)}"
        if is_dataclass(before):
            yield from _changed(before, after, f"{name}.")
        elif before != after:
            yield name
