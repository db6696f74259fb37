"""The smallest set of call edges that distinguishes groups of call paths, by A* (first paper, section 3.5).

Two paths of different groups must differ in at least one chosen edge. That is a hitting set problem: for each such
pair choose one of the edges that only one of the two has. Edges present on the same paths, or on exactly the others,
distinguish the same paths. Only the best of them takes part.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import Frame

Edge = tuple[Frame, Frame]
"""Caller and callee."""

_MOST = 16  # edges of a set that is returned without proof of optimality: nobody reads more
_HOPELESS = 40  # if so many edges do not suffice, the groups do not depend on edges, and there is no search
_ROWS = 200  # rows of a block that are compared, each with so many others, to find new pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A set of edges that separates all groups."""

    edges: tuple[Edge, ...]
    """In the order of preference, best first."""
    optimal: bool
    """False if the search reached its limit: a smaller set may exist."""
    lower_bound: int
    """No set is smaller than this."""


def order_of(edge: Edge, distance: int, program: frozenset[str]) -> tuple[int, bool, str, str, str, str]:
    """Return the key of preference of an edge: nearest to the function first, program before library, then by name."""
    caller, callee = edge
    library = not (caller.module in program and callee.module in program)
    return distance, library, caller.name, callee.name, caller.module, callee.module


def smallest_set(
    paths: Sequence[frozenset[Edge]],
    labels: Sequence[int],
    order: Sequence[Edge],
    *,
    cost: Sequence[tuple[int, int]],
    limit: int,
) -> Selection | None:
    """Return the smallest set of edges on which any two paths of different groups differ.

    Parameters
    ----------
    paths : sequence of frozenset of Edge
        Edges of each path.
    labels : sequence of int
        Group of each path.
    order : sequence of Edge
        All edges, most preferred first.
    cost : sequence of (int, int)
        Secondary cost of each edge of ``order``, compared after the number of edges and before the names:
        (distance to the function, 1 if it belongs to a library).
    limit : int
        Pairs that the search may compare before it returns a good set instead of the best; bounds the time.

    Returns
    -------
    Selection or None
        None if two paths of different groups have the same edges, or too many edges would be needed.

    Notes
    -----
    The cost of a state is (edges, sum of distances, library edges). An admissible bound is added to the first: the
    number of unresolved pairs of which no two share an edge. A state branches over the edges of the unresolved pair
    with the fewest. Each branch excludes the edges of the branches before, so that no set occurs twice. Pairs are added
    as they are needed: the best set for some pairs is the best for all once it resolves all.
    """
    columns = distinct_columns(paths, order)
    rows: dict[int, int] = {}
    for path, label in zip(paths, labels, strict=True):
        row = sum(1 << index for index in columns if order[index] in path)
        if rows.setdefault(row, label) != label:
            return None
    good = _greedy(rows, columns)
    if good is None:
        return None
    pairs: list[int] = []
    chosen: tuple[int, ...] = ()
    while missed := _unresolved(rows, chosen):
        pairs = _without_supersets([*pairs, *missed])
        best, bound, limit = _search(pairs, cost, limit)
        if best is None:
            if len(good) > _MOST:
                return None
            return Selection(edges=tuple(order[i] for i in good), optimal=len(good) == bound, lower_bound=bound)
        chosen = best
    return Selection(edges=tuple(order[i] for i in chosen), optimal=True, lower_bound=len(chosen))


def distinct_columns(paths: Sequence[frozenset[Edge]], order: Sequence[Edge]) -> list[int]:
    """Return the indices of edges that distinguish different paths: of equal ones the most preferred."""
    everything = (1 << len(paths)) - 1
    columns = {0}
    result = []
    for index, edge in enumerate(order):
        column = sum(1 << row for row, path in enumerate(paths) if edge in path)
        column = column ^ everything if column & 1 else column
        if column not in columns:
            columns.add(column)
            result.append(index)
    return result


def _blocks(rows: dict[int, int], chosen: tuple[int, ...]) -> list[list[int]]:
    """Return blocks of rows that are equal on the chosen edges and belong to different groups."""
    mask = sum(1 << index for index in chosen)
    blocks: dict[int, list[int]] = {}
    for row in rows:
        blocks.setdefault(row & mask, []).append(row)
    return [block for block in blocks.values() if len({rows[row] for row in block}) > 1]


