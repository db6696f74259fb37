"""What call paths tell about the classes of a function: values without the libraries that find it.

They go from the worker to the daemon and into recordings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.call_path import CallPath

from .expression import Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """A group of call paths with the same class shares."""

    expression: str
    formula: Formula
    calls: int
    paths: int
    class_calls: tuple[int, ...]
    """Calls per class, lowest class first; they add up to ``calls``."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the calls per class."""
        return tuple(n / max(self.calls, 1) for n in self.class_calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPath:
    """A call path with its class counts."""

    path: CallPath
    calls: int
    class_calls: tuple[int, ...]
    behaviour: int | None
    """Index of its behaviour; None: incomplete, or no expression fits what its calls show."""
    certainty: float = 0.0
    """Probability of its behaviour given its calls, and what its edges say of others; 0 without one."""
    independent_calls: float | None = None
    """How many independent calls its calls are worth (independence.py); None for an incomplete path."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the calls per class."""
        return tuple(n / max(self.calls, 1) for n in self.class_calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What call paths tell about the classes of a function; plain values all through."""

    edges: tuple[int, ...]
    """First bucket of each class but the lowest: the borders it was made with."""
    class_calls: tuple[int, ...]
    """Calls per class over all paths, complete or not."""
    behaviours: tuple[Behaviour, ...]
    """Most calls first; a single one, ``true``, if call paths do not tell the classes apart."""
    paths: tuple[ExplainedPath, ...]
    """Most calls first."""
    explained: bool
    """True if there are at least two behaviours."""
    reason: str
    """If not: 'one-group' (all paths behave alike), 'same-edges' (different groups, but no call edge tells
    them apart, or only a great many together), 'no-complete-path', 'one-path'; '' if explained.
    """
    atoms: int
    """Distinct call edges in the expressions."""
    optimal: bool
    """False if the search for fewer was cut short."""
    lower_bound: int
    """No fewer edges than this would do."""
    dispersion: Dispersion


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """Output: behaviours and paths, most calls first."""

    borders: tuple[int, ...]
    bias_ns: float
    """What the probes added to the durations."""
    class_calls: tuple[int, ...]
    """Calls per class over all paths, complete or not."""
    behaviours: tuple[Behaviour, ...]
    paths: tuple[ExplainedPath, ...]
    why: str = ""
    """one-group, same-edges, no-complete-path, one-path; '' if the classes are explained."""
    optimal: bool = True
    """False if the search for the smallest set of edges was cut short."""
    noise: Dispersion = field(default_factory=Dispersion)
    """How much class shares vary from window to window."""
