"""Call paths, or kinds of calls, in groups of the same class shares, and the grouping that may be stated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from specmine.mining.behaviours.edge_clustering import pooled_groups
from specmine.mining.behaviours.outlier_windows import typical_windows
from specmine.mining.behaviours.path_clustering import group_paths, path_dispersion
from specmine.mining.behaviours.path_variation import UsualVariation, independent_of_path
from specmine.mining.behaviours.tree_refinement import refined_groups
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.call_path import Distinguished
from specmine.model.histogram import Histogram

from .assertion import distinguishing_edges
from .candidate import ObservedPaths
from .model_selection import SelectedModel, select_model

T = TypeVar("T", bound=Distinguished)
_DEVIATIONS = (0.03, 0.06, 0.12)  # between paths of one behaviour, with which paths are grouped too


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouped(Generic[T]):
    """What the calls over some paths, or of some kinds, show."""

    paths: Sequence[T]
    """Most calls first."""
    windows: NDArray[np.int64]
    """Calls per window, path and class."""
    best: SelectedModel | str
    """Or why nothing explains."""
    noise: Dispersion
    effects: Sequence[float | None]
    """How many calls of each path are worth one; None: it is not complete."""

    @property
    def totals(self) -> NDArray[np.int64]:
        """Calls per path and class."""
        return np.asarray(self.windows.sum(axis=0))


def grouped(
    observed: Sequence[tuple[Mapping[T, Histogram], Sequence[int]]],
    classes: int,
    program: Collection[str],
    settings: MiningSettings,
    usual: UsualVariation,
) -> Grouped[T]:
    """Group paths by their class shares, and select the grouping that explains.

    Parameters
    ----------
    observed : sequence
        Of each window the calls of each path, and the first buckets of the upper classes.
    classes : int
        Number of classes.
    program : collection of str
        Modules of the program itself.
    settings : MiningSettings
    usual : UsualVariation
        How much the paths of a behaviour usually vary: decides where a function has few paths.

    Returns
    -------
    Grouped
    """
    windows, paths = _table(observed, classes)
    complete = np.array([path.complete for path in paths], dtype=bool)
    complete_paths = [path for path in paths if path.complete]
    counts = windows[:, complete]

    def found(best: SelectedModel | str, noise: Dispersion, effects: Sequence[float | None]) -> Grouped[T]:
        return Grouped(paths=paths, windows=windows, best=best, noise=noise, effects=effects)

    if not complete_paths:
        return found("no-complete-path", Dispersion(), [None] * len(paths))
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
        return found("one-path" if len(complete_paths) == 1 else "one-group", varied, effects)
    alike = np.zeros(len(complete_paths), dtype=np.intp)
    for deviation in _DEVIATIONS:
        rows = independent_of_path(independent_calls, alike, deviation)
        groupings += _groupings(present, rows, tuple(alike.tolist()), noise, settings)
    observed_paths = ObservedPaths(
        paths=complete_paths,
        present=present,
        counts=independent_calls,
        calls=typical.sum(axis=(0, 2)),
        incomplete=int(windows[is_typical][:, ~complete].sum()),
        noise=noise,
        usual=usual,
        program=frozenset(program),
    )
    best = select_model(observed_paths, list(dict.fromkeys(groupings)), settings=settings)
    return found(best, varied, effects)


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


def _table(
    observed: Sequence[tuple[Mapping[T, Histogram], Sequence[int]]], classes: int
) -> tuple[NDArray[np.int64], list[T]]:
    """Return calls per (window, path, class), and the paths, most calls first."""
    calls: dict[T, int] = {}
    for window, _ in observed:
        for path, histogram in window.items():
            calls[path] = calls.get(path, 0) + histogram.total
    paths = sorted((path for path, n in calls.items() if n), key=lambda path: (-calls[path], path))
    index = {path: i for i, path in enumerate(paths)}
    table = np.zeros((len(observed), len(paths), classes), dtype=np.int64)
    for number, (window, borders) in enumerate(observed):
        for path, histogram in window.items():
            if path in index:
                table[number, index[path]] += histogram.class_counts(borders)
    return table, paths
