"""The job of the worker: to explain a function's classes by its call paths.

The values here are pickled and recorded. Only ``run_job`` needs what explains, and imports it itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from specmine.mining.assertions.explanation import Explanation
from specmine.mining.settings import MiningSettings
from specmine.model.observation import Observation


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


def run_job(job: Job) -> Explanation:
    """Explain a function; equal jobs give equal results."""
    from specmine.mining.assertions.explain import explain  # noqa: PLC0415  (for the worker only)

    return explain(job.observations, job.borders, program=job.program_modules, settings=job.mining)
