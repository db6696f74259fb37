"""Selection among groupings of call paths, by the likelihood of all calls under the formulas of each grouping.

The likelihood counts the calls of all paths, not only of those that define the grouping. Each path then gets the group
whose formula it fulfils. A grouping that only follows how paths vary is not stated (``significance.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmine.mining.behaviours.path_variation import independent_of_path
from specmine.mining.behaviours.posterior import certainties
from specmine.mining.settings import MiningSettings

from .assertion import Statement
from .candidate import Candidate, ObservedPaths, candidate, gain_of_one_group
from .expression import named_edges, shared_names
from .significance import alike, shortcoming

_JUDGED = 12  # groupings that are judged: what is less likely than so many explains nothing either
_READABLE = 8  # call edges: a grouping that needs more is stated only if there is no other


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedModel:
    """A grouping that formulas state."""

    statement: Statement
    labels: tuple[int | None, ...]
    """Group of each path; None if it fulfils no formula, or its calls contradict its group."""
    certainty: tuple[float, ...]
    """Probability of each path's group given all calls and edges (``posterior.py``), 0 without one."""


def select_model(
    observed: ObservedPaths, groupings: Sequence[Sequence[int | None]], *, settings: MiningSettings
) -> SelectedModel | str:
    """Return the best of several groupings that explain.

    Parameters
    ----------
    observed : ObservedPaths
    groupings : sequence of sequence of int or None
        Group of each path, from 0 without gaps; None if it has too few calls to decide.
    settings : MiningSettings
        ``search_limit``, ``level``, ``minimum_difference``.

    Returns
    -------
    SelectedModel or str
        If none explains: why the best does not (``Explanation.why``).

    Notes
    -----
    Paths with a group define the formulas, and the formulas place the others. A path whose calls contradict its group
    (at ``level`` divided by the number of paths) has none. Groups that differ no more than their paths do are joined.
    """
    tried = dict.fromkeys(tuple(grouping) for grouping in groupings)
    waiting = [found for grouping in tried if (found := candidate(observed, grouping, settings=settings)) is not None]
    one_group = gain_of_one_group(observed)
    why = "path-variation" if waiting else "same-edges"
    first = True
    for _ in range(_JUDGED):
        waiting = [each for each in waiting if each.gain > one_group]
        if not waiting:
            break
        best = max(waiting, key=lambda each: (each.statement.edges <= _READABLE, each.gain, each.labels.count(0)))
        waiting.remove(best)
        pair = alike(best, observed)
        reason = "path-variation" if pair else shortcoming(best, observed)
        if not reason:
            certainty = _certainty(observed, best, settings.level)
            return SelectedModel(statement=best.statement, labels=best.labels, certainty=certainty)
        why, first = reason if first else why, False
        if (
            pair
            and best.groups > 2
            and best.statement.edges <= _READABLE
            and (joined := best.joined(*pair)) not in tried
        ):
            tried[joined] = None
            found = candidate(observed, joined, settings=settings)
            waiting += [] if found is None else [found]
    return why


def _certainty(observed: ObservedPaths, best: Candidate, level: float) -> tuple[float, ...]:
    """Return the probability of each path's group."""
    paths, present = observed.paths, observed.present
    labels = np.array([-1 if label is None else label for label in best.labels])
    sums = np.array([observed.counts[labels == group].sum(axis=0) for group in range(best.groups)]) + 0.5
    shared = shared_names(paths)
    named = [named_edges(path, shared) for path in paths]
    used = {(lit.caller, lit.callee) for formula in best.statement.formulas for conj in formula for lit in conj}
    stated = set()
    for edge in used:  # edges on the same paths, or on exactly the others, share a column
        has = np.array([edge in edges for edges in named])
        stated.add(int(np.argmax((present == has[:, None]).all(axis=0) | (present != has[:, None]).all(axis=0))))
    counts = independent_of_path(observed.counts, best.variation.labels, best.variation.deviation)
    likelihood = counts @ np.log(sums / sums.sum(axis=1, keepdims=True)).T
    probable = certainties(present, likelihood, tuple(sorted(stated)), level=level)
    return tuple(0.0 if label is None else float(row[label]) for row, label in zip(probable, best.labels, strict=True))
