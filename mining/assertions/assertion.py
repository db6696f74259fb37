"""From groups of call paths to the shortest expressions over call edges that distinguish them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import Distinguished

from .edge_search import Edge, distinct_columns, order_of, smallest_set
from .expression import Formula, Literal, shown
from .minimization import shortest_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One formula per group; together they use the fewest call edges."""

    formulas: tuple[Formula, ...]
    """In the order of the groups."""
    edges: int
    """Distinct edges used."""
    optimal: bool
    """False if the search was cut short: fewer edges may do."""
    lower_bound: int
    """No statement uses fewer edges than this."""


def state_groups(
    paths: Sequence[Distinguished],
    labels: Sequence[int],
    *,
    shared: frozenset[str] = frozenset(),
    program: frozenset[str] = frozenset(),
    limit: int = 500_000,
) -> Statement | None:
    """Return the formulas that hold for exactly the paths of each group.

    Parameters
    ----------
    paths : sequence of CallPath
        Complete paths to one function, or kinds of its calls.
    labels : sequence of int
        Group of each, from 0 without gaps.
    shared : frozenset of str
        Names that are shown with their module.
    program : frozenset of str
        Modules of the program itself; their edges are preferred to those of libraries.
    limit : int
        Pairs of paths that the search may look at.

    Returns
    -------
    Statement or None
        None if no set of edges distinguishes the groups. One group: ``true`` (a single empty conjunction).
    """
    distance = distances(paths)
    order = sorted(distance, key=lambda edge: order_of(edge, distance[edge], program))
    cost = [(distance[edge], int(order_of(edge, 0, program)[1])) for edge in order]
    sets = [path.edges() for path in paths]
    selection = smallest_set(sets, labels, order, cost=cost, limit=limit)
    if selection is None:
        return None
    chosen = selection.edges
    patterns = [sum(1 << i for i, edge in enumerate(chosen) if edge in present) for present in sets]
    groups = max(labels, default=0) + 1
    formulas = tuple(_formula(patterns, labels, group, chosen, shared) for group in range(groups))
    used = {(lit.caller, lit.callee) for formula in formulas for conj in formula for lit in conj}
    return Statement(formulas=formulas, edges=len(used), optimal=selection.optimal, lower_bound=selection.lower_bound)


def distances(paths: Sequence[Distinguished]) -> dict[Edge, int]:
    """Return the distance of each edge to the function, in edges; the shortest over all paths."""
    distance: dict[Edge, int] = {}
    for path in paths:
        for edge, own in path.distances().items():
            distance[edge] = min(distance.get(edge, own), own)
    return distance


def distinguishing_edges(paths: Sequence[Distinguished], program: frozenset[str]) -> NDArray[np.bool_]:
    """Return which path has which edge, shape (paths, edges), the most preferred edge first.

    Of edges that distinguish the same paths only the preferred one is returned.
    """
    distance = distances(paths)
    order = sorted(distance, key=lambda edge: order_of(edge, distance[edge], program))
    sets = [path.edges() for path in paths]
    edges = [order[i] for i in distinct_columns(sets, order)]
    return np.array([[edge in of_path for edge in edges] for of_path in sets], dtype=bool).reshape(
        len(paths), len(edges)
    )


def _formula(
    patterns: Sequence[int], labels: Sequence[int], group: int, chosen: Sequence[Edge], shared: frozenset[str]
) -> Formula:
    wanted = {p for p, label in zip(patterns, labels, strict=True) if label == group}
    unwanted = {p for p, label in zip(patterns, labels, strict=True) if label != group}
    return tuple(
        tuple(
            Literal(shown(edge[0], shared), shown(edge[1], shared), bool(value >> i & 1))
            for i, edge in enumerate(chosen)
            if mask >> i & 1
        )
        for mask, value in shortest_form(len(chosen), wanted, unwanted)
    )
