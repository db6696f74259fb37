"""Observations: the durations of a function's calls over a window of one lifetime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .call_path import CallPath
from .histogram import Histogram
from .inside.parts import Inside
from .split import Split, sharing


class Kind(StrEnum):
    """What is collected at a function's probe, cheapest first."""

    COUNT = "count"
    TIME = "time"
    PATH = "path"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathHistogram:
    """The durations of the calls over one call path."""

    path: CallPath
    histogram: Histogram
    split: Split | None = None
    """None: not known; if that of the observation is known: these calls never left their CPU."""

    def __post_init__(self) -> None:
        """Store equal histograms once."""
        object.__setattr__(self, "split", sharing(self.split, self.histogram))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """One histogram of the durations of a function's calls over a window of one lifetime.

    Durations are as the kernel measured them; they contain ``bias_ns``, the probes' own cost. It is subtracted where a
    duration is stated, not in the histogram, so data of different calibrations can be merged.
    """

    function: str
    """Key of the function."""
    lifetime: str
    kind: Kind
    start_ns: int
    """CLOCK_MONOTONIC, ns."""
    end_ns: int
    histogram: Histogram
    """Durations of the timed calls: outermost calls that ended in the window."""
    calls: int
    """Outermost calls counted while the entry probe was attached; at least the number of timed ones."""
    watched_ns: int
    """How long the entry probe was attached in the window; under a duty cycle less than its length."""
    inner: int = 0
    """Recursive calls inside an outermost one, counted but not timed."""
    censored: int = 0
    """Calls begun in the window whose end was not observed."""
    bias_ns: float = 0.0
    uncertainty_ns: float = 0.0
    """Uncertainty of the durations: from the bias, and from the correction for probes hit within the calls."""
    paths: tuple[PathHistogram, ...] = field(default=())
    """Kind PATH only: the same durations by call path, incomplete paths included."""
    split: Split | None = None
    """Running, waiting and blocked; None where this is not known."""
    inside: tuple[Inside, ...] = ()
    """What other timed functions took of these calls, and which were blocked.

    () where no timed function is called by this one, and no call was blocked.
    """

    def __post_init__(self) -> None:
        """Check the window, and store equal histograms once."""
        object.__setattr__(self, "split", sharing(self.split, self.histogram))
        if self.end_ns <= self.start_ns:
            raise ValueError(f"a window ends after it starts: {self.start_ns} .. {self.end_ns}")

    @property
    def timed(self) -> int:
        """Number of timed calls."""
        return self.histogram.total

    @property
    def told_inside(self) -> tuple[Inside, ...]:
        """What happened inside these calls, also where that is only that none was blocked."""
        if self.inside or self.split is None or self.split.blocked_ns.total:
            return self.inside
        return (Inside(calls=self.histogram, timed=(), split=True),)


def with_shared_paths(observation: Observation, others: Iterable[Observation]) -> Observation:
    """Return an observation that shares equal call paths, as objects, with others: a path takes 1 kB."""
    known = {one.path: one.path for other in others for one in other.paths}
    paths = (replace(one, path=known[one.path]) if one.path in known else one for one in observation.paths)
    return replace(observation, paths=tuple(paths))
