"""Violations: assertions that stopped being true, with what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from .level import Level


class What(StrEnum):
    """What of an assertion stopped being true."""

    LEVEL = "level"
    SHARE = "share"
    PATH = "path"


class Direction(StrEnum):
    """Which way the durations moved."""

    SLOWER = "slower"
    FASTER = "faster"
    OTHER = "other"
    """Neither: a new call path, or classes that exchanged calls without a change of the mean."""


class CauseKind(StrEnum):
    """What a violation is put down to."""

    CODE = "code"
    LOAD = "load"
    HOST = "host"
    CALLEE = "callee"
    WAIT = "wait"
    UNKNOWN = "unknown"


class ViolationState(StrEnum):
    """Whether a violation still stands."""

    OPEN = "open"
    RECOVERED = "recovered"
    ACKNOWLEDGED = "acknowledged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One fact for or against a cause."""

    kind: CauseKind
    """The cause that it speaks for or against."""
    changed: bool
    """True if it speaks for that cause: this has changed. False: it is as usual."""
    text: str
    """One short sentence with its number, such as ``steal 0 %, no throttling``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPart:
    """One thing that calls wait for at a place."""

    what: str
    """A word of ``model.inside.waits.WaitKind``."""
    call: str = ""
    """Name of the system call, '' if it has none."""
    function: str = ""
    """The innermost one, '': the violated function itself."""
    share: float = 0.0
    """Of the time that calls wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What takes most of what the calls of a function take more than usual."""

    what: str
    """``callee``, or for what they wait, mostly: a word of ``model.inside.waits.WaitKind``."""
    call: str = ""
    """Name of the system call in which they wait, '' if it has none."""
    function: str = ""
    """The callee, or the innermost function that has nearly all of the waits; '': the function itself."""
    module: str = ""
    """Of that function."""
    more_ns: float = 0.0
    """What it takes more of a call, ..."""
    of_ns: float = 0.0
    """... of what the call takes more in all."""
    callers: tuple[str, ...] = ()
    """Between the function that waits and the violated one, innermost first: a lock's wait says little by itself."""
    waker: str = ""
    """The function that ended most of what they wait for mostly, such as one that held the lock; '': not known."""
    parts: tuple[GrowthPart, ...] = ()
    """For what they wait there, the largest first; none if it is one thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreSamples:
    """Of what samples of stacks find more than usual, on the same stacks as a violated function: timed or not."""

    function: str
    """Name."""
    module: str = ""
    is_caller: bool = False
    """True if it calls the violated function: the rest of that one's calls is as usual. False: it is called by it."""
    cpus: float = 0.0
    """CPUs that it keeps busy, callees included, ..."""
    usual_cpus: float = 0.0
    """... and usually."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The likely cause of a violation, and what was ruled out."""

    kind: CauseKind = CauseKind.UNKNOWN
    proven: bool = False
    """False: it is what the evidence leaves."""
    text: str = ""
    """One sentence for people."""
    evidence: tuple[Evidence, ...] = ()
    growth: Growth | None = None
    """What in the calls has most of the difference; None: not known, or nothing has half of it."""
    more_samples: MoreSamples | None = None
    """In what samples find it; None: in the function itself, or they do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation; replaced as a whole at each change. Times are CLOCK_MONOTONIC ns."""

    function: str
    """Key of the function."""
    what: What
    direction: Direction
    factor: float
    """Observed over expected: of ``quantile`` for a level, of the share otherwise."""
    factor_low: float
    factor_high: float
    """95 % interval of the factor."""
    quantile: str = "p50"
    """The one that moved most beyond its range: p50, p90 or p99; ``mean`` if none surely did but the mean is longer."""
    expected: Level = field(default_factory=Level)
    """The level as asserted."""
    observed: Level = field(default_factory=Level)
    """The level since the change; renewed while the violation is open."""
    expression: str = "true"
    """The behaviour that it is about; ``true``: all calls."""
    upper_ns: float | None = None
    """Upper border of the class that it is about; None: the highest class, or all."""
    time_share: float = 0.0
    """Share of the program's time in this function that the change costs, at least 0."""
    cause: Cause = field(default_factory=Cause)
    because: str = ""
    """Key of the violated function that explains this one; '' if it is a cause itself."""
    since_ns: int = 0
    """When the change began."""
    found_ns: int = 0
    """When it was opened."""
    state: ViolationState = ViolationState.OPEN
    closed_ns: int | None = None
    """When it recovered or was acknowledged."""
    closed_by: str = ""
    """Who acknowledged it."""
    comment: str = ""
    """What that person said."""
    id: str = ""
    """12 hex digits that name it in the store for ever; '' until it is opened."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What distinguishes it from the other open violations: function, what, expression."""
        return self.function, self.what.value, self.expression

    @property
    def is_problem(self) -> bool:
        """True while it is open and calls are slower, or classes or paths are not as asserted."""
        return self.state is ViolationState.OPEN and self.direction is not Direction.FASTER

    def closed(self, state: ViolationState, at_ns: int, by: str = "", comment: str = "") -> Violation:
        """Return it as it is once it has recovered, or was acknowledged by somebody."""
        return replace(self, state=state, closed_ns=at_ns, closed_by=by, comment=comment)

    def shifted(self, by_ns: int) -> Violation:
        """Return it with its times on a clock that is ahead by so much, such as that of UTC."""
        closed_ns = None if self.closed_ns is None else self.closed_ns + by_ns
        return replace(self, since_ns=self.since_ns + by_ns, found_ns=self.found_ns + by_ns, closed_ns=closed_ns)
