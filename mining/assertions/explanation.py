"""What call paths explain of the classes of a function: values without the libraries that find it.

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
    """What call paths explain of the classes of a function; plain values all through."""

    borders: tuple[int, ...]
    """First bucket of each class but the lowest: the borders it was made with."""
    bias_ns: float
    """What the probes added to the durations."""
    class_calls: tuple[int, ...]
    """Calls per class over all paths, complete or not."""
    behaviours: tuple[Behaviour, ...]
    """Most calls first; a single one, ``true``, if call paths do not distinguish the classes."""
    paths: tuple[ExplainedPath, ...]
    """Most calls first."""
    why: str = ""
    """Why the classes are not explained: 'one-group' (all paths behave alike), 'same-edges' (groups differ, but no call
    edge distinguishes them, or only a great many together), 'no-complete-path', 'one-path'; '' if they are.
    """
    optimal: bool = True
    """False if the search for the smallest set of edges was cut short."""
    noise: Dispersion = field(default_factory=Dispersion)
    """How much class shares vary from window to window."""

    @property
    def atoms(self) -> int:
        """Number of distinct call edges in the expressions."""
        literals = (one for each in self.behaviours for conjunction in each.formula for one in conjunction)
        return len({(literal.caller, literal.callee) for literal in literals})
