"""The windows of a behaviour: the calls over paths that fulfil its formula."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.mining.levels.window import Window, windows_of, windows_of_paths
from specmine.model.observation import Observation

from .expression import Formula, evaluate, named_edges


def windows_of_formula(
    observations: Sequence[Observation], formula: Formula, shared: frozenset[str] = frozenset()
) -> tuple[Window, ...]:
    """Return the windows of the calls over complete paths that fulfil a formula; ``true``: of all calls.

    Parameters
    ----------
    observations : sequence of Observation
        Oldest first. Those without call paths have windows for the formula ``true`` only.
    formula : Formula
    shared : frozenset of str
        Names that the formula shows with their module (``shared_names``).
    """
    if formula == ((),):
        return windows_of(observations)
    return windows_of_paths(observations, lambda path: evaluate(formula, named_edges(path, shared)))
