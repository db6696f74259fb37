"""What the worker does: explain a function's classes by its call paths.

The values here pickle and go into recordings; only ``run_job`` needs heavy libraries and imports them itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specmine.mining.explanation import Behaviour, ExplainedPath
from specmine.mining.observation import Observation
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


def run_job(job: Job) -> JobResult:
    """Explain a function; equal jobs give equal results."""
    from specmine.mining.explain import explain  # noqa: PLC0415  (scipy and scikit-learn: for the worker only)

    told = explain(job.observations, job.borders, program=job.program_modules, settings=job.mining)
    return JobResult(
        borders=told.edges,
        bias_ns=job.observations[-1].bias_ns,
        class_calls=told.class_calls,
        behaviours=told.behaviours,
        paths=told.paths,
        why=told.reason,
        optimal=told.optimal,
        noise=told.dispersion,
    )
