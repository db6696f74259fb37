"""The configuration: one frozen tree with a default for every key.

``default.yaml`` in this folder shows every key with its default and what it does. A key in the file is the
attribute here without the unit at its end: ``windows.length: 10s`` is ``config.windows.length_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources

from specmine.mining.settings import MiningSettings

from .fields import (
    Reader,
    address,
    choice,
    duration,
    integer,
    key,
    mode,
    optional,
    path,
    ratio,
    size,
    socket_path,
    text,
    text_or_off,
    texts,
    users,
)

US, MS, SECOND, HOUR, DAY = 1_000, 1_000_000, 1_000_000_000, 3_600_000_000_000, 86_400_000_000_000
MIB, GIB = 1 << 20, 1 << 30
_words: Reader = texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One choice of programs: exactly one of ``exe``, ``pid``, ``unit`` and ``cgroup``, and whose processes count."""

    name: str | None = key(optional(text), None)
    """Its name in all output; by default what was chosen."""
    exe: str | None = key(optional(path), None)
    """Path of the executable: all its processes, also those that start later."""
    pid: int | None = key(optional(integer(1, 1 << 22)), None)
    unit: str | None = key(optional(text), None)
    """Unit of the host's systemd."""
    cgroup: str | None = key(optional(text), None)
    """Glob over cgroup paths below the cgroup mount."""
    user: tuple[int, ...] = key(users, ())
    """Only processes that these users started, by number; empty: of all users."""

    def __post_init__(self) -> None:
        """Check that one thing is chosen."""
        chosen = [way for way in ("exe", "pid", "unit", "cgroup") if getattr(self, way) is not None]
        if len(chosen) != 1:
            what = " and ".join(chosen) or "nothing"
            raise ValueError(f"choose a program by exactly one of exe, pid, unit and cgroup, not by {what}")
        if self.user and self.pid is not None:
            raise ValueError("user is for exe, unit and cgroup; a pid is one process")


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
    """Share of ``overhead`` reserved for checking assertions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How long one observation lasts."""

    calls: int = key(integer(100, 1_000_000), 1000)
    length_ns: int = key(duration(100 * MS, HOUR), 10 * SECOND)
    minimum_calls: int = key(integer(20, 1_000_000), 200)
    limit_ns: int = key(duration(100 * MS, DAY), 60 * SECOND)
    max_open_ns: int = key(duration(10 * MS, HOUR), 10 * SECOND)
    """A call that has not returned after this time is given up as censored."""

    def __post_init__(self) -> None:
        """Check the order of the values."""
        if self.limit_ns < self.length_ns:
            raise ValueError("limit is shorter than length")
        if self.calls < self.minimum_calls:
            raise ValueError("calls is less than minimum_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Violations:
    """When a violation closes, and when a new build counts as normal."""

    recover_after_ns: int = key(duration(SECOND, 30 * DAY), 300 * SECOND)
    """A violation closes when the function has held again for so long."""
    adopt_after_ns: int = key(duration(60 * SECOND, 3650 * DAY), DAY)
    """A new build is judged by the one before for so long, unless a person acknowledges what changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How hot functions are found."""

    rate: int = key(integer(1, 1000), 49)
    """Samples a second on each busy CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where the store is, and how much it holds."""

    path: str = key(path, "/var/lib/specmine/specmine.db")
    limit_bytes: int = key(size(MIB, 1024 * GIB), 512 * MIB)
    merge_after_ns: int = key(duration(SECOND, 365 * DAY), HOUR)
    """Observations older than this merge, ten to one."""
    merge_again_after_ns: int = key(duration(SECOND, 365 * DAY), DAY)
    """Merged ones older than this merge once more, ten to one."""

    def __post_init__(self) -> None:
        """Check the order of the values."""
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
    """Where the command line connects."""

    path: str = key(socket_path, "/run/specmine/specmined.sock")
    mode: int = key(mode, 0o666)
    group: str | None = key(optional(text), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSettings:
    """Experiments that the daemon runs on its host."""

    enabled: bool = True
    run: tuple[str, ...] | None = key(optional(_words), None)
    """Names, the most important first; None: all that a daemon repeats by default."""
    share: float = key(ratio(0.0, 0.1), 0.001)
    """CPU time of their load, as a share of one CPU, beyond an allowance of 15 CPU seconds at the start."""
    delay_ns: int = key(duration(0, DAY), 300 * SECOND)
    """None runs this soon after the start."""

    def __post_init__(self) -> None:
        """Check that the experiments exist."""
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
    wait_kind: bool = True
    """Look where and for what calls wait, while a violation is open or somebody asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """Where specmined-forward sends what was learned, and who observes what; the daemon itself connects to nothing."""

    connect: str | None = key(text_or_off, None)
    """Host, port and database as libpq writes them; None: nothing is sent."""
    role: str = key(text, "specmine:host")
    """The login of this host: the name in its certificate."""
    certificate: str = key(path, "/etc/specmine/fleet/host.crt")
    private_key: str = key(path, "/etc/specmine/fleet/host.key")
    authority: str = key(path, "/etc/specmine/fleet/ca.crt")
    every_ns: int = key(duration(SECOND, DAY), 300 * SECOND)
    """Between contacts, with ``--repeat``."""
    mode: str = key(choice("share", "send"), "share")
    """share: observe what the fleet asks for, leave to other hosts what they observe. send: only send."""
    own: float = key(ratio(0.0, 1.0), 0.25)
    """Share of the functions learned at a time that the fleet does not decide on."""
    spool_folder: str = key(path, "/var/lib/specmine-forward")
    """Where what cannot be sent yet waits, and what the fleet said."""
    spool_bytes: int = key(size(MIB, 1024 * GIB), 64 * MIB)


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
    violations: Violations = field(default_factory=Violations)
    sampling: Sampling = field(default_factory=Sampling)
    mining: MiningSettings = field(default_factory=MiningSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    metrics: Metrics = field(default_factory=Metrics)
    socket: Socket = field(default_factory=Socket)
    host_lock: str = key(path, "/run/specmine/host.lock")
    """The lock that lets one daemon run on a host."""
    kill_switch: str = key(path, "/run/specmine/off")
    """While a file of this path exists no probe is attached."""
    kernel: Kernel = field(default_factory=Kernel)
    experiments: ExperimentSettings = field(default_factory=ExperimentSettings)
    fleet: FleetSettings = field(default_factory=FleetSettings)
    log: Log = field(default_factory=Log)

    def __post_init__(self) -> None:
        """Check what depends on several sections."""
        if self.windows.minimum_calls < self.mining.minimum_calls:
            raise ValueError(
                f"windows.minimum_calls is {self.windows.minimum_calls}, less than the"
                f" {self.mining.minimum_calls} of mining.minimum_calls: such windows would never be judged"
            )


def default_text() -> str:
    """Return the text of the packaged ``default.yaml``."""
    return resources.files(__package__).joinpath("default.yaml").read_text(encoding="utf-8")
