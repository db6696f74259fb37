"""The values that pass between the kernel side and the daemon: requests down, batches up.

A batch is the unit of recording and replay: all that the daemon learns from the kernel side is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

from .function import Function, Reason
from .host.cpu_shortage import CpuShortage
from .inside.waits import Waits
from .observation import Kind, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What one hit costs the watched thread on this host, in ns, as calibrated (see ``probes/calibration``)."""

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
    """What a single-stepped entry adds to both: the step happens after the start of the duration."""
    bias_uncertainty: float = 0.0
    """Uncertainty of the bias, relative to it."""
    count_mean_ns: float = 0.0
    """Mean time that a counting probe adds to the duration of a call around it; budgets plan with ``count_ns``."""
    entry_mean_ns: float = 0.0
    """The same for the entry of a timed call, if the link replaces return addresses."""
    return_mean_ns: float = 0.0
    site_entry_mean_ns: float = 0.0
    """The same where returns are timed at return sites."""
    site_return_mean_ns: float = 0.0
    stepped_mean_ns: float = 0.0
    handler_ns: float = 0.0
    """Run time of the return's handler in the loop of calibration; a longer one shows cold caches."""
    path_handler_ns: float = 0.0
    """The same with the call path."""
    site_handler_ns: float = 0.0
    """The same at a return site."""
    untimed_ns: float = 0.0
    """Price of a call that is counted but not chosen for timing; 0: every call is timed."""


