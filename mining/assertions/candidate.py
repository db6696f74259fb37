"""One grouping of call paths that may be stated, with all that decides whether it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.behaviours.path_clustering import differs
from specmine.mining.behaviours.path_variation import (
    PathVariation,
    UsualVariation,
    independent_of_path,
    path_variation,
)
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.call_path import Distinguished

from .assertion import Statement, state_groups
from .description_length import forks, log_partitions, log_statements
from .expression import evaluate, named_edges, shared_names

_MOST_DEVIATION = 0.1  # standard deviation between the paths of a behaviour that is allowed for when one fits
_PLAINLY = math.log(20)  # how much likelier calls are in another behaviour if they do not fit in this one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedPaths:
    """The complete call paths of a function, or the kinds of its calls, and their calls."""

    paths: Sequence[Distinguished]
    present: NDArray[np.bool_]
    """Which path has which edge, shape (paths, edges) (``distinguishing_edges``)."""
    counts: NDArray[np.float64]
    """In independent calls, shape (paths, classes)."""
    calls: NDArray[np.int64]
    """Calls of each path."""
    incomplete: int
    """Calls over incomplete paths."""
    noise: Dispersion
    """Of independent calls."""
    usual: UsualVariation
    """Of the paths of a behaviour, in other functions."""
    program: frozenset[str]
    """Modules of the program itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A grouping that formulas can state."""

    grouping: tuple[int | None, ...]
    """Group of each path that defines the formulas; None for the others."""
    statement: Statement
    labels: tuple[int | None, ...]
    """Group of each path; None if it fulfils no formula, or its calls contradict its group."""
    variation: PathVariation
    """How much the paths of a formula vary among themselves. Paths of no single formula are a group of their own."""
    fitting: float
    """Share of the calls that lie on paths that their behaviour fits."""
    description: float
    """Natural logarithm of the number of statements of this size."""
    gain: float
    """Log likelihood, averaged over the free numbers, less the length of the statement."""

    @property
    def groups(self) -> int:
        """Number of behaviours."""
        return len(self.statement.formulas)

    def joined(self, one: int, other: int) -> tuple[int | None, ...]:
        """Return the grouping with two groups as one."""
        first, second = sorted((one, other))
        return tuple(
            None if label is None else first if label == second else label - (label > second) for label in self.grouping
        )


def candidate(observed: ObservedPaths, grouping: Sequence[int | None], *, settings: MiningSettings) -> Candidate | None:
    """State the groups by the paths that are clearly in one, and let the formulas place the others.

    Parameters
    ----------
    observed : ObservedPaths
    grouping : sequence of int or None
        Group of each path, from 0 without gaps; None if it has too few calls to decide.
    settings : MiningSettings
        ``search_limit``, ``level``, ``minimum_difference``.

    Returns
    -------
    Candidate or None
        None if no set of call edges distinguishes the groups, or a behaviour would have no path.
    """
    paths, counts = observed.paths, observed.counts
    shared = shared_names(paths)
    named = [named_edges(path, shared) for path in paths]
    groups = max(label for label in grouping if label is not None) + 1
    defining = [(i, label) for i, label in enumerate(grouping) if label is not None]
    statement = state_groups(
        [paths[i] for i, _ in defining],
        [label for _, label in defining],
        shared=shared,
        program=observed.program,
        limit=settings.search_limit,
    )
    if statement is None:
        return None
    fulfilled = [[g for g, formula in enumerate(statement.formulas) if evaluate(formula, edges)] for edges in named]
    placed = np.array([fits[0] if len(fits) == 1 else groups for fits in fulfilled], dtype=np.intp)
    variation = path_variation(counts, placed, observed.usual)
    sums = np.array([counts[[i for i, label in defining if label == group]].sum(axis=0) for group in range(groups)])
    independent = independent_of_path(counts, placed, min(variation.deviation, _MOST_DEVIATION))
    labels = [
        fits[0] if label is None and len(fits) == 1 else label for label, fits in zip(grouping, fulfilled, strict=True)
    ]
    for i, group in enumerate(list(labels)):
        if group is not None:  # at this level, one path in a hundred functions is left out at random
            p_value, gap = differs(independent[[i]], sums[[group]], observed.noise)
            if p_value < settings.level / len(paths) and gap >= settings.minimum_difference:
                labels[i] = None
    if len({label for label in labels if label is not None}) < groups:
        return None
    description = _description(named, placed, statement, observed.present.shape[1])
    return Candidate(
        grouping=tuple(grouping),
        statement=statement,
        labels=tuple(labels),
        variation=variation,
        fitting=float(observed.calls[_fits(counts, sums, labels)].sum())
        / max(int(observed.calls.sum()) + observed.incomplete, 1),
        description=description,
        gain=variation.evidence - min(description, log_partitions(len(paths), groups)),
    )


def gain_of_one_group(observed: ObservedPaths) -> float:
    """Return the same if all paths are one behaviour, which needs no statement."""
    return path_variation(observed.counts, np.zeros(len(observed.paths), dtype=np.intp), observed.usual).evidence


def _fits(counts: NDArray[np.float64], sums: NDArray[np.float64], labels: Sequence[int | None]) -> NDArray[np.bool_]:
    """Return which paths their behaviour fits: they have one, and no other makes their calls plainly likelier."""
    likelihood = counts @ np.log((sums + 0.5) / (sums + 0.5).sum(axis=1, keepdims=True)).T
    own = [-math.inf if label is None else row[label] for row, label in zip(likelihood, labels, strict=True)]
    return np.asarray(np.array(own) >= likelihood.max(axis=1) - _PLAINLY)


def _description(
    named: Sequence[frozenset[tuple[str, str]]], placed: NDArray[np.intp], statement: Statement, known: int
) -> float:
    """Return the natural logarithm of the number of statements of this size, of ``known`` edges."""
    used = sorted({(lit.caller, lit.callee) for formula in statement.formulas for conj in formula for lit in conj})
    stated = [
        (sum((edge in edges) << i for i, edge in enumerate(used)), group)
        for edges, group in zip(named, placed.tolist(), strict=True)
        if group < len(statement.formulas)
    ]
    size = forks([pattern for pattern, _ in stated], [group for _, group in stated], len(used))
    return log_statements(len(used), known, size, len(statement.formulas))
