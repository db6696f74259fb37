"""Selection among groupings of call paths, by the likelihood of all calls under the formulas of each grouping.

The likelihood counts the calls of all paths, not only of those that define the grouping. Each path then gets the group
whose formula it fulfils.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specmine.mining.behaviours.path_clustering import differs
from specmine.mining.behaviours.posterior import certainties
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.call_path import CallPath

from .assertion import Statement, state_groups
from .expression import evaluate, named_edges, shared_names

_READABLE = 8  # call edges: a grouping that needs more is stated only if there is no other


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedModel:
    """A grouping that formulas can state, with its likelihood."""

    statement: Statement
    labels: tuple[int | None, ...]
    """Group of each path; None if it fulfils no formula, or its calls contradict its group."""
    certainty: tuple[float, ...]
    """Probability of each path's group given all calls and edges (``posterior.py``), 0 without one."""
    likelihood: float
    """Log likelihood of the classes of all calls under the formulas that their paths fulfil, in independent calls."""
    parameters: int
    """Free class shares."""
    calls: float

    def gain(self, edges: int) -> float:
        """Return the log likelihood less the length of the description.

        The description is the free numbers (Schwarz 1978), the choice of edges among ``edges``, and the conjunctions of
        the formulas.
        """
        terms = sum(len(formula) for formula in self.statement.formulas)
        choices = 2 * max(self.statement.edges, 1) * len(self.statement.formulas)
        numbers = 0.5 * self.parameters * math.log(self.calls)
        return self.likelihood - numbers - self.statement.edges * math.log(edges) - terms * math.log(choices)


def select_model(
    paths: Sequence[CallPath],
    present: NDArray[np.bool_],
    counts: NDArray[np.float64],
    groupings: Sequence[Sequence[int | None]],
    *,
    noise: Dispersion,
    program: frozenset[str],
    settings: MiningSettings,
) -> SelectedModel | None:
    """Return the best of several groupings.

    Parameters
    ----------
    paths : sequence of CallPath
        Complete ones.
    present : ndarray of bool, shape (paths, edges)
        Which path has which edge (``distinguishing_edges``).
    counts : ndarray of float64, shape (paths, classes)
        In independent calls.
    groupings : sequence of sequence of int or None
        Group of each path, from 0 without gaps; None if it has too few calls to decide.
    noise : Dispersion
        Of independent calls.
    program : frozenset of str
        Modules of the program itself.
    settings : MiningSettings
        ``search_limit``, ``level``, ``minimum_difference``.

    Returns
    -------
    SelectedModel or None
        None if no grouping can be stated over call edges.

    Notes
    -----
    Paths with a group define the formulas, and the formulas place the others. A path whose calls contradict its group
    (at ``level`` divided by the number of paths) has none.
    """
    possible = [
        model
        for grouped in groupings
        if (model := _stated(paths, counts, grouped, noise=noise, program=program, settings=settings)) is not None
    ]
    edges = len(set().union(*(path.edges() for path in paths)))
    best = max(
        possible, key=lambda model: (model.statement.edges <= _READABLE, model.gain(max(edges, 1))), default=None
    )
    if best is None:
        return None
    return replace(best, certainty=_certainty(paths, present, counts, best, settings.level))


def _stated(
    paths: Sequence[CallPath],
    counts: NDArray[np.float64],
    grouped: Sequence[int | None],
    *,
    noise: Dispersion,
    program: frozenset[str],
    settings: MiningSettings,
) -> SelectedModel | None:
    """State the groups by the paths that are clearly in one, and let the formulas place the others."""
    shared = shared_names(paths)
    named = [named_edges(path, shared) for path in paths]
    groups = max(label for label in grouped if label is not None) + 1
    defining = [(i, label) for i, label in enumerate(grouped) if label is not None]
    statement = state_groups(
        [paths[i] for i, _ in defining],
        [label for _, label in defining],
        shared=shared,
        program=program,
        limit=settings.search_limit,
    )
    if statement is None:
        return None
    sums = np.array([counts[[i for i, label in defining if label == g]].sum(axis=0) for g in range(groups)])
    fulfilled = [[g for g, formula in enumerate(statement.formulas) if evaluate(formula, edges)] for edges in named]
    labels = list(grouped)
    for i, fits in enumerate(fulfilled):
        group = fits[0] if labels[i] is None and len(fits) == 1 else labels[i]
        if group is None:
            continue
        # at this level, one path in a hundred functions is left out at random
        p_value, gap = differs(counts[[i]], sums[[group]], noise)
        labels[i] = group if p_value >= settings.level / len(paths) or gap < settings.minimum_difference else None
    rows = np.zeros((groups + 1, counts.shape[1]))
    for row, fits in zip(counts, fulfilled, strict=True):
        rows[fits[0] if len(fits) == 1 else groups] += row
    shares = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    return SelectedModel(
        statement=statement,
        labels=tuple(labels),
        certainty=(),
        likelihood=float((rows * np.log(np.maximum(shares, 1e-300))).sum()),
        parameters=int((rows.sum(axis=1) > 0).sum()) * (counts.shape[1] - 1),
        calls=float(counts.sum()),
    )


def _certainty(
    paths: Sequence[CallPath],
    present: NDArray[np.bool_],
    counts: NDArray[np.float64],
    best: SelectedModel,
    level: float,
) -> tuple[float, ...]:
    """Return the probability of each path's group."""
    labels = np.array([-1 if label is None else label for label in best.labels])
    groups = len(best.statement.formulas)
    sums = np.array([counts[labels == group].sum(axis=0) for group in range(groups)]) + 0.5
    shared = shared_names(paths)
    named = [named_edges(path, shared) for path in paths]
    used = {(lit.caller, lit.callee) for formula in best.statement.formulas for conj in formula for lit in conj}
    stated = set()
    for edge in used:  # edges on the same paths, or on exactly the others, share a column
        has = np.array([edge in edges for edges in named])
        stated.add(int(np.argmax((present == has[:, None]).all(axis=0) | (present != has[:, None]).all(axis=0))))
    likelihood = counts @ np.log(sums / sums.sum(axis=1, keepdims=True)).T
    probable = certainties(present, likelihood, tuple(sorted(stated)), level=level)
    return tuple(0.0 if label is None else float(row[label]) for row, label in zip(probable, best.labels, strict=True))
