"""Which functions are worth measuring, and in what order: those where wall-clock or CPU time goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from specmine.daemon.config.settings import SECOND
from specmine.model.function import Function

from .function import FunctionState
from .sampling.profile import Profile

FIRST_LOOK_NS = 1_000 * 1_000_000
"""Sampling lasts this long before the first function is chosen."""
WORTH_SHARE = 0.005
"""Share of wall-clock or of CPU time from which a function is worth a probe."""
MANY_CPU_NS = 2 * SECOND
"""CPU time sampled from which a single sample is chance."""
IDLE_WAITS = frozenset(
    {
        "accept", "accept4", "clock_nanosleep", "epoll_pwait", "epoll_pwait2", "epoll_wait", "io_getevents", "kevent",
        "nanosleep", "pause", "poll", "ppoll", "pselect", "pthread_cond_clockwait", "pthread_cond_timedwait",
        "pthread_cond_wait", "select", "sem_clockwait", "sem_timedwait", "sem_wait", "sigsuspend", "sigtimedwait",
        "sigwait", "sigwaitinfo", "sleep", "usleep", "__clock_nanosleep", "__futex_abstimed_wait64",
        "__futex_abstimed_wait_cancelable64", "__futex_abstimed_wait_common", "__futex_abstimed_wait_common64",
        "__nanosleep",
    }
)  # fmt: skip
"""Functions of the C library that wait for work or for time to pass."""
DISK = frozenset({"fsync", "fdatasync", "msync", "sync_file_range", "syncfs", "write", "pwrite", "pwrite64", "writev"})
"""Waits for a disk are no waits for work, not even at the bottom of a thread's main loop."""
ONLY_WAITS = 0.9
"""A function with so much of its time in waits for work has nothing to tell before all others are known."""
WORKING = 0.5
"""A function that waits for less of its time works, unless it is a main loop: that is never called."""
_CALLED = 0.05
"""Weight of the time in callees, compared with the function's own: a slower call shows in its callers, too."""
HALF_LIFE_NS = 60 * SECOND
"""A time profile fades by half in this time ..."""
LEAST_CPU_NS = 5 * SECOND
"""... while it holds more than so much CPU time: of a program that uses little, a minute shows too few samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All the time that sampling found."""

    wall_ns: float
    cpu_ns: float


def total_of(functions: Iterable[FunctionState], runtime: Profile | None = None) -> Total:
    """Add up the time of all functions, and of code made at run time."""
    wall_ns = cpu_ns = 0.0
    for function in functions:
        wall_ns += function.profile.own_ns
        cpu_ns += function.profile.cpu_ns
    if runtime is not None:
        wall_ns, cpu_ns = wall_ns + runtime.own_ns, cpu_ns + runtime.cpu_ns
    return Total(wall_ns=wall_ns, cpu_ns=cpu_ns)


def is_named_wait(function: Function) -> bool:
    """Tell whether a function is one of the C library's waits for work or for time to pass."""
    return not function.in_program and function.name in IDLE_WAITS


def is_idle(function: FunctionState) -> bool:
    """Tell whether a function waits for work: its durations say how much load there is, not how fast the program is."""
    profile = function.profile
    if profile.loop_bottom:
        return True
    waits = profile.own_ns > 2 * profile.cpu_ns or not profile.own_ns
    return waits and is_named_wait(function.function)


def waits_for_work(function: FunctionState) -> bool:
    """Tell whether a function waits for work, or for as long as it is told to, and not for a disk.

    It is never violated: the less there is to do, the longer it takes. Where somebody waits in it for an answer that
    comes late, those who call it are slower, too, and are violated.
    """
    return is_idle(function) and function.function.name not in DISK


def is_doubted(functions: Iterable[FunctionState]) -> bool:
    """Tell whether a change of any function is suspected, and windows soon are to decide.

    One that waits for work gets no such windows: what its last one made suspected would stand for minutes.
    """
    return any(one.violations.alarms and one.violations.urgency and not waits_for_work(one) for one in functions)


