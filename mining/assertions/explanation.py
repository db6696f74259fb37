"""How call paths explain the classes of a function, as plain values.

They go from the worker to the daemon and into recordings, so they need none of the libraries that compute them.
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
    """Index of its behaviour; None: the path is incomplete, or its calls fit no expression."""
    certainty: float = 0.0
    """Probability of its behaviour given its own calls and those of paths with similar edges; 0 without one."""
    independent_calls: float | None = None
    """How many independent calls its calls are equivalent to (``statistics/design_effect.py``); None: incomplete."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the calls per class."""
        return tuple(n / max(self.calls, 1) for n in self.class_calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How call paths explain the classes of a function."""

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
    """Why the classes are not explained; '' if they are.

    'one-group': all paths behave alike. 'same-edges': groups differ, but no call edge distinguishes them, or too many
    would be needed. 'path-variation': groups differ no more than paths of one behaviour do. 'by-lot': the formulas are
    as long as a list of the paths. 'poor-fit': less than nine tenths of the calls are on paths that their behaviour
    fits. Also 'no-complete-path' and 'one-path'.
    """
    optimal: bool = True
    """False if the search for the smallest set of edges was cut short."""
    noise: Dispersion = field(default_factory=Dispersion)
    """How much class shares vary from window to window."""

    @property
    def atoms(self) -> int:
        """Number of distinct call edges in the expressions."""
        literals = (
            literal for behaviour in self.behaviours for conjunction in behaviour.formula for literal in conjunction
        )
        return len({(literal.caller, literal.callee) for literal in literals})
