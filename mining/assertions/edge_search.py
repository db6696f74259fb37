"""The smallest set of call edges that tells groups of call paths apart, by A* (first paper, section 3.5).

Two paths of different groups must differ in at least one chosen edge. That is a hitting set problem: for each
such pair choose one of the edges that only one of the two has. Edges present on the same paths, or on exactly
the others, tell the same apart; only the best of them takes part.
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

_MOST = 16  # edges of a set that is taken unproved: nobody reads more
_HOPELESS = 40  # edges from which on the groups follow no edges, and the search would look in vain
_ROWS = 200  # rows of a block that are compared with so many others when new pairs are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A set of edges that separates all groups."""

    edges: tuple[Edge, ...]
    """In the order of preference, best first."""
    optimal: bool
    """False if the search ran out of its limit: a smaller set may exist."""
    lower_bound: int
    """No set is smaller than this."""


def order_of(edge: Edge, distance: int, program: frozenset[str]) -> tuple[int, bool, str, str, str, str]:
    """Return the order of preference of an edge: nearest to the function, program before library, by name."""
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
    """Find the smallest set of edges on which no two paths of different groups look alike.

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
        Pairs to look at before a good set is taken for the best; bounds the time.

    Returns
    -------
    Selection or None
        None if two paths of different groups have the same edges, or only a great many edges would tell them apart.

    Notes
    -----
    Cost of a state: (edges, sum of distances, library edges); the first is completed by an admissible bound,
    the number of unresolved pairs that pairwise share no edge. States branch over the edges of the unresolved
    pair with the fewest, and each branch gives up the edges before its own, so that no set is met twice.
    Pairs are added as they are needed: the best set for some pairs is best for all once it resolves all.
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
        found, bound, limit = _search(pairs, cost, limit)
        if found is None:
            if len(good) > _MOST:
                return None
            return Selection(edges=tuple(order[i] for i in good), optimal=len(good) == bound, lower_bound=bound)
        chosen = found
    return Selection(edges=tuple(order[i] for i in chosen), optimal=True, lower_bound=len(chosen))


def distinct_columns(paths: Sequence[frozenset[Edge]], order: Sequence[Edge]) -> list[int]:
    """Return the indices of edges that differ in where they are present, the most preferred of each kind."""
    everything = (1 << len(paths)) - 1
    seen = {0}
    result = []
    for index, edge in enumerate(order):
        column = sum(1 << row for row, path in enumerate(paths) if edge in path)
        column = column ^ everything if column & 1 else column
        if column not in seen:
            seen.add(column)
            result.append(index)
    return result


def _blocks(rows: dict[int, int], chosen: tuple[int, ...]) -> list[list[int]]:
    """Return the rows that look alike on the chosen edges, where they belong to different groups."""
    mask = sum(1 << index for index in chosen)
    blocks: dict[int, list[int]] = {}
    for row in rows:
        blocks.setdefault(row & mask, []).append(row)
    return [block for block in blocks.values() if len({rows[row] for row in block}) > 1]


def _unresolved(rows: dict[int, int], chosen: tuple[int, ...]) -> list[int]:
    """Return differences (bits over the edges) of rows of different groups that the chosen edges do not show.

    Of each such row the least difference to some others; none only if all is resolved.
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
    """Leave out pairs that are resolved with another."""
    minimal: list[int] = []
    for pair in sorted(set(pairs), key=lambda p: (p.bit_count(), p)):
        if not any(known & pair == known for known in minimal):
            minimal.append(pair)
    return minimal


def _search(pairs: list[int], cost: Sequence[tuple[int, int]], limit: int) -> tuple[tuple[int, ...] | None, int, int]:
    """Return the best set for these pairs (None: out of limit), a lower bound of its size, the limit left."""
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
    """Return how many pairs share no edge with each other (taken greedily), 0 if one has no edge left."""
    used = count = 0
    for pair in sorted(pairs, key=int.bit_count):
        if pair == 0:
            return 0
        if not pair & used:
            used |= pair
            count += 1
    return count


def _greedy(rows: dict[int, int], columns: list[int]) -> tuple[int, ...] | None:
    """Return edges that resolve all, each the one that leaves the fewest pairs; None if it takes too many."""
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
    """Count the pairs of rows of different groups that look alike on the chosen edges and a tried one, for each."""
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