def share(function: FunctionState, total: Total) -> float:
    """Return the share of wall-clock time with the function on the stack, at most 1."""
    return min(1.0, function.profile.inclusive_ns / total.wall_ns) if total.wall_ns > 0 else 0.0


def is_worth_it(function: FunctionState, total: Total) -> bool:
    """Tell whether a function is hot, waits much, was named, calls a finished one, or has a provisional assertion.

    Or an unexplained one calls it, or the fleet asks for it.
    """
    identity = function.identity
    if identity.hinted or identity.climbed or identity.descended or identity.asked is not None:
        return True
    if function.provisional is not None and not function.provisional.hosts:
        return True
    profile = function.profile
    if profile.samples < (1 if total.cpu_ns < MANY_CPU_NS else 2):
        return False
    most_ns = max(profile.cpu_ns, profile.inclusive_ns)
    return share(function, total) >= WORTH_SHARE or most_ns >= WORTH_SHARE * total.cpu_ns > 0


def variation(function: FunctionState) -> float:
    """Return calls times spread, ns per second: the rate times the standard deviation of the durations."""
    return (function.probe.rate or 0.0) * function.history.summary.spread_ns


def own_share(function: FunctionState, total: Total, idle_share: float = 0.0) -> float:
    """Return the share of CPU or of wall-clock time, whichever is more, inside the function itself.

    Time in callees counts a little, unless it is that of one callee which nobody else calls, or waits for work. A
    function that only calls such a one adds nothing to what is learned of that.
    """
    if total.wall_ns <= 0:
        return 0.0
    profile = function.profile
    cpu = profile.cpu_ns / total.cpu_ns if total.cpu_ns > 0 else 0.0
    spread_ns = max(0.0, profile.inclusive_ns * (1 - idle_share) - profile.own_ns - profile.callee_ns)
    spread = min(1.0, spread_ns / (min(total.wall_ns, total.cpu_ns) or total.wall_ns))
    return max(profile.own_ns / total.wall_ns, cpu) + _CALLED * spread


def in_order(
    functions: Iterable[FunctionState], total: Total, idle: Mapping[str, float] = MappingProxyType({})
) -> list[FunctionState]:
    """Return functions not yet counted, the most promising first; waits for work, by their idle shares, last."""
    return sorted(
        functions,
        key=lambda function: (
            not function.identity.hinted,
            is_idle(function) or idle.get(function.key, 0.0) >= ONLY_WAITS,
            -own_share(function, total, idle.get(function.key, 0.0)),
            function.key,
        ),
    )


class Ancestry:
    """The callers of functions; each is followed once."""

    def __init__(self, functions: Mapping[str, FunctionState]) -> None:
        """Look at the profiles of these functions, by key."""
        self._functions = functions
        self._known: dict[str, frozenset[str]] = {}

    def of(self, key: str) -> frozenset[str]:
        """Return all functions that are known to call a function, directly or through others."""
        if key not in self._known:
            found: set[str] = set()
            ahead = [key]
            while ahead:
                function = self._functions.get(ahead.pop())
                callers = {caller for caller, _ in function.profile.callers} if function is not None else set()
                ahead += callers - found
                found |= callers
            self._known[key] = frozenset(found)
        return self._known[key]

    def is_apart(self, key: str, others: Iterable[str]) -> bool:
        """Tell whether a function neither calls one of these nor is called by it."""
        return not any(other in self.of(key) or key in self.of(other) for other in others)

    def first_apart(
        self, functions: Iterable[FunctionState], others: Iterable[FunctionState], most: int
    ) -> list[FunctionState]:
        """Return the first functions, so many at most, none of which calls another of them, or of the others.

        Probes inside a call add to it, and may spoil its window.
        """
        chosen: list[FunctionState] = []
        beside = [one.key for one in others]
        for function in functions:
            if len(chosen) >= most:
                break
            if self.is_apart(function.key, beside):
                chosen.append(function)
                beside.append(function.key)
        return chosen
