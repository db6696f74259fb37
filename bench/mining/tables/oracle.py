"""The best that can be known of a planted model: by an oracle that knows the number of behaviours and their shares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.mining.assertions.edge_search import Edge
from specmine.model.call_path import CallPath


def likelihood(classes: NDArray[np.int64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log likelihood of each path's calls, shape (paths, 2), in each behaviour, by its upper share."""
    return np.asarray(classes @ np.log(np.stack((1 - upper, upper))))


def planted_is_likeliest(paths: Sequence[CallPath], planted: Sequence[Edge], likelihoods: NDArray[np.float64]) -> bool:
    """Return whether no other list of edges, one exchanged or two in another order, is as likely as the planted one.

    ``planted``: a path has the behaviour of the first of these edges that it has, from 1; 0 without any.
    ``likelihoods`` is the log likelihood of each path in each behaviour. Lists that group all paths as the planted one
    does are no others.
    """
    edges = sorted(set().union(*(path.edges() for path in paths)))
    present = np.array([[edge in own for edge in edges] for own in (path.edges() for path in paths)])
    true = [edges.index(edge) for edge in planted]
    rows = np.arange(len(paths))
    labels = _first(present, true)
    own = float(likelihoods[rows, labels].sum())
    for behaviours, chosen in _others(len(edges), true):
        other = behaviours[_first(present, chosen)]
        if (other != labels).any() and float(likelihoods[rows, other].sum()) >= own:
            return False
    return True


def _first(present: NDArray[np.bool_], chosen: Sequence[int]) -> NDArray[np.intp]:
    has = present[:, chosen]
    return np.where(has.any(axis=1), has.argmax(axis=1) + 1, 0) if chosen else np.zeros(len(present), dtype=np.intp)


def _others(edges: int, true: Sequence[int]) -> Iterator[tuple[NDArray[np.intp], list[int]]]:
    """Yield lists one step away, with the behaviour of each place."""
    same = np.arange(len(true) + 1)
    for place, edge in itertools.product(range(len(true)), range(edges)):
        if edge not in true:
            yield same, [*true[:place], edge, *true[place + 1 :]]
    for i, j in itertools.combinations(range(len(true)), 2):
        order = list(range(len(true)))
        order[i], order[j] = j, i
        yield np.array([0, *(place + 1 for place in order)]), [true[place] for place in order]