def _unresolved(rows: dict[int, int], chosen: tuple[int, ...]) -> list[int]:
    """Return differences (bits over the edges) of rows of different groups that are equal on the chosen edges.

    Of each such row it is the least difference to some others. There is none only if all pairs are resolved.
    """
    differences = set()
    for block in _blocks(rows, chosen):
        for start, row in enumerate(block[:_ROWS]):
            others = [other for other in block[start + 1 :] if rows[other] != rows[row]][:_ROWS]
            if others:
                differences.add(min((row ^ other for other in others), key=lambda d: (d.bit_count(), d)))
        first = block[0]
        differences.add(next(first ^ other for other in block if rows[other] != rows[first]))
    return sorted(differences)


def _without_supersets(pairs: list[int]) -> list[int]:
    """Leave out pairs that any set resolves that resolves another one."""
    minimal: list[int] = []
    for pair in sorted(set(pairs), key=lambda p: (p.bit_count(), p)):
        if not any(smaller & pair == smaller for smaller in minimal):
            minimal.append(pair)
    return minimal


def _search(pairs: list[int], cost: Sequence[tuple[int, int]], limit: int) -> tuple[tuple[int, ...] | None, int, int]:
    """Return the best set for these pairs (None: limit reached), a lower bound of its size, and the limit left."""
    # edges bounded, distance, library, is a goal, edges, edges given up, pairs unresolved
    heap: list[tuple[int, int, int, bool, tuple[int, ...], int, list[int]]] = [
        (_bound(pairs), 0, 0, False, (), 0, pairs)
    ]
    while True:
        bounded, distance, library, goal, chosen, forbidden, unresolved = heapq.heappop(heap)
        if goal:
            return chosen, len(chosen), limit
        if limit <= 0:
            return None, bounded, 0
        branch = min((pair & ~forbidden for pair in unresolved), key=lambda p: (p.bit_count(), p))
        while branch:
            bit = branch & -branch
            branch ^= bit
            index = bit.bit_length() - 1
            rest = [pair for pair in unresolved if not pair & bit]
            limit -= len(unresolved)
            more = _bound([pair & ~forbidden for pair in rest])
            if more or not rest:
                taken = tuple(sorted((*chosen, index)))
                at = (len(taken) + more, distance + cost[index][0], library + cost[index][1])
                heapq.heappush(heap, (*at, not rest, taken, forbidden, rest))
            forbidden |= bit


def _bound(pairs: list[int]) -> int:
    """Return the size of a greedy set of pairs that share no edge with each other; 0 if a pair has no edge left."""
    used = count = 0
    for pair in sorted(pairs, key=int.bit_count):
        if pair == 0:
            return 0
        if not pair & used:
            used |= pair
            count += 1
    return count


def _greedy(rows: dict[int, int], columns: list[int]) -> tuple[int, ...] | None:
    """Return edges that resolve all pairs, by greedy choice; None if too many are needed."""
    present = np.array([[row >> index & 1 for index in columns] for row in rows], dtype=np.int64)
    present = present.reshape(len(rows), len(columns))
    groups = np.array(list(rows.values()), dtype=np.int64)
    chosen: list[int] = []
    while alike := _alike(np.zeros((len(rows), 1), dtype=np.int64), present[:, chosen], groups)[0]:
        left = _alike(present, present[:, chosen], groups)
        best = int(np.argmin(left))
        if len(chosen) == _HOPELESS or left[best] == alike:
            return None
        chosen.append(best)
    for index in list(chosen):
        fewer = [i for i in chosen if i != index]
        if not _alike(np.zeros((len(rows), 1), dtype=np.int64), present[:, fewer], groups)[0]:
            chosen = fewer
    return tuple(sorted(columns[i] for i in chosen))


def _alike(tried: NDArray[np.int64], chosen: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, per tried edge, the pairs of rows of different groups that are equal on it and the chosen edges."""
    block = np.unique(chosen, axis=0, return_inverse=True)[1].reshape(-1) if chosen.shape[1] else np.zeros_like(groups)
    kind = block * (int(groups.max()) + 1) + groups
    order = np.argsort(kind, kind="stable")
    first = np.flatnonzero(np.diff(kind[order], prepend=-1))
    size = np.diff(np.append(first, len(kind)))[:, None]
    yes = np.add.reduceat(tried[order], first, axis=0)
    start = np.flatnonzero(np.diff(block[order][first], prepend=-1))
    pairs = [
        np.add.reduceat(part, start, axis=0) ** 2 - np.add.reduceat(part**2, start, axis=0)
        for part in (yes, size - yes)
    ]
    return np.asarray(sum(part.sum(axis=0) for part in pairs) // 2)