def boot_of(lifetime: str) -> str:
    """Return the boot id that a lifetime's id begins with."""
    return lifetime.split(":", maxsplit=1)[0]


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
    program: str = ""
    """What people call it: the name that the configuration gives, else the base name of what was executed."""
    chosen: str = ""
    """How the configuration names or describes the choice that it fits."""

    @property
    def called(self) -> str:
        """Name of its program; of one recorded without a name the base name of its file."""
        return self.program or PurePath(self.executable.removesuffix(" (deleted)")).name

    @property
    def boot_id(self) -> str:
        """Boot of the host that it ran in."""
        return boot_of(self.id)


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
    """How long its entry probe was attached since the last batch."""
    hits: int
    """Traps taken by the program: entries and returns."""
    calls: int
    cost_ns: float
    """Predicted cost inside the program: hits by their prices."""
    limited: bool = False
    """True if the kernel's token bucket ran empty and the probe was detached early."""
    timed: int = 0
    """Calls whose duration was taken; 0 in recordings of earlier versions."""
    missed: bool = False
    """True if calls may have gone uncounted: its probes went and came back, or other processes were chosen."""
    part: float = 1.0
    """Share of the processes with the function that its probes are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSample:
    """Where wall-clock time went, for one function, in the sampling since the last batch."""

    function: str
    samples: int
    """Samples with the function on a stack."""
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
    """Samples of the CPU clock with the function innermost ..."""
    busy_samples: int = 0
    """... and anywhere on the stack."""
    callee_ns: float = 0.0
    """Inclusive time within one callee, the one with most of it, times the share of that one's time that comes from
    here: what two functions have in common that say the same."""
    is_wrapper: bool = False
    """True if it stands on no stack, but jumps to a function that does: of all the samples of that one, how many came
    through this one is not known."""
    looks: int = 0
    """Looks at all blocked threads that saw one in it; 0 also where waits are followed instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A function that must not or cannot be probed in this way."""

    function: str
    kind: Kind
    """The cheapest kind refused; more expensive kinds are refused with it."""
    reason: Reason


PURPOSES: Mapping[str, str] = {
    "durations": "calls whose duration is in an observation",
    "open": "timed calls of windows that are open, or were given up",
    "untimed": "calls that were counted beside timed ones",
    "unlearnt": "calls that return to places without a probe, which is how such places are found",
    "passing": "other calls and jumps that pass the return sites of timed functions",
    "counting": "calls that were counted before any is timed",
    "sampling": "samples of stacks, and following waits",
    "exits": "exceptions and jumps out of calls",
}
"""What overhead is spent on: the ledger's names, and what each means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Running totals since the start."""

    overhead_ns: float = 0.0
    """Predicted CPU time added to the watched program's threads."""
    program_cpu_ns: int = 0
    """CPU time of the watched programs while they were watched ..."""
    cpu_by_program: Mapping[str, int] = field(default_factory=dict)
    """... of each, by its name; empty in recordings of earlier versions."""
    agent_ns: int = 0
    """CPU time of specmine's own processes, and what following waits costs programs that nobody watches."""
    loading_ns: int = 0
    """The part of it that took the programs which were loaded after the start."""
    purposes: Mapping[str, float] = field(default_factory=dict)
    """``overhead_ns`` by what it was for: the names in ``PURPOSES``; empty in recordings of earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSamples:
    """Durations of single calls of a function in one lifetime, ns, less the probes' own cost.

    A later value replaces an earlier one of the same function and lifetime.
    """

    function: str
    lifetime: str
    calls: int
    """Timed calls of which ``sample`` is a sample."""
    first: tuple[int, ...] = ()
    """Consecutive calls from the start of a window, in the order of their ends; empty if only some were timed."""
    sample: tuple[int, ...] = ()
    """A uniform random sample, in no order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """All that the kernel side reports since the batch before.

    A function's description comes in ``functions`` no later than the first batch that mentions its key.
    """

    now_ns: int
    observations: tuple[Observation, ...] = ()
    activity: tuple[Activity, ...] = ()
    call_samples: tuple[CallSamples, ...] = ()
    hot_samples: tuple[HotSample, ...] = ()
    waits: tuple[Waits, ...] = ()
    """Where calls waited, of functions for which that was asked."""
    runtime: tuple[HotSample, ...] = ()
    """Where time went in code made at run time. No file holds it, so it belongs to no function."""
    functions: tuple[Function, ...] = ()
    mapped: tuple[str, ...] = ()
    """Builds, of programs and of libraries, of which a process maps a file that none did before."""
    unmapped: tuple[str, ...] = ()
    """Builds of which no process has mapped any file for a while: what is known of their functions is forgotten here,
    and told again if they come back."""
    refusals: tuple[Refusal, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    """Those that started, ended or changed their number of processes."""
    bystander_hits: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    """Running totals of what did not fit into bounded memory: paths, stacks, threads, events ..."""
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
    """When a probe must be changed: poll again by then; 0: no change is planned."""
    safety_ns: int = 0
    """When it must be looked whether probes are still safe, whatever our own CPU time; 0: at no certain time."""
    switched_off: bool = False
    """The kill switch exists: no probe is attached until it is removed."""
    prices: Prices | None = None
    """New prices, valid from now on; None: as before."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """Running totals: how often each of specmine's own processes broke and was started anew."""
    resident: Mapping[str, int] = field(default_factory=dict)
    """Bytes of memory of the processes that serve the kernel side, by name."""
    notes: tuple[str, ...] = ()
    """What broke and what that cost, one sentence each, since the batch before."""
    utc_offset_ns: int | None = None
    """What to add to the clock of the kernel's events to get UTC, if that has changed: the clock was set, or the host
    was suspended."""
    host_busy_ns: int = 0
    """Time since the boot in which CPUs of the host were busy, with whatever, summed over them; 0: not known."""
    cpu_shortages: tuple[CpuShortage, ...] = ()
    """What kept each program from CPU time since the last look; () where there was no look."""
    breakpoints: int = -1
    """Breakpoints seen in the programs' code while the kill switch is on; -1: not all was looked at, or it is off."""


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
    """Probability with which a call is timed; the others are only counted. 1 for unsampled functions."""
    on_ns: int = 0
    """Length of a duty cycle's on-phase; 0: the probe is always attached."""
    period_ns: int = 0
    """Mean distance of on-phases, which begin at random times."""
    hits_per_second: float = 0.0
    """Refill rate of the kernel's token bucket; 0: no limit."""
    burst_hits: int = 0
    """Size of the token bucket, and its content at the start of an on-phase."""
    cost_ns: float = 0.0
    """What a first look may cost: where its hits turn out to be single-stepped, fewer of them are allowed; 0: any."""
    program: str = ""
    """Only calls of this program's lifetimes; '': of any watched one."""
    inside_of: str = ""
    """Key of the function whose calls are looked into: its own, or that of a caller. Callees have no on-phases of their
    own then: they are on in those of that function. '': no calls are looked into."""

    @property
    def looks_inside(self) -> bool:
        """Tell whether the calls of this function are looked into."""
        return self.inside_of == self.function

    @property
    def follows(self) -> bool:
        """Tell whether the probes are on in the on-phases of a caller only."""
        return bool(self.inside_of) and not self.looks_inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwatch:
    """Request: detach the function's probes; an unfinished window is dropped unless it holds enough calls."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Request: sample where time goes, at this rate per busy CPU; 0 switches it off."""

    hertz: int
    waits: int = 20
    """Waits a second whose stacks are walked at most, after the first two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowWaits:
    """Request: find out where the calls of these functions wait, from time to time; of no others."""

    functions: tuple[str, ...]
    cost_ns: float = 0.0
    """What that may cost the watched programs in a second, on average over phases and pauses, ns; 0: no matter what."""


Request = Watch | Unwatch | Sampling | FollowWaits


class Source(Protocol):
    """The kernel side as the daemon's loop sees it; recordings and fakes stand in for it."""

    def start(self) -> Started:
        """Load the programs, find the processes. Raises ProbeError if this host cannot."""
        ...

    def poll(self, now_ns: int) -> Batch:
        """Return what happened since the last call. Never blocks longer than a few ms."""
        ...

    def fileno(self, *, urgent: bool = False) -> int:
        """Return a descriptor that is readable when there is something to poll for at once; -1: none.

        ``urgent``: only when a watched process may have to be left alone, or is new.
        """
        ...

    def apply(self, request: Request) -> None:
        """Carry out a request; a later batch reports a failure as a Refusal."""
        ...

    def close(self) -> None:
        """Detach every probe, within a second."""
        ...
