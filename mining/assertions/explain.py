"""Explain the classes of a function: from observations with call paths to behaviours with formulas.

Call paths come first. Where they do not distinguish the classes, the callees that calls reached may, and where these do
not either, where calls were blocked. Kinds of calls are grouped and stated by the same search, and judged by the same
tests.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from specmine.mining.behaviours.confounding import least_difference
from specmine.mining.behaviours.path_variation import UsualVariation
from specmine.mining.inside.call_kinds import CallKind, KindWindow, kind_windows, known_callees, knows_blocked
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import shifted_edges
from specmine.model.call_path import CallPath
from specmine.model.observation import Observation

from .blocked_time import blocked_enough
from .explanation import Behaviour, ExplainedPath, Explanation
from .expression import Formula, render, shared_names
from .grouping import Grouped, T, grouped
from .model_selection import SelectedModel

_FEW = 2  # atoms of a statement: with more, so few kinds of calls differ that a list of them says as much
_WITHIN = 0.5  # of the difference of two behaviours, so much at least is there within windows


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
        Oldest first; the last is of kind PATH. Of those without paths only what happened inside calls counts.
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
    by_path = [({one.path: one.histogram for one in each.paths}, borders) for each in observations if each.paths]
    found = grouped(by_path, len(borders) + 1, program, settings, usual)
    result = _explanation(found, borders, bias_ns)
    if not result.why:
        return result
    timed = known_callees(observations)
    ways = [(timed, False)] if timed else []
    if knows_blocked(observations):
        ways += [(each, True) for each in dict.fromkeys((timed, ()))]
    for callees, blocked in ways:
        windows = kind_windows(observations, callees, blocked=blocked)
        told = _by_kinds(result, windows, program, settings, usual)
        if told is not None:
            return told
    return result


def _by_kinds(
    result: Explanation,
    windows: Sequence[KindWindow],
    program: Collection[str],
    settings: MiningSettings,
    usual: UsualVariation,
) -> Explanation | None:
    """Return how what happened inside calls explains the classes, None if it does not."""
    kinds = [(each.calls, shifted_edges(result.borders, result.bias_ns, each.observation.bias_ns)) for each in windows]
    found = grouped(kinds, len(result.borders) + 1, program, settings, usual)
    if isinstance(found.best, str) or not _is_told(found, found.best, settings):
        return None
    shared = shared_names(found.paths)
    if not all(blocked_enough(formula, windows, shared) for formula in found.best.statement.formulas):
        return None
    behaviours, _, _ = _stated(found)
    return replace(
        result,
        behaviours=behaviours,
        paths=tuple(replace(each, behaviour=None, certainty=0.0) for each in result.paths),
        why="",
        optimal=found.best.statement.optimal,
        noise=max(result.noise, found.noise, key=lambda noise: noise.factor),
    )


def _is_told(found: Grouped[CallKind], best: SelectedModel, settings: MiningSettings) -> bool:
    """Tell whether that decides: within windows too, and by a statement that is no list of the kinds."""
    if best.statement.edges > _FEW:
        return False
    complete = [place for place, kind in enumerate(found.paths) if kind.complete]
    within, whole = least_difference(found.windows[:, complete], best.labels)
    return within >= max(settings.minimum_difference, _WITHIN * whole)


def _explanation(found: Grouped[CallPath], borders: Sequence[int], bias_ns: float) -> Explanation:
    """Return what call paths explain; one behaviour if nothing."""
    behaviours, labels, certainty = _stated(found)
    best = found.best
    return Explanation(
        borders=tuple(int(border) for border in borders),
        bias_ns=bias_ns,
        class_calls=_plain(found.totals.sum(axis=0)),
        behaviours=behaviours,
        paths=tuple(
            ExplainedPath(
                path=path,
                calls=int(row.sum()),
                class_calls=_plain(row),
                behaviour=label,
                certainty=sure,
                independent_calls=None if effect is None else int(row.sum()) / effect,
            )
            for path, row, label, sure, effect in zip(
                found.paths, found.totals, labels, certainty, found.effects, strict=True
            )
        ),
        why=best if isinstance(best, str) else "",
        optimal=isinstance(best, str) or best.statement.optimal,
        noise=found.noise,
    )


def _stated(found: Grouped[T]) -> tuple[tuple[Behaviour, ...], list[int | None], list[float]]:
    """Return the behaviours, most calls first, and of each path its behaviour and how certain that is."""
    paths, best = found.paths, found.best
    labels: list[int | None] = [0 if path.complete else None for path in paths]
    certainty = [float(path.complete) for path in paths]
    formulas: Sequence[Formula] = (((),),)
    if not isinstance(best, str):
        assigned, sure = iter(best.labels), iter(best.certainty)
        labels = [next(assigned) if path.complete else None for path in paths]
        certainty = [next(sure) if path.complete else 0.0 for path in paths]
        formulas = best.statement.formulas
    rows = []
    for group, formula in enumerate(formulas):
        members = [i for i, label in enumerate(labels) if label == group]
        rows.append((group, formula, len(members), found.totals[members].sum(axis=0)))
    rows.sort(key=lambda row: (-int(row[3].sum()), render(row[1])))
    number = {group: i for i, (group, *_) in enumerate(rows)}
    behaviours = tuple(
        Behaviour(
            expression=render(formula),
            formula=formula,
            calls=int(row.sum()),
            paths=members,
            class_calls=_plain(row),
        )
        for _, formula, members, row in rows
    )
    return behaviours, [None if group is None else number[group] for group in labels], certainty


def _plain(row: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(n) for n in row)
