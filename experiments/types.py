"""The values of host experiments: what a load is, what was measured, what was derived.

After Hauck, "Automated Experiments for Deriving Performance-relevant Properties of Software Execution
Environments" (2013), chapter 4: an experiment is data and two pure functions. ``plan`` says which load comes next,
given what the loads before have shown; ``derive`` turns all of it into one property. Nothing here touches the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from specmine.model.function import Reason

MS, SECOND = 1_000_000, 1_000_000_000

Kind = Literal["integer", "float", "sort", "memory", "sleep", "read", "write", "clock", "syscall", "pingpong"]
DEMANDS: tuple[Kind, ...] = ("integer", "float", "sort", "memory")
"""Kinds whose amount is in units of equal work and can be calibrated to a CPU time."""
Samples = NDArray[np.int64]
"""(n, 3): start and end of a gap or an iteration, ns of CLOCK_MONOTONIC, and the CPU."""

POLICIES = {"other": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5}
REAL_TIME = ("fifo", "rr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that a task does."""

    kind: Kind
    amount: int
    """Units of a demand, ns of a sleep, bytes of the disk, times of the rest."""
    random: Literal["", "uniform", "exponential"] = ""
    """'' always as much; uniform from 0 to ``amount``; exponential with mean ``amount``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One process of a load. Without steps it reads the clock in a loop."""

    name: str
    steps: tuple[Step, ...] = ()
    sensor: Literal["none", "gaps", "times", "calibrate"] = "none"
    """gaps: every pause of the clock loop; times: every iteration; calibrate: units for a CPU time."""
    leads: bool = False
    """The load ends when all tasks that lead have ended."""
    cpu: int | None = None
    nice: int = 0
    policy: str = "other"
    slice_ns: int = 0
    """Slice asked for by ``sched_setattr`` (Linux 6.12), 0: the default one."""
    slack_ns: int = 0
    group: str = "run"
    """Leaf of the control group: equal weights within one, each leaf weighs the same."""
    seconds: float = 1.0
    delay: float = 0.0
    iterations: int = 0
    """0: as many as fit into ``seconds``."""
    threshold_ns: int = 300_000
    """Shortest gap that counts."""
    capacity: int = 16384
    changed: bool = False
    """End ``final`` iterations after the times have changed."""
    window: int = 8
    final: int = 0
    forks: int = 0
    """So many children of ``fork_units`` integer units, one at a time, while it iterates."""
    fork_units: int = 0
    partner: int | None = None
    """CPU of the other thread of a ping-pong."""
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Tasks that begin together. Without tasks only the host's counters are read."""

    tasks: tuple[Task, ...] = ()
    seconds: float = 1.0
    """How long counters are read, if there are no tasks."""
    sample_every: float = 0.0
    """Read the host's counters this often while it runs; 0: at its ends."""
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """CPU limit by leaf of the control group: (quota, period), ns."""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """What one task measured."""

    task: Task
    start_ns: int
    end_ns: int
    cpu_ns: int
    samples: Samples
    births: Samples = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """Children: their times, and the CPU each began on."""
    waited_ns: int = -1
    """Time runnable without a CPU, as the kernel reports it; -1 if it does not."""
    involuntary: int = 0
    lost: int = 0

    @property
    def elapsed_ns(self) -> int:
        """Wall time from the first to the last iteration."""
        return self.end_ns - self.start_ns

    @property
    def durations(self) -> NDArray[np.int64]:
        """Length of each gap or iteration, ns."""
        lengths: NDArray[np.int64] = self.samples[:, 1] - self.samples[:, 0]
        return lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The host's counters at one moment; times in seconds since boot, or what the host counts in."""

    at_ns: int
    busy: Mapping[int, float]
    """Seconds of each CPU, idle, iowait and steal left out."""
    steal: Mapping[int, float] = field(default_factory=dict)
    interrupts: Mapping[int, int] = field(default_factory=dict)
    """Local timer interrupts of each CPU."""
    disk_bytes: int = 0
    network_bytes: int = 0
    pressure: Mapping[str, float] = field(default_factory=dict)
    """Seconds stalled, by resource (PSI, ``some``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRun:
    """A load that was run."""

    load: Load
    tasks: tuple[TaskRun, ...] = ()
    counters: tuple[Counters, ...] = ()
    throttled: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By leaf: times throttled and ns throttled, meanwhile."""
    own_ns: int = 0
    """CPU time of the controller meanwhile."""

    def task(self, name: str) -> TaskRun:
        """Return the run of the task with this name."""
        return next(each for each in self.tasks if each.task.name == name)

    @property
    def leaders(self) -> tuple[TaskRun, ...]:
        """Runs of the tasks that lead."""
        return tuple(each for each in self.tasks if each.task.leads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the kernel reports of this host: the ground truth where there is one."""

    cpus: tuple[int, ...]
    """CPUs that this process may use."""
    kernel: str = ""
    boot_id: str = ""
    cpu_model: str = ""
    hertz: int = 250
    """Timer ticks a second."""
    slice_ns: int = 0
    """Slice of a fair task; 0 if the kernel does not report it."""
    rr_slice_ns: int = 0
    siblings: tuple[tuple[int, ...], ...] = ()
    """Groups of CPUs that share a core, as the kernel reports them."""
    quota: tuple[int, int] | None = None
    """Tightest CPU limit above this process: (quota, period), ns."""
    slack_ns: int = 50_000
    clocksource: str = ""
    virtual: str = ""
    """Kind of hypervisor as far as it shows, '' for none."""

    @property
    def tick_ns(self) -> int:
        """Time between two ticks."""
        return SECOND // self.hertz

    @property
    def cores(self) -> float:
        """CPUs that the affinity and the limit leave."""
        limit = self.quota[0] / self.quota[1] if self.quota else float(len(self.cpus))
        return min(float(len(self.cpus)), limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a plan may use."""

    host: Host
    cpus: tuple[int, ...]
    """The CPUs to load, quietest first."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    units: Mapping[tuple[Kind, int], int] = field(default_factory=dict)
    """Calibrated units by kind and wanted ns."""
    earlier: Mapping[str, Any] = field(default_factory=dict)
    """Valid values of other experiments, by name."""

    def demand(self, kind: Kind, ns: int) -> Step:
        """Return a calibrated step."""
        return Step(kind=kind, amount=self.units[kind, ns])


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition without which the value would not be believed."""

    name: str
    value: float
    low: float
    high: float

    @property
    def ok(self) -> bool:
        """True if the value lies within the bounds."""
        return self.low <= self.value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was derived."""

    value: float | str | None = None
    interval: tuple[float, float] | None = None
    """95 % unless the evidence says otherwise."""
    ground_truth: float | str | None = None
    samples: int = 0
    checks: tuple[Check, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    reason: Reason | None = None
    """Set if no value could be derived, or if there is none (then with ``conclusive``)."""
    conclusive: bool = False
    """There is no value, for certain: the host has no such property."""


Plan = Callable[[Context, tuple[LoadRun, ...]], Load | None]
Derive = Callable[[Context, tuple[LoadRun, ...]], Finding]
Demands = Callable[[Context], tuple[tuple[Kind, int], ...]]
Recall = Callable[[Mapping[str, Any], Host], Mapping[str, Any]]


def _no_demands(_: Context) -> tuple[tuple[Kind, int], ...]:
    return ()


def _nothing(_last: Mapping[str, Any], _host: Host) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment."""

    name: str
    summary: str
    unit: str
    """Base unit of the value, '' for a word or a ratio."""
    plan: Plan
    derive: Derive
    demands: Demands = _no_demands
    """Demands to calibrate before: kind and ns."""
    forces: tuple[str, ...] = ()
    """Parameters that make it measure what was asked for instead of the host: such a result is no property of it."""
    without: bool = False
    """It goes on without demands that could not be calibrated: they only check its value."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What can be set, with defaults; the type of the default is the type of the value."""
    recall: Recall = _nothing
    """Returns the parameters that it takes from its own last result."""
    requires: tuple[str, ...] = ()
    """Experiments whose values it uses; they come first."""
    cpus: Literal["none", "one", "two", "all"] = "one"
    """How many CPUs it loads. None: it only reads counters."""
    weight: Literal["lowest", "ordinary"] = "lowest"
    """Ordinary: its effect exists only at ordinary weight, so it affects others and runs only on request."""
    cost: float = 1.0
    """CPU seconds of a usual run."""
    hours: float = 6.0
    """How often a daemon repeats it; 0: once a boot, or when the host changed; below 0: only when asked for."""
    rank: int = 100
    """Its place among those that a daemon repeats, the smallest first."""
    limit: float = 5.0
    """Most seconds of load in one run."""
    contamination: float = 0.05
    """Most CPU time of others on the CPUs used, as a share of the run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Properties of the host's environment that it measures: 'value', or the key of its evidence that has them."""
    needs_groups: bool = False
    """It compares or limits control groups."""
