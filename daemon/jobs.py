"""What the worker does: explain a function's classes by its call paths.

The values here pickle and go into recordings; only ``run_job`` needs heavy libraries and imports them itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specmine.mining.expressions import Formula
from specmine.mining.observation import CallPath, Observation
from specmine.mining.settings import MiningSettings
from specmine.mining.shares import Dispersion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """Input: observations with call paths, and where the classes are cut."""

    function: str
    observations: tuple[Observation, ...]
    borders: tuple[int, ...]
    """First bucket of each class but the lowest."""
    program_modules: tuple[str, ...]
    """Modules whose edges are preferred where two sets of edges are equally small."""
    mining: MiningSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Call paths with the same class shares, and the expression that they alone fulfil."""

    expression: str
    formula: Formula
    calls: int
    paths: int
    class_calls: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """One call path, its calls per class and its behaviour; None: incomplete, or too few calls to tell."""

    path: CallPath
    calls: int
    class_calls: tuple[int, ...]
    behaviour: int | None = None
    certainty: float = 0.0
    """How probable its behaviour is by its own calls alone, 0 without one: low for few calls, placed by their edges."""
    independent_calls: float | None = None
    """How many independent calls its calls are worth; None for an incomplete path, or in a recording without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """Output: behaviours and paths, most calls first."""

    borders: tuple[int, ...]
    bias_ns: float
    """What the probes added to the durations."""
    class_calls: tuple[int, ...]
    """Calls per class over all paths, complete or not."""
    behaviours: tuple[Behaviour, ...]
    paths: tuple[PathResult, ...]
    why: str = ""
    """one-group, same-edges, no-complete-path, one-path; '' if the classes are explained."""
    optimal: bool = True
    """False if the search for the smallest set of edges was cut short."""
    noise: Dispersion = field(default_factory=Dispersion)
    """How much class shares vary from window to window."""


def run_job(job: Job) -> JobResult:
    """Explain a function; equal jobs give equal results."""
    from specmine.mining.explain import explain  # noqa: PLC0415  (scipy and scikit-learn: for the worker only)

    told = explain(job.observations, job.borders, program=job.program_modules, settings=job.mining)
    return JobResult(
        borders=told.edges,
        bias_ns=job.observations[-1].bias_ns,
        class_calls=told.class_calls,
        behaviours=tuple(
            Behaviour(
                expression=each.expression,
                formula=each.formula,
                calls=each.calls,
                paths=each.paths,
                class_calls=each.class_calls,
            )
            for each in told.behaviours
        ),
        paths=tuple(
            PathResult(
                path=each.path,
                calls=each.calls,
                class_calls=each.class_calls,
                behaviour=each.behaviour,
                certainty=each.certainty,
                independent_calls=each.independent_calls,
            )
            for each in told.paths
        ),
        why=told.reason,
        optimal=told.optimal,
        noise=told.dispersion,
    )
