"""How far the host changed from one side to the other, shown by functions whose machine code did not change.

Where all lifetimes of one side ran before those of the other, a host that became slower looks like a slower build.
Functions of unchanged code went through the same: what they lost was not lost to the code. A comparison then has two
answers, with and without that part, and its interval holds both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specmine.mining.statistics.student_t import t_quantile, two_sided_p

from .ratio_estimate import RatioEstimate, ratio_estimate, welch_freedom

Run = tuple[str, str]
"""Host and lifetime."""
Summaries = Mapping[Run, float]
"""A summary of one function by lifetime, above 0, any unit."""
FEWEST_CONTROLS = 2
"""One function does not show how far functions react to a host each in its own way."""
STEADY = 0.01
"""Functions of which lifetimes differ by less are all steady."""
_LESS_STEADY = 3.0
"""A function that varies so many times as much as another one shows nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDrift:
    """What functions of unchanged code did from base to new."""

    ratio: float
    """New over base, geometric mean over these functions."""
    low: float
    high: float
    """Where their mean ratio lies, judged by how they differ."""
    deviation: float
    """Standard deviation of their log ratios."""
    controls: int
    index: tuple[Mapping[Run, float], Mapping[Run, float]]
    """By side and lifetime: mean distance of their log summaries from the usual."""


def deviation_of(base: Summaries, new: Summaries) -> float:
    """Return the standard deviation of log summaries between lifetimes of one side, pooled over both."""
    logs = [np.log(list(side.values())) for side in (base, new) if side]
    freedom = sum(len(each) - 1 for each in logs)
    return math.sqrt(sum(float(((each - each.mean()) ** 2).sum()) for each in logs) / freedom) if freedom else 0.0


def host_drift(
    controls: Sequence[tuple[Summaries, Summaries]], level: float, deviation: float = STEADY
) -> HostDrift | None:
    """Return the drift that functions of unchanged code show.

    Parameters
    ----------
    controls : sequence of pairs
        Of each such function its summaries on both sides.
    level : float
        Confidence of the interval.
    deviation : float
        ``deviation_of`` the function that is to be judged. Controls that vary much more, such as functions that wait,
        are left out if enough others remain.

    Returns
    -------
    HostDrift or None
        None with fewer than ``FEWEST_CONTROLS`` functions that have lifetimes on both sides.
    """
    whole = [each for each in controls if each[0] and each[1]]
    steady = [each for each in whole if deviation_of(*each) <= _LESS_STEADY * max(deviation, STEADY)]
    if len(steady) >= FEWEST_CONTROLS:
        whole = steady
    if len(whole) < FEWEST_CONTROLS:
        return None
    distances: tuple[dict[Run, list[float]], dict[Run, list[float]]] = {}, {}
    changes = []
    for sides in whole:
        means = [float(np.mean([math.log(value) for value in side.values()])) for side in sides]
        middle = 0.5 * (means[0] + means[1])  # each function counts alike, however long it takes
        changes.append(means[1] - means[0])
        for found, side in zip(distances, sides, strict=True):
            for run, value in side.items():
                found.setdefault(run, []).append(math.log(value) - middle)
    base, new = ({run: float(np.mean(values)) for run, values in found.items()} for found in distances)
    mean, spread = float(np.mean(changes)), float(np.std(changes, ddof=1))
    half = t_quantile(0.5 + 0.5 * level, len(whole) - 1.0) * spread / math.sqrt(len(whole))
    return HostDrift(
        ratio=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        deviation=spread,
        controls=len(whole),
        index=(base, new),
    )


def allowing_for(
    drift: HostDrift, found: RatioEstimate, base: Summaries, new: Summaries, level: float
) -> RatioEstimate:
    """Return an estimate whose interval holds the ratio with and without the host's part.

    Parameters
    ----------
    drift : HostDrift
    found : RatioEstimate
        Of the same summaries, as if the host had been the same.
    base, new : mapping
        The summaries of one function by lifetime.
    level : float

    Notes
    -----
    Relative to the controls of the same lifetime, what all functions share cancels. What remains of the host is how
    far one function differs from the others in its reaction to it: the deviation between controls, as of one more draw.
    """
    relative = []
    for side, index in zip((base, new), drift.index, strict=True):
        hosts: dict[str, list[float]] = {}
        for run, value in side.items():
            if run in index:
                hosts.setdefault(run[0], []).append(value / math.exp(index[run]))
        relative.append(hosts)
    other = ratio_estimate(relative[0], relative[1], level=level)
    if other is None:
        return found
    own, reaction = other.error**2, drift.deviation**2 * (1.0 + 1.0 / drift.controls)
    freedom = welch_freedom(own, other.freedom, reaction, drift.controls - 1.0)
    error = math.sqrt(own + reaction)
    half, centre = t_quantile(0.5 + 0.5 * level, freedom) * error, math.log(other.ratio)
    p_value = two_sided_p(centre / error, freedom) if error > 0.0 else float(centre == 0.0)
    wider = error > found.error
    return replace(
        found,
        low=min(found.low, math.exp(centre - half)),
        high=max(found.high, math.exp(centre + half)),
        error=max(error, found.error),
        freedom=freedom if wider else found.freedom,
        p_value=max(found.p_value, p_value),
    )
