"""The yardstick of a function: how its calls were when what is asserted was learned. It never moves by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specmine.model.histogram import EMPTY, Histogram
from specmine.model.level import Level
from specmine.model.observation import Observation

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Usual:
    """What calls did of their time, and how often they came; means over some windows."""

    calls: int = 0
    """Timed calls."""
    mean_ns: float = 0.0
    """Of their durations, less what the probes add."""
    waiting_ns: float | None = None
    """The part of it in which they waited for a CPU; None: not known."""
    blocked_ns: float | None = None
    """The part in which they waited for anything else."""
    rate: float | None = None
    """Calls a second; None: not counted."""
    rate_spread: float = 0.0
    """Standard deviation of the logarithm of that rate between windows."""
    histogram: Histogram = EMPTY
    """Their durations as measured."""
    bias_ns: float = 0.0

    @property
    def running_ns(self) -> float | None:
        """The part of the mean on a CPU."""
        if self.waiting_ns is None or self.blocked_ns is None:
            return None
        return max(0.0, self.mean_ns - self.waiting_ns - self.blocked_ns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Yardstick:
    """What later windows of a function are measured by."""

    build_id: str
    """The build that it was learned from."""
    since_ns: int
    """When it was made, or when a person acknowledged a change."""
    levels: Mapping[str, Level] = field(default_factory=dict)
    """Expression to the level of its calls; ``true``: all calls."""
    usual: Usual = field(default_factory=Usual)
    windows: int = 0
    """Windows that it rests on."""
    inherited_ns: int | None = None
    """Since when another build is judged by it; None: it is this build's own."""
    lifetimes: tuple[str, ...] = ()
    """Lifetimes that it was learned from."""

    @property
    def level(self) -> Level:
        """The level of all calls."""
        return self.levels.get("true", Level())

    def shifted(self, by_ns: int) -> Yardstick:
        """Return it with its times on a clock that is ahead by so much."""
        inherited_ns = None if self.inherited_ns is None else self.inherited_ns + by_ns
        return replace(self, since_ns=self.since_ns + by_ns, inherited_ns=inherited_ns)


def usual_of(observations: Sequence[Observation]) -> Usual:
    """Return means over observations with calls; of none all is unknown."""
    held = [one for one in observations if one.timed]
    if not held:
        return Usual()
    calls = sum(one.timed for one in held)
    bias_ns = sum(one.bias_ns * one.timed for one in held) / calls
    histogram = Histogram.sum(one.histogram for one in held)
    splits = [one.split for one in held if one.split is not None]
    split_calls = sum(one.timed for one in held if one.split is not None)
    rates = [one.calls * SECOND / one.watched_ns for one in held if one.watched_ns > 0 and one.calls > 0]
    watched_ns = sum(one.watched_ns for one in held)
    return Usual(
        calls=calls,
        mean_ns=max(0.0, histogram.mean(bias_ns)),
        waiting_ns=sum(one.waiting_ns.total for one in splits) / split_calls if split_calls else None,
        blocked_ns=sum(one.blocked_ns.total for one in splits) / split_calls if split_calls else None,
        rate=sum(one.calls for one in held) * SECOND / watched_ns if watched_ns > 0 else None,
        rate_spread=float(np.std([math.log(rate) for rate in rates], ddof=1)) if len(rates) > 1 else 0.0,
        histogram=histogram,
        bias_ns=bias_ns,
    )
