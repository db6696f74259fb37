"""The values that pass between the kernel side and the daemon: requests down, batches up.

A batch is the unit of recording and replay: all that the daemon learns from the kernel side is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .function import Function, Reason
from .observation import Kind, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What one hit costs the watched thread on this host, in ns, as calibrated (see calibration.py)."""

    count_ns: float
    """Entry probe that only counts."""
    time_ns: float
    """Entry and return, duration into the histogram."""
    path_ns: float
    """The same with the call path of 20 frames."""
    stepped_ns: float
    """What a single-stepped probe site adds to each of them."""
    sample_ns: float
    """One sample of the CPU clock with its stack."""
    bias_ns: float
    """What the probes add to a measured duration."""
    site_bias_ns: float = 0.0
    """The same where returns are timed by probes at return sites."""
    stepped_bias_ns: float = 0.0
    """What a single-stepped entry adds to them: the step lies behind the start."""
    bias_uncertainty: float = 0.0
    """How well the bias is known, relative to it."""
    count_mean_ns: float = 0.0
    """What a counting probe adds to the duration of a call around it: the mean, not what a budget plans with."""
    entry_mean_ns: float = 0.0
    """The same of the entry of a timed call, over links that replace return addresses."""
    return_mean_ns: float = 0.0
    site_entry_mean_ns: float = 0.0
    """The same where returns are timed at return sites."""
    site_return_mean_ns: float = 0.0
    stepped_mean_ns: float = 0.0
    handler_ns: float = 0.0
    """What the return's handler itself takes in calibration's loop; longer ones tell of cold caches."""
    path_handler_ns: float = 0.0
    """The same with the call path."""
    site_handler_ns: float = 0.0
    """The same at a return site."""
    untimed_ns: float = 0.0
    """Price of a call that is counted but not chosen for timing; 0: there is no choosing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """One exec of a program, with the processes it forked without exec."""

    id: str
    """``BOOTID:PID:STARTTICKS`` of the exec."""
    pid: int
    executable: str
    build_id: str
    start_ns: int
    """When specmine first saw it, CLOCK_MONOTONIC ns."""
    processes: int
    """Processes of it that live now; 0: it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What the source knows when its probes are loaded."""

    now_ns: int
    host: Mapping[str, str]
    """hostname, kernel, boot_id, cpus, link (session|multi|perf), threads, unwinder, utc_offset_ns."""
    prices: Prices
    lifetimes: tuple[Lifetime, ...] = ()
    notes: tuple[str, ...] = ()
    """Fallbacks taken on this kernel, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What one watched function's probes did since the last batch."""

    function: str
    kind: Kind
    watched_ns: int
    """How long its entry probe was on since the last batch."""
    hits: int
    """Traps taken by the program: entries and returns."""
    calls: int
    cost_ns: float
    """Predicted cost inside the program: hits by their prices."""
    limited: bool = False
    """True if the kernel's bucket ran empty and the probe was taken off before its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSample:
    """Where wall-clock time went, for one function, in the sampling since the last batch."""

    function: str
    samples: int
    """Samples in which it stood on a stack."""
    on_cpu_ns: float
    """Time on CPU with the function innermost."""
    off_cpu_ns: float
    """Time blocked with the function innermost."""
    inclusive_ns: float
    """Wall-clock time, on CPU and blocked, with the function anywhere on the stack."""
    callers: tuple[tuple[str, float], ...] = ()
    """Keys of its callers with the inclusive time over each, largest first."""
    loop_bottom: bool = False
    """True if nearly all of its time is waiting directly under a thread's main loop."""
    cpu_samples: int = 0
    """Samples of the CPU clock with the function innermost."""
    callee_ns: float = 0.0
    """The part of the inclusive time that lies in one function it calls, the one with most of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A function that must not or cannot be probed in this way."""

    function: str
    kind: Kind
    """The cheapest kind refused; dearer ones are refused with it."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Running totals since the start."""

    overhead_ns: float = 0.0
    """Predicted CPU time added to the watched program's threads."""
    program_cpu_ns: int = 0
    """CPU time of the watched program while it was watched."""
    agent_ns: int = 0
    """CPU time of specmine's own processes, and what following waits costs programs that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSamples:
    """Durations of single calls of a function in one lifetime, ns, the probes' own cost taken off.

    One told later takes the place of one told before.
    """

    function: str
    lifetime: str
    calls: int
    """Timed calls of which ``sample`` is a sample."""
    first: tuple[int, ...] = ()
    """Calls in a row in the order of their ends, from one window's start; empty if only some calls were timed."""
    sample: tuple[int, ...] = ()
    """A fair sample, in no order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """All that was learned from the kernel side since the batch before.

    A function's description comes in ``functions`` no later than the first batch that mentions its key.
    """

    now_ns: int
    observations: tuple[Observation, ...] = ()
    activity: tuple[Activity, ...] = ()
    call_samples: tuple[CallSamples, ...] = ()
    hot_samples: tuple[HotSample, ...] = ()
    runtime: tuple[HotSample, ...] = ()
    """Where time went in code made at run time, which no file holds; of no function."""
    functions: tuple[Function, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    """Those that started, ended or changed their number of processes."""
    bystander_hits: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    """Running totals of what did not fit: paths, stacks, threads, events ..."""
    unwinding: Mapping[str, int] = field(default_factory=dict)
    """Running totals of stacks by outcome: complete, and each way to be incomplete."""
    row_bytes: int = 0
    """Kernel memory that holds unwind rows now."""
    spent: Spent = field(default_factory=Spent)
    ended: bool = False
    """No process of the chosen programs is left, and none can come."""
    exit_status: int | None = None
    """Of a program that specmine started itself; -signal if a signal ended it."""
    due_ns: int = 0
    """When something must be done at a probe: poll again by then; 0: nothing is to be done at a certain time."""
    switched_off: bool = False
    """The kill switch is on: no probe is, and none will be before it is off."""
    prices: Prices | None = None
    """Measured anew, valid from now on; None: as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Request: collect ``kind`` at a function, in windows; replaces an earlier request for it.

    A window becomes an observation when it holds ``window_calls`` timed calls, or is ``window_ns`` old and
    holds ``minimum_calls``, or is ``limit_ns`` old. Kind COUNT gives activity, no observations.
    """

    function: str
    kind: Kind
    window_calls: int = 1000
    window_ns: int = 10_000_000_000
    minimum_calls: int = 200
    limit_ns: int = 60_000_000_000
    timed_share: float = 1.0
    """Share of the calls that is timed, each by chance; the others are counted. Not of unsampled functions."""
    on_ns: int = 0
    """Length of a duty cycle's on-phase; 0: always on."""
    period_ns: int = 0
    """Mean distance of on-phases, which begin at random times."""
    hits_per_second: float = 0.0
    """Refill of the kernel's bucket; 0: no limit."""
    burst_hits: int = 0
    """Size of the kernel's bucket, also its content at the start of an on-phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwatch:
    """Request: take the function's probes off; an unfinished window is dropped unless it holds enough."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Request: sample where time goes, at this rate per busy CPU; 0 switches it off."""

    hertz: int


Request = Watch | Unwatch | Sampling


class Source(Protocol):
    """The kernel side as the daemon's loop sees it; recordings and fakes stand in for it."""

    def start(self) -> Started:
        """Load the programs, find the processes. Raises ProbeError if this host cannot."""
        ...

    def poll(self, now_ns: int) -> Batch:
        """Return what was learned since the last call. Never blocks longer than a few ms."""
        ...

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is something to poll for at once; -1: none."""
        ...

    def apply(self, request: Request) -> None:
        """Carry out a request; what fails comes back as a Refusal in a later batch."""
        ...

    def close(self) -> None:
        """Take every probe off, within a second."""
        ...
