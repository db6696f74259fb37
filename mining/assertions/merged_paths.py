"""Call paths that differ in rare edges only, as one: so a function of many paths is explained over few.

An edge that hardly a call takes cannot decide how long calls take. Without such edges many paths are alike. An
expression that is stated over the edges left holds for each path as it does for the merged one. So memory and time of
an explanation grow with the paths that differ in edges that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import GAP, CallPath, Frame

from .explanation import Behaviour, ExplainedPath, Explanation
from .expression import evaluate, named_edges, shared_names

MOST = 2_000
"""More paths than this are merged."""
_RARE = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
"""Shares of the calls below which an edge is rare: the least that leaves few enough paths is taken."""

Edge = tuple[Frame, Frame]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedPaths:
    """Paths without their rare edges."""

    paths: tuple[CallPath, ...]
    member: NDArray[np.int64]
    """Number of the merged path of each path; -1: it is a light one that nothing is inferred from."""


def merged_paths(paths: Sequence[CallPath], calls: NDArray[np.int64], most: int = MOST) -> MergedPaths:
    """Return paths without rare edges, if there are more than ``most``.

    Parameters
    ----------
    paths : sequence of CallPath
        To one function.
    calls : ndarray of int64
        Calls over each.
    most : int
        Paths that are left at most; the lightest are left out beyond that.
    """
    if len(paths) <= most:
        return MergedPaths(paths=tuple(paths), member=np.arange(len(paths)))
    weight: dict[Edge, int] = {}
    for path, number in zip(paths, calls.tolist(), strict=True):
        for edge in path.edges():
            weight[edge] = weight.get(edge, 0) + number
    total = int(calls.sum())
    merged: list[CallPath] = []
    for share in _RARE:
        rare = {edge for edge, number in weight.items() if number < share * total}
        merged = [_without(path, rare) for path in paths]
        if len(set(merged)) <= most:
            break
    sums: dict[CallPath, int] = {}
    for path, number in zip(merged, calls.tolist(), strict=True):
        sums[path] = sums.get(path, 0) + number
    kept = sorted(sums, key=lambda path: (-sums[path], path))[:most]
    place = {path: number for number, path in enumerate(kept)}
    return MergedPaths(paths=tuple(kept), member=np.array([place.get(path, -1) for path in merged], dtype=np.int64))


def _without(path: CallPath, rare: set[Edge]) -> CallPath:
    """Return a path with a gap in place of rare edges; of an incomplete path only its end is left."""
    if not path.complete:
        return CallPath((GAP, path.frames[-1]), complete=False)
    frames = path.frames
    is_rare = [edge in rare for edge in pairwise(frames)]
    if not any(is_rare):
        return path
    left: list[Frame] = []
    for place, frame in enumerate(frames):
        before = is_rare[place - 1] if place else True
        after = is_rare[place] if place < len(is_rare) else False
        if not (before and after):
            left.append(frame)
        if after and (not left or left[-1] != GAP):
            left.append(GAP)
    return CallPath(tuple(left))


def unmerged(
    explanation: Explanation, paths: Sequence[CallPath], class_calls: NDArray[np.int64], merged: MergedPaths
) -> Explanation:
    """Return an explanation of merged paths as one of the paths.

    Parameters
    ----------
    explanation : Explanation
        Of ``merged.paths``.
    paths : sequence of CallPath
    class_calls : ndarray of int64, shape (paths, classes)
    merged : MergedPaths
    """
    if merged.paths == tuple(paths):
        return explanation
    known = {one.path: one for one in explanation.paths}
    shared = shared_names(paths)
    every = []
    for path, member, own in zip(paths, merged.member.tolist(), class_calls.tolist(), strict=True):
        one = known.get(merged.paths[member]) if member >= 0 else None
        calls = sum(own)
        if one is None:
            every.append(
                ExplainedPath(
                    path=path, calls=calls, class_calls=tuple(own), behaviour=_fulfilled(explanation, path, shared)
                )
            )
            continue
        independent = one.independent_calls
        every.append(
            replace(
                one,
                path=path,
                calls=calls,
                class_calls=tuple(own),
                independent_calls=None if independent is None else independent * calls / max(one.calls, 1),
            )
        )
    every.sort(key=lambda one: (-one.calls, one.path))
    return replace(
        explanation, paths=tuple(every), behaviours=_counted(explanation, every),
        class_calls=tuple(int(number) for number in class_calls.sum(axis=0)),
    )  # fmt: skip


def _fulfilled(explanation: Explanation, path: CallPath, shared: frozenset[str]) -> int | None:
    if not path.complete:
        return None
    edges = named_edges(path, shared)
    fulfilled = [number for number, one in enumerate(explanation.behaviours) if evaluate(one.formula, edges)]
    return fulfilled[0] if len(fulfilled) == 1 else None


def _counted(explanation: Explanation, every: Sequence[ExplainedPath]) -> tuple[Behaviour, ...]:
    """Return the behaviours with the calls of all paths that are theirs."""
    classes = len(explanation.class_calls)
    counts = np.zeros((len(explanation.behaviours), classes), dtype=np.int64)
    paths = [0] * len(explanation.behaviours)
    for one in every:
        if one.behaviour is not None:
            counts[one.behaviour] += one.class_calls
            paths[one.behaviour] += 1
    return tuple(
        replace(behaviour, calls=int(row.sum()), paths=number, class_calls=tuple(int(calls) for calls in row))
        for behaviour, row, number in zip(explanation.behaviours, counts, paths, strict=True)
    )
