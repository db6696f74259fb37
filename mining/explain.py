"""The explaining stage as one pure function: observations with call paths in, behaviours with formulas out."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .assertions import Statement, state_groups
from .behaviours import differs, group_paths
from .expressions import Formula, evaluate, named_edges, render, shared_names
from .observation import CallPath, Observation
from .pooling import pooled_groups
from .settings import MiningSettings
from .shares import Dispersion, class_counts

_READABLE = 8  # call edges: a grouping that takes more is stated only if there is no other


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
    """Index of its behaviour; None: incomplete, or too few calls to tell."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the calls per class."""
        return tuple(n / max(self.calls, 1) for n in self.class_calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What call paths tell about the classes of a function; plain values all through."""

    edges: tuple[int, ...]
    """First bucket of each class but the lowest: the borders it was made with."""
    class_calls: tuple[int, ...]
    """Calls per class over all paths, complete or not."""
    behaviours: tuple[Behaviour, ...]
    """Most calls first; a single one, ``true``, if call paths do not tell the classes apart."""
    paths: tuple[ExplainedPath, ...]
    """Most calls first."""
    explained: bool
    """True if there are at least two behaviours."""
    reason: str
    """If not: 'one-group' (all paths behave alike), 'same-edges' (different groups, but no call edge tells
    them apart), 'no-complete-path', 'one-path'; '' if explained.
    """
    atoms: int
    """Distinct call edges in the expressions."""
    optimal: bool
    """False if the search for fewer was cut short."""
    lower_bound: int
    """No fewer edges than this would do."""
    dispersion: Dispersion


def explain(
    observations: Sequence[Observation],
    borders: Sequence[int],
    *,
    program: Collection[str] = (),
    settings: MiningSettings,
) -> Explanation:
    """Group the call paths of one function by behaviour and state each group over call edges.

    Parameters
    ----------
    observations : sequence of Observation
        Of kind PATH, oldest first; those without paths are passed over.
    borders : sequence of int
        First buckets of the upper classes, ascending (``StableBorder.edge``).
    program : collection of str
        Modules (``Frame.module``) that are the program itself.
    settings : MiningSettings

    Returns
    -------
    Explanation

    Notes
    -----
    Paths whose group is clear define the formulas. Another path goes where the formulas put it, unless its
    calls speak against that (``level``, divided by the number of such paths): then it stays unassigned.
    """
    windows, paths = _table(observations, borders)
    totals = windows.sum(axis=0)
    complete = np.array([path.complete for path in paths], dtype=bool)
    own = [path for path in paths if path.complete]
    counts = windows[:, complete]
    if not own:
        return _single(paths, totals, borders, "no-complete-path", Dispersion())
    grouping = group_paths(counts, settings=settings)
    groupings = [grouping.labels]
    edges = sorted({edge for path in own for edge in path.edges()})
    present = np.array([[edge in has for edge in edges] for has in (path.edges() for path in own)], dtype=bool)
    pooled = pooled_groups(present.reshape(len(own), len(edges)), counts.sum(axis=0), grouping.noise, settings=settings)
    groupings.append(tuple(pooled.tolist()))
    told = [labels for labels in groupings if any(labels)]
    if not told:
        reason = "one-path" if len(own) == 1 else "one-group"
        return _single(paths, totals, borders, reason, grouping.noise)
    settled = [
        _settle(
            paths=own,
            counts=counts.sum(axis=0),
            grouped=labels,
            noise=grouping.noise,
            program=frozenset(program),
            settings=settings,
        )
        for labels in told
    ]
    possible = [each for each in settled if each is not None]
    if not possible:
        return _single(paths, totals, borders, "same-edges", grouping.noise)
    best = max(possible, key=lambda each: (each.statement.edges <= _READABLE, each.gain(len(edges))))
    return _explanation(
        paths=paths, totals=totals, borders=borders, statement=best.statement, labels=best.labels, noise=grouping.noise
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """A grouping that formulas can state."""

    statement: Statement
    labels: Sequence[int | None]
    likelihood: float
    """Log likelihood of the classes of all calls given what the formulas say of their paths, by the dispersion."""
    parameters: int
    calls: int

    def gain(self, edges: int) -> float:
        """Return the likelihood less what its free numbers (Schwarz 1978) and the choice of its edges are worth."""
        return self.likelihood - 0.5 * self.parameters * math.log(self.calls) - self.statement.edges * math.log(edges)


def _table(observations: Sequence[Observation], borders: Sequence[int]) -> tuple[NDArray[np.int64], list[CallPath]]:
    """Return calls per (window, path, class), and the paths, most calls first."""
    calls: dict[CallPath, int] = {}
    for observation in observations:
        for one in observation.paths:
            calls[one.path] = calls.get(one.path, 0) + int(one.counts.sum())
    paths = sorted((path for path, n in calls.items() if n), key=lambda path: (-calls[path], path))
    index = {path: i for i, path in enumerate(paths)}
    kept = [observation for observation in observations if observation.paths]
    table = np.zeros((len(kept), len(paths), len(borders) + 1), dtype=np.int64)
    for window, observation in enumerate(kept):
        for one in observation.paths:
            if one.path in index:
                table[window, index[one.path]] += class_counts(one.counts, borders)
    return table, paths


def _settle(
    *,
    paths: Sequence[CallPath],
    counts: NDArray[np.int64],
    grouped: Sequence[int | None],
    noise: Dispersion,
    program: frozenset[str],
    settings: MiningSettings,
) -> _Settled | None:
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
    return _Settled(
        statement=statement,
        labels=labels,
        likelihood=float((rows * np.log(np.maximum(shares, 1e-300))).sum()) / noise.factor,
        parameters=int((rows.sum(axis=1) > 0).sum()) * (counts.shape[1] - 1),
        calls=int(counts.sum()),
    )


def _explanation(
    *,
    paths: Sequence[CallPath],
    totals: NDArray[np.int64],
    borders: Sequence[int],
    statement: Statement,
    labels: Sequence[int | None],
    noise: Dispersion,
) -> Explanation:
    assigned = iter(labels)
    all_labels = [next(assigned) if path.complete else None for path in paths]
    rows = []
    for group, formula in enumerate(statement.formulas):
        members = [i for i, label in enumerate(all_labels) if label == group]
        rows.append((group, formula, len(members), totals[members].sum(axis=0)))
    rows.sort(key=lambda row: (-int(row[3].sum()), render(row[1])))
    number = {group: i for i, (group, *_) in enumerate(rows)}
    return Explanation(
        edges=tuple(int(b) for b in borders),
        class_calls=_plain(totals.sum(axis=0)),
        behaviours=tuple(
            Behaviour(
                expression=render(formula),
                formula=formula,
                calls=int(row.sum()),
                paths=members,
                class_calls=_plain(row),
            )
            for _, formula, members, row in rows
        ),
        paths=_explained_paths(paths, totals, [None if g is None else number[g] for g in all_labels]),
        explained=True,
        reason="",
        atoms=statement.edges,
        optimal=statement.optimal,
        lower_bound=statement.lower_bound,
        dispersion=noise,
    )


def _single(
    paths: Sequence[CallPath],
    totals: NDArray[np.int64],
    borders: Sequence[int],
    reason: str,
    noise: Dispersion,
) -> Explanation:
    complete = [i for i, path in enumerate(paths) if path.complete]
    row = totals[complete].sum(axis=0)
    return Explanation(
        edges=tuple(int(b) for b in borders),
        class_calls=_plain(totals.sum(axis=0)),
        behaviours=(
            Behaviour(
                expression="true",
                formula=((),),
                calls=int(row.sum()),
                paths=len(complete),
                class_calls=_plain(row),
            ),
        ),
        paths=_explained_paths(paths, totals, [0 if path.complete else None for path in paths]),
        explained=False,
        reason=reason,
        atoms=0,
        optimal=True,
        lower_bound=0,
        dispersion=noise,
    )


def _explained_paths(
    paths: Sequence[CallPath], totals: NDArray[np.int64], labels: Sequence[int | None]
) -> tuple[ExplainedPath, ...]:
    return tuple(
        ExplainedPath(path=path, calls=int(row.sum()), class_calls=_plain(row), behaviour=label)
        for path, row, label in zip(paths, totals, labels, strict=True)
    )


def _plain(row: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(n) for n in row)
