"""The same call path under several builds: a compiler that inlines a function takes its frame out of the path.

A path that goes a -> b -> c in one build goes a -> c in the other where b was inlined into a; where b ends in a jump to
x, which calls c, it goes a -> x -> c, but a -> b -> c in the other where x was inlined into b. Both are written in the
form that both have, without the frames that only one of them has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

Names = tuple[str, ...]
"""A call path by the names of its frames, outermost first."""
Edges = frozenset[tuple[str, str]]
Function = TypeVar("Function")


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
        All edges observed in the build of the path, of whatever function: the more, the surer.
    other : frozenset of edges
        All edges observed in the other build.

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


def common_forms(
    builds: Sequence[Mapping[Function, Collection[Names]]],
) -> list[dict[Function, dict[Names, Names]]]:
    """Write the call paths of several builds of one program in forms that can be compared.

    Parameters
    ----------
    builds : sequence of mapping
        The call paths of each build by the function that they lead to. All functions together show which frames a
        build has: the more, the surer.

    Returns
    -------
    list of dict
        For each build and function the form of each path. A path that another build has too stays as it is. Of the
        others, frames that not all builds have are left out, then frames that the other builds inlined there
        (``contracted``); but only if that makes it a path that another build has, so written, and this one has not.
    """
    paths = [{path for own in build.values() for path in own} for build in builds]
    everywhere = frozenset.intersection(*(frozenset(name for path in own for name in path) for own in paths))
    common = [{path: _within(path, everywhere) for path in own} for own in paths]
    edges = [edges_of(own.values()) for own in common]
    forms = []
    for number, own in enumerate(common):
        made = dict(own)
        for other in range(len(builds)):
            if other != number:
                made = {path: contracted(form, edges[number], edges[other]) for path, form in made.items()}
        forms.append(made)
    result: list[dict[Function, dict[Names, Names]]] = []
    for number, build in enumerate(builds):
        others = [other for other in range(len(builds)) if other != number]
        result.append({})
        for function, those in build.items():
            theirs = [(other, path) for other in others for path in builds[other].get(function, ())]
            known = {path for _, path in theirs}
            partners = {forms[other][path] for other, path in theirs if path not in those}
            result[number][function] = {
                path: forms[number][path] if path not in known and forms[number][path] in partners else path
                for path in those
            }
    return result


def _within(path: Names, everywhere: Collection[str]) -> Names:
    """Return a path without frames that are not everywhere; its ends stay."""
    return (*path[:1], *(name for name in path[1:-1] if name in everywhere), *path[1:][-1:])
