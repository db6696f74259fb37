"""The same call path under two builds: a compiler that inlines a function takes its frame out of the path.

A path that goes a -> b -> c in one build goes a -> c in the other where b was inlined into a. Both are written in
the form that both have, the shorter one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

Names = tuple[str, ...]
"""A call path by the names of its frames, outermost first."""
Edges = frozenset[tuple[str, str]]


def edges_of(paths: Iterable[Names]) -> Edges:
    """Return all caller -> callee pairs of some paths."""
    return frozenset(edge for path in paths for edge in pairwise(path))


def contracted(path: Names, own: Edges, other: Edges) -> Names:
    """Return a path without the frames that the other build inlined.

    Parameters
    ----------
    path : tuple of str
        Of one build.
    own : frozenset of edges
        All edges seen in the build of the path, of whatever function: the more, the surer.
    other : frozenset of edges
        All seen in the other build.

    Returns
    -------
    tuple of str
        Between a and c frames are left out if the other build has the edge a -> c and not the one that leaves
        a here, and this build never calls c from a: then a's callee, and what it calls on the way, is part of
        a there. First and last frame always stay.

    Notes
    -----
    Brünink and Rosenblum (2016, section 4.1, RQ2) merge the models of builds in which functions were inlined and
    name the difficulty, not the way.
    """
    result = [path[0]] if path else []
    at = 0
    while at + 1 < len(path):
        caller = path[at]
        following = at + 1
        if (caller, path[following]) not in other:
            following = next(
                (
                    later
                    for later in range(at + 2, len(path))
                    if (caller, path[later]) in other and (caller, path[later]) not in own
                ),
                following,
            )
        result.append(path[following])
        at = following
    return tuple(result)


def aligned(
    first: Collection[Names], second: Collection[Names], first_edges: Edges, second_edges: Edges
) -> tuple[dict[Names, Names], dict[Names, Names]]:
    """Return for the paths of two builds the form that both have."""
    return (
        {path: contracted(path, first_edges, second_edges) for path in first},
        {path: contracted(path, second_edges, first_edges) for path in second},
    )
