"""Selection among groupings of call paths, by the likelihood of all calls under the formulas of each grouping.

Formulas are judged by the calls of all paths, not only of those that the grouping was made from. Each path is then
assigned to the group whose formula it fulfils.
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

_READABLE = 8  # call edges: a grouping that takes more is stated only if there is no other


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedModel:
    """A grouping that formulas can state, with its likelihood."""

    statement: Statement
    labels: tuple[int | None, ...]
    """Group of each path; None if it fulfils no formula, or its calls speak against its group."""
    certainty: tuple[float, ...]
    """Probability of each path's group given all calls and edges (certainty.py), 0 without one."""
    likelihood: float
    """Log likelihood of the classes of all calls given what the formulas say of their paths, in independent calls."""
    parameters: int
    """Free class shares."""
    calls: float

    def gain(self, edges: int) -> float:
        """Return the log likelihood less the length of the description.

        That is its free numbers (Schwarz 1978), its edges among so many, and the conjunctions of its formulas.
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
        Which path has which edge, of edges alike one (``telling_edges``).
    counts : ndarray of float64, shape (paths, classes)
        In independent calls.
    groupings : sequence of sequence of int or None
        Group of each path, from 0 without gaps; None where its calls are too few to tell.
    noise : Dispersion
        Of independent calls.
    program : frozenset of str
        Modules that are the program itself.
    settings : MiningSettings
        ``search_limit``, ``level``, ``minimum_difference``.

    Returns
    -------
    SelectedModel or None
        None if no grouping can be stated over call edges.

    Notes
    -----
    Paths with a group define the formulas; the others go where those put them. A path whose calls speak against its
    group (``level``, divided by the number of paths) stays without one.
    """
    possible = [
        found
        for grouped in groupings
        if (found := _settle(paths, counts, grouped, noise=noise, program=program, settings=settings)) is not None
    ]
    edges = len(set().union(*(path.edges() for path in paths)))
    best = max(possible, key=lambda each: (each.statement.edges <= _READABLE, each.gain(max(edges, 1))), default=None)
    if best is None:
        return None
    return replace(best, certainty=_certainty(paths, present, counts, best, settings.level))


def _settle(
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
    said = [[g for g, formula in enumerate(statement.formulas) if evaluate(formula, own)] for own in named]
    labels = list(grouped)
    for i, fits in enumerate(said):
        group = fits[0] if labels[i] is None and len(fits) == 1 else labels[i]
        if group is None:
            continue
        # over all paths of a function one is left out by chance in a hundred functions
        p_value, gap = differs(counts[[i]], sums[[group]], noise)
        labels[i] = group if p_value >= settings.level / len(paths) or gap < settings.minimum_difference else None
    rows = np.zeros((groups + 1, counts.shape[1]))
    for row, fits in zip(counts, said, strict=True):
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
    own = np.array([-1 if label is None else label for label in best.labels])
    groups = len(best.statement.formulas)
    sums = np.array([counts[own == group].sum(axis=0) for group in range(groups)]) + 0.5
    shared = shared_names(paths)
    named = [named_edges(path, shared) for path in paths]
    used = {(lit.caller, lit.callee) for formula in best.statement.formulas for conj in formula for lit in conj}
    stated = set()
    for edge in used:  # what is alike, or just the contrary, is one column
        has = np.array([edge in each for each in named])
        stated.add(int(np.argmax((present == has[:, None]).all(axis=0) | (present != has[:, None]).all(axis=0))))
    likelihood = counts @ np.log(sums / sums.sum(axis=1, keepdims=True)).T
    told = certainties(present, likelihood, tuple(sorted(stated)), level=level)
    return tuple(0.0 if label is None else float(row[label]) for row, label in zip(told, best.labels, strict=True))
