"""Observations: the durations of a function's calls over a window of one lifetime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .call_path import CallPath
from .histogram import Histogram
from .split import Split, sharing


class Kind(StrEnum):
    """What is collected at a function's probe, cheapest first."""

    COUNT = "count"
    TIME = "time"
    PATH = "path"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathHistogram:
    """The durations of the calls that came over one call path."""

    path: CallPath
    histogram: Histogram
    split: Split | None = None
    """None: not known, or, where the observation's is, all of these calls ran without a break."""

    def __post_init__(self) -> None:
        """Hold equal histograms once."""
        object.__setattr__(self, "split", sharing(self.split, self.histogram))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """One histogram of the durations of a function's calls over a window of one lifetime.

    Durations are as the kernel measured them; ``bias_ns`` of them is the probes' own cost. It is subtracted
    where a duration is stated, not in the histogram, so that data of any calibration can be merged.
    """

    function: str
    """Key of the function."""
    lifetime: str
    kind: Kind
    start_ns: int
    """CLOCK_MONOTONIC, ns."""
    end_ns: int
    histogram: Histogram
    """Durations of the outermost calls that ended in the window: of the timed calls."""
    calls: int
    """Outermost calls counted while the entry probe was on; at least the number of timed ones."""
    watched_ns: int
    """How long the entry probe was on in the window; less than its length under a duty cycle."""
    inner: int = 0
    """Recursive calls inside an outermost one, counted but not timed."""
    censored: int = 0
    """Calls begun in the window whose end was not observed."""
    bias_ns: float = 0.0
    uncertainty_ns: float = 0.0
    """How well the durations are known: of the bias, and of the correction for probes hit within the calls."""
    paths: tuple[PathHistogram, ...] = field(default=())
    """Kind PATH only: the same durations by call path, incomplete paths included."""
    split: Split | None = None
    """Running, waiting and blocked; None where this is not known."""

    def __post_init__(self) -> None:
        """Check the window, and hold equal histograms once."""
        object.__setattr__(self, "split", sharing(self.split, self.histogram))
        if self.end_ns <= self.start_ns:
            raise ValueError(f"a window ends after it starts: {self.start_ns} .. {self.end_ns}")

    @property
    def timed(self) -> int:
        """Number of timed calls."""
        return self.histogram.total


def with_shared_paths(observation: Observation, others: Iterable[Observation]) -> Observation:
    """Return an observation whose call paths are the very objects of others' equal ones: a path takes 1 kB."""
    known = {one.path: one.path for other in others for one in other.paths}
    paths = (replace(one, path=known[one.path]) if one.path in known else one for one in observation.paths)
    return replace(observation, paths=tuple(paths))
