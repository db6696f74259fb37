"""Where inside a changed function the change is: in its own time, or in what it calls; and what only moved.

A call of a function takes its own time and that of the probed functions below it. In each lifetime the time of a callee
in one call of the caller is its mean times its calls per call of the caller, so that what is left is the caller's own
time and that of callees without a probe. Lifetimes are compared, as everywhere. Without probed callees the share of
samples in which the function stood innermost takes their place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from specmine.mining.statistics.student_t import t_quantile

from .alarm import causes
from .ratio_estimate import welch_freedom

Name = tuple[str, str]
"""Function and module."""
MOST_OF_IT = 0.8
"""A part that makes up so much of the change is where it is, if the other part did not change for sure."""
FEWEST_SAMPLES = 30
"""Samples inside a function from which its share of the time is known well enough."""


class Part(StrEnum):
    """Which part of a function's time changed."""

    SELF = "self"
    CALLEES = "callees"
    BOTH = "both"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeMean:
    """A function in one lifetime."""

    mean_ns: float
    rate: float
    """Calls per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """A function and what it calls, on one side."""

    own: Mapping[str, LifetimeMean]
    """By lifetime."""
    callees: Mapping[Name, tuple[Mapping[str, LifetimeMean], float]]
    """Observed callees by lifetime, with the share of their calls that come from this function."""
    inside: float | None = None
    """Share of the function's time in which it stood innermost, from samples."""
    samples: float = 0.0
    """How many samples of the function innermost that rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSplit:
    """How a function's change divides."""

    part: Part
    self_ns: float | None = None
    """Change of the time per call in itself, with callees that have no probe; None if not known."""
    self_interval: tuple[float, float] | None = None
    callees_ns: float | None = None
    """Change of the time per call in its probed callees, or in all of them if it is known from samples."""
    through: tuple[Name, ...] = ()
    """Callees that were observed, the largest change first."""
    by: str = ""
    """probes, samples, leaf (no call from it was observed) or '' if it is not known."""


def split_change(base: CallTimes, new: CallTimes, level: float, *, leaf: bool = False) -> ChangeSplit:
    """Divide the change of a function's mean between itself and what it calls.

    Parameters
    ----------
    base, new : CallTimes
        At least two lifetimes a side, else the answer is unknown.
    level : float
        Confidence of the intervals.
    leaf : bool
        True if no call from the function was observed.
    """
    shared = sorted(set(base.callees) & set(new.callees))
    means = [np.array([each.mean_ns for each in side.own.values()]) for side in (base, new)]
    if min(map(len, means)) < 2:
        return ChangeSplit(part=Part.UNKNOWN)
    if shared:
        return _by_probes(base, new, shared, level)
    total = float(means[1].mean() - means[0].mean())
    if leaf:
        return ChangeSplit(part=Part.SELF, self_ns=total, callees_ns=0.0, by="leaf")
    if base.inside is None or new.inside is None or min(base.samples, new.samples) < FEWEST_SAMPLES:
        return ChangeSplit(part=Part.UNKNOWN)
    own = [float(mean.mean()) * (side.inside or 0.0) for mean, side in zip(means, (base, new), strict=True)]
    error = math.hypot(*(ns / math.sqrt(side.samples) for ns, side in zip(own, (base, new), strict=True)))
    bound = t_quantile(0.5 + 0.5 * level, 1e8) * error
    change = own[1] - own[0]
    rest = change - bound, change + bound
    below = total - rest[1], total - rest[0]
    return ChangeSplit(part=_where(total, change, rest, below), self_ns=change, self_interval=rest,
                 callees_ns=total - change, by="samples")  # fmt: skip


def _by_probes(base: CallTimes, new: CallTimes, shared: Sequence[Name], level: float) -> ChangeSplit:
    tables = [_parts(side, shared) for side in (base, new)]
    if min(map(len, tables)) < 2:
        return ChangeSplit(part=Part.UNKNOWN)
    before, after = (table.mean(axis=0) for table in tables)
    own, below = (_interval(tables[0][:, at], tables[1][:, at], level) for at in (0, 1))
    change = after - before
    order = sorted(range(len(shared)), key=lambda at: -abs(change[2 + at]))
    return ChangeSplit(
        part=_where(float(change[0] + change[1]), float(change[0]), own, below),
        self_ns=float(change[0]),
        self_interval=own,
        callees_ns=float(change[1]),
        through=tuple(shared[at] for at in order),
        by="probes",
    )


