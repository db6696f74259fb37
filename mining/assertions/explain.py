"""Explain the classes of a function: from observations with call paths to behaviours with formulas."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.mining.behaviours.edge_clustering import pooled_groups
from specmine.mining.behaviours.outlier_windows import typical_windows
from specmine.mining.behaviours.path_clustering import group_paths, path_dispersion
from specmine.mining.behaviours.path_variation import UsualVariation, independent_of_path
from specmine.mining.behaviours.tree_refinement import refined_groups
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.call_path import CallPath
from specmine.model.observation import Observation

from .assertion import distinguishing_edges
from .candidate import ObservedPaths
from .explanation import Behaviour, ExplainedPath, Explanation
from .expression import render
from .model_selection import SelectedModel, select_model

_DEVIATIONS = (0.03, 0.06, 0.12)  # between paths of one behaviour, with which paths are grouped too


def explain(
    observations: Sequence[Observation],
    borders: Sequence[int],
    *,
    program: Collection[str] = (),
    settings: MiningSettings,
    usual: UsualVariation = UsualVariation(),  # noqa: B008  (a value without state)
) -> Explanation:
    """Group the call paths of one function by behaviour and state each group over call edges.

    Parameters
    ----------
    observations : sequence of Observation
        Of kind PATH, oldest first; those without paths are ignored.
    borders : sequence of int
        First buckets of the upper classes, ascending (``StableBorder.edge``).
    program : collection of str
        Modules (``Frame.module``) of the program itself.
    settings : MiningSettings
    usual : UsualVariation
        How much the paths of a behaviour usually vary: decides where a function has few paths.

    Returns
    -------
    Explanation

    Notes
    -----
    Paths are grouped in two ways: path by path (``group_paths``), and over all paths of an edge together
    (``pooled_groups``), supposing that paths of one behaviour vary little or more. The grouping whose formulas explain
    the calls best is stated (``select_model``), if it explains more than how paths vary (``significance.py``). A window
    whose shares differ plainly from all others (``typical_windows``) counts in the shares of the behaviours, but not
    in the grouping.
    """
    bias_ns = observations[-1].bias_ns
    windows, paths = _table(observations, borders)
    totals = windows.sum(axis=0)
    complete = np.array([path.complete for path in paths], dtype=bool)
    complete_paths = [path for path in paths if path.complete]
    counts = windows[:, complete]
    if not complete_paths:
        return _single(paths, totals, borders, bias_ns, "no-complete-path", Dispersion(), [None] * len(paths))
    is_typical = typical_windows(counts, settings=settings)
    typical = counts[is_typical]
    grouping, varied = group_paths(typical, settings=settings), path_dispersion(counts)
    independent_calls, noise = (
        grouping.design_effect.independent_calls(typical.sum(axis=0)),
        grouping.design_effect.noise,
    )
    of_complete = iter(grouping.design_effect.effects)
    effects = [next(of_complete) if path.complete else None for path in paths]
    present = distinguishing_edges(complete_paths, frozenset(program))
    groupings = _groupings(present, independent_calls, grouping.labels, noise, settings)
    if not groupings:
        reason = "one-path" if len(complete_paths) == 1 else "one-group"
        return _single(paths, totals, borders, bias_ns, reason, varied, effects)
    alike = np.zeros(len(complete_paths), dtype=np.intp)
    for deviation in _DEVIATIONS:
        rows = independent_of_path(independent_calls, alike, deviation)
        groupings += _groupings(present, rows, tuple(alike.tolist()), noise, settings)
    observed = ObservedPaths(
        paths=complete_paths,
        present=present,
        counts=independent_calls,
        calls=typical.sum(axis=(0, 2)),
        incomplete=int(windows[is_typical][:, ~complete].sum()),
        noise=noise,
        usual=usual,
        program=frozenset(program),
    )
    best = select_model(observed, list(dict.fromkeys(groupings)), settings=settings)
    if isinstance(best, str):
        return _single(paths, totals, borders, bias_ns, best, varied, effects)
    return _explanation(
        paths=paths, totals=totals, borders=borders, bias_ns=bias_ns, best=best, noise=varied, effects=effects
    )


def _groupings(
    present: NDArray[np.bool_],
    rows: NDArray[np.float64],
    labels: tuple[int | None, ...],
    noise: Dispersion,
    settings: MiningSettings,
) -> list[tuple[int | None, ...]]:
    """Return the groupings that may be stated: path by path, edge by edge, and the refinements of both."""
    pooled = pooled_groups(present, rows, noise, settings=settings)
    groupings = [grouped for grouped in (labels, tuple(pooled.tolist())) if any(grouped)]
    for first in list(groupings):
        refined, groups = refined_groups(present, rows, first), 0
        while refined is not None and int(refined.max()) > groups:  # parts of a split may be joined again
            groupings.append(tuple(refined.tolist()))
            groups = int(refined.max())
            finer = pooled_groups(present, rows, noise, settings=settings, start=refined)
            refined = refined_groups(present, rows, finer.tolist())
    return list(dict.fromkeys(groupings))


def _table(observations: Sequence[Observation], borders: Sequence[int]) -> tuple[NDArray[np.int64], list[CallPath]]:
    """Return calls per (window, path, class), and the paths, most calls first."""
    calls: dict[CallPath, int] = {}
    for observation in observations:
        for one in observation.paths:
            calls[one.path] = calls.get(one.path, 0) + one.histogram.total
    paths = sorted((path for path, n in calls.items() if n), key=lambda path: (-calls[path], path))
    index = {path: i for i, path in enumerate(paths)}
    with_paths = [observation for observation in observations if observation.paths]
    table = np.zeros((len(with_paths), len(paths), len(borders) + 1), dtype=np.int64)
    for window, observation in enumerate(with_paths):
        for one in observation.paths:
            if one.path in index:
                table[window, index[one.path]] += one.histogram.class_counts(borders)
    return table, paths


def _explanation(
    *,
    paths: Sequence[CallPath],
    totals: NDArray[np.int64],
    borders: Sequence[int],
    bias_ns: float,
    best: SelectedModel,
    noise: Dispersion,
    effects: Sequence[float | None],
) -> Explanation:
    statement = best.statement
    assigned, sure = iter(best.labels), iter(best.certainty)
    all_labels = [next(assigned) if path.complete else None for path in paths]
    certainty = [next(sure) if path.complete else 0.0 for path in paths]
    rows = []
    for group, formula in enumerate(statement.formulas):
        members = [i for i, label in enumerate(all_labels) if label == group]
        rows.append((group, formula, len(members), totals[members].sum(axis=0)))
    rows.sort(key=lambda row: (-int(row[3].sum()), render(row[1])))
    number = {group: i for i, (group, *_) in enumerate(rows)}
    return Explanation(
        borders=tuple(int(border) for border in borders),
        bias_ns=bias_ns,
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
        paths=_explained_paths(
            paths, totals, [None if g is None else number[g] for g in all_labels], certainty, effects
        ),
        optimal=statement.optimal,
        noise=noise,
    )


def _single(
    paths: Sequence[CallPath],
    totals: NDArray[np.int64],
    borders: Sequence[int],
    bias_ns: float,
    reason: str,
    noise: Dispersion,
    effects: Sequence[float | None],
) -> Explanation:
    complete = [i for i, path in enumerate(paths) if path.complete]
    row = totals[complete].sum(axis=0)
    return Explanation(
        borders=tuple(int(border) for border in borders),
        bias_ns=bias_ns,
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
        paths=_explained_paths(
            paths,
            totals,
            [0 if path.complete else None for path in paths],
            [float(path.complete) for path in paths],
            effects,
        ),
        why=reason,
        noise=noise,
    )


def _explained_paths(
    paths: Sequence[CallPath],
    totals: NDArray[np.int64],
    labels: Sequence[int | None],
    certainty: Sequence[float],
    effects: Sequence[float | None],
) -> tuple[ExplainedPath, ...]:
    return tuple(
        ExplainedPath(
            path=path,
            calls=int(row.sum()),
            class_calls=_plain(row),
            behaviour=label,
            certainty=sure,
            independent_calls=None if effect is None else int(row.sum()) / effect,
        )
        for path, row, label, sure, effect in zip(paths, totals, labels, certainty, effects, strict=True)
    )


def _plain(row: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(n) for n in row)
