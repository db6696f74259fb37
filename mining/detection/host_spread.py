"""How far windows of one host usually vary: what a stream of few windows is taken to do.

Of twelve windows of a function that vary by 2 %, nobody can say that the thirteenth will: so some windows' worth of a
usual spread counts with them. On a host whose functions all vary little that is their spread, and a change is found
after as few windows as it deserves: an empirical Bayes prior (Efron and Morris, *Data analysis using Stein's estimator
and its generalizations*, JASA 70, 1975).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from .alarm import Stream
from .innovations import GRAIN, PRIOR_SPREAD, PRIOR_WINDOWS
from .state import StreamState

LEAST_SPREAD = 0.03
"""A host's usual spread is at least this, and at most ``PRIOR_SPREAD``: no host is known to be quieter or worse."""
LEAST_STREAMS = 8
"""Streams of a kind that must be known ..."""
LEAST_WINDOWS, LEAST_SECONDS = 5.0, 300.0
"""... each from so many windows in so long: neighbours are alike, so a minute of windows shows too little."""

UsualSpreads = Mapping[str, float]
"""Usual spread by kind of stream: ``all``, ``upper``, ``class``, ``share`` or ``path``, in log units."""
NOTHING_USUAL: UsualSpreads = MappingProxyType({})
"""On a host of which little is known."""


def kind_of(stream: Stream) -> str:
    """Return the kind of a stream, by which hosts have a usual spread."""
    return stream.part.partition(" ")[0]


def usual_spreads(streams: Iterable[StreamState]) -> dict[str, float]:
    """Return the usual spread of each kind of stream: the median over the functions of a host.

    Parameters
    ----------
    streams : iterable of StreamState
        Of all functions of the host.

    Returns
    -------
    dict
        By kind; a kind that few functions show is missing.
    """
    shown = defaultdict[str, list[float]](list)
    for one in streams:
        if one.seen >= LEAST_WINDOWS and one.seen * one.interval >= LEAST_SECONDS and not one.opened:
            shown[kind_of(one.stream)].append(_shown_variance(one))
    return {
        kind: min(PRIOR_SPREAD, max(LEAST_SPREAD, math.sqrt(statistics.median(variances))))
        for kind, variances in sorted(shown.items())
        if len(variances) >= LEAST_STREAMS
    }


def with_usual(one: StreamState, usual: UsualSpreads) -> StreamState:
    """Return a stream whose windows count with what is usual on its host, instead of what was assumed before."""
    spread = usual.get(kind_of(one.stream), one.assumed)
    if spread == one.assumed or one.opened:
        return one
    variance = one.variance + _assumed_part(one) * (spread**2 - one.assumed**2)
    return replace(one, variance=max(variance, 1.02 * one.sampling + GRAIN**2), assumed=spread)


def _assumed_part(one: StreamState) -> float:
    """Return how much of the variance is what was assumed; the rest is what windows showed.

    The n-th window has the share 1 / (n - 1 + ``PRIOR_WINDOWS``): what the shares of n windows leave is this product.
    """
    return (PRIOR_WINDOWS - 1) / (one.seen + PRIOR_WINDOWS - 1)


def _shown_variance(one: StreamState) -> float:
    """Return the variance that the windows of a stream showed, without the sampling of calls."""
    assumed = _assumed_part(one)
    return max(0.0, (one.variance - one.sampling - assumed * one.assumed**2) / (1 - assumed))