def _parts(side: CallTimes, shared: Sequence[Name]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return for each lifetime that has all: time of its own, in all shared callees, in each of them; per call, ns."""
    rows = []
    for lifetime, own in side.own.items():
        found = [(side.callees[name][0].get(lifetime), side.callees[name][1]) for name in shared]
        if own.rate <= 0.0 or any(each is None for each, _ in found):
            continue
        parts = [each.mean_ns * each.rate * share / own.rate for each, share in found if each is not None]
        rows.append([own.mean_ns - sum(parts), sum(parts), *parts])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 2 + len(shared))


def _interval(
    first: np.ndarray[tuple[int], np.dtype[np.float64]],
    second: np.ndarray[tuple[int], np.dtype[np.float64]],
    level: float,
) -> tuple[float, float]:
    """Return the Welch interval of second minus first."""
    parts = [float(each.var(ddof=1)) / len(each) for each in (first, second)]
    middle = float(second.mean() - first.mean())
    if sum(parts) <= 0.0:
        return middle, middle
    freedom = welch_freedom(parts[0], len(first) - 1.0, parts[1], len(second) - 1.0)
    bound = t_quantile(0.5 + 0.5 * level, freedom) * math.sqrt(sum(parts))
    return middle - bound, middle + bound


def _where(total: float, own: float, rest: tuple[float, float], below: tuple[float, float]) -> Part:
    """Name the part that changed in the direction of the whole for sure."""
    sign = math.copysign(1.0, total)
    own_sure = min(sign * each for each in rest) > 0.0
    below_sure = min(sign * each for each in below) > 0.0
    share = own / total if total else 0.0
    if own_sure and share >= MOST_OF_IT:
        return Part.SELF
    if below_sure and 1.0 - share >= MOST_OF_IT:
        return Part.CALLEES
    return Part.BOTH if own_sure and below_sure else Part.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A function that is worse by itself, and its callers that are worse because of it."""

    name: Name
    explains: tuple[Name, ...] = ()


def causes_of(
    worse: Mapping[Name, Part], calls: Sequence[tuple[Name, Name]], costs: Mapping[Name, float] | None = None
) -> tuple[Cause, ...]:
    """Return one cause for functions that are worse together.

    Parameters
    ----------
    worse : mapping
        Functions that are worse, with the part of their time that is.
    calls : sequence of (caller, callee)
    costs : mapping, optional
        What orders the causes: the largest first.

    Notes
    -----
    A caller goes under the deepest worse function that it reaches over worse functions, unless its own time is
    known to be worse as well: then it is a cause too.
    """
    keys = {f"{name}\0{module}": (name, module) for name, module in worse}
    edges = [("\0".join(caller), "\0".join(callee)) for caller, callee in calls]
    own = {name for name, where in worse.items() if where in (Part.SELF, Part.BOTH)}
    found = {
        keys[key]: tuple(keys[each] for each in above if keys[each] not in own)
        for key, above in causes(keys, edges).items()
    }
    found |= {name: () for name in own if name not in found}
    order = costs or {}
    names = sorted(found, key=lambda name: (-order.get(name, 0.0), name))
    return tuple(Cause(name=name, explains=found[name]) for name in names)


def exchanged(costs: Mapping[Name, tuple[float, float]], callers: Mapping[Name, Mapping[Name, float]],
              tolerance: float) -> dict[Name, tuple[Name, ...]]:  # fmt: skip
    """Return functions whose cost only moved: what one gained its siblings lost.

    Parameters
    ----------
    costs : mapping
        Time per second in the function, base and new, of functions that are worse or better for sure.
    callers : mapping
        Their callers.
    tolerance : float
        What is left of the sum may be this share of it: else the cost did not only move.

    Returns
    -------
    mapping
        Function to the functions on the other side of the exchange.
    """
    found: dict[Name, tuple[Name, ...]] = {}
    parents = sorted({parent for name in costs for parent in callers.get(name, {})})
    for parent in parents:
        children = [name for name in sorted(costs) if parent in callers.get(name, {})]
        change = {name: costs[name][1] - costs[name][0] for name in children}
        gained = [name for name in children if change[name] > 0.0]
        lost = [name for name in children if change[name] < 0.0]
        total = sum(abs(change[name]) for name in children)
        if gained and lost and abs(sum(change.values())) <= max(tolerance, 1.0 - MOST_OF_IT) * total / 2:
            found |= dict.fromkeys(gained, tuple(lost)) | dict.fromkeys(lost, tuple(gained))
    return found
