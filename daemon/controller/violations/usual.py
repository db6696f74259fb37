"""What calls usually do of their time, and how often they come: what the evidence for a cause is compared with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from specmine.daemon.config.settings import SECOND
from specmine.mining.detection.values import mean_log
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Usual:
    """Sums over some windows of one function."""

    calls: int = 0
    """Timed calls."""
    total_ns: float = 0.0
    """Of their durations, less what the probes add."""
    split_calls: int = 0
    """Timed calls whose time was split, ..."""
    split_ns: float = 0.0
    """... the time of these, ..."""
    waiting_ns: float = 0.0
    """... the part in which they waited for a CPU, ..."""
    blocked_ns: float = 0.0
    """... and that in which they waited for anything else."""
    on_cpu: Histogram = EMPTY
    """The same calls by their time on CPU, as measured."""
    counted: int = 0
    """Calls counted, ..."""
    watched_ns: int = 0
    """... and how long."""
    rates: int = 0
    """Windows with a rate of calls, ..."""
    rate_sum: float = 0.0
    """... the sum of its logarithms, ..."""
    rate_squares: float = 0.0
    """... and of their squares."""
    histogram: Histogram = EMPTY
    """Durations as measured."""
    bias_total: float = 0.0

    @property
    def mean_ns(self) -> float:
        """Mean duration."""
        return self.total_ns / self.calls if self.calls else 0.0

    @property
    def bias_ns(self) -> float:
        """What the probes add to each of the durations."""
        return self.bias_total / self.calls if self.calls else 0.0

    @property
    def mean_log(self) -> float:
        """Mean logarithm of the durations in ns; 0 without calls."""
        return mean_log(self.histogram, self.bias_ns)[0] if self.calls else 0.0

    @property
    def parts_ns(self) -> tuple[float, float, float] | None:
        """Mean time a call runs, waits for a CPU and is blocked; None: not known."""
        if not self.split_calls:
            return None
        waiting, blocked = self.waiting_ns / self.split_calls, self.blocked_ns / self.split_calls
        return max(0.0, self.split_ns / self.split_calls - waiting - blocked), waiting, blocked

    @property
    def rate(self) -> float | None:
        """Calls a second; None: not counted."""
        return self.counted * SECOND / self.watched_ns if self.watched_ns and self.counted else None

    @property
    def rate_spread(self) -> float:
        """Standard deviation of the logarithm of the rate between windows; 0 of fewer than two."""
        if self.rates < 2:
            return 0.0
        return math.sqrt(max(0.0, self.rate_squares - self.rate_sum**2 / self.rates) / (self.rates - 1))


def with_observation(usual: Usual, observation: Observation) -> Usual:
    """Return the sums with one more window."""
    timed, split = observation.timed, observation.split
    if not timed:
        return usual
    time_ns = max(0.0, observation.histogram.time_ns() - observation.bias_ns * timed)
    counted = observation.watched_ns > 0 and observation.calls > 0
    rate = math.log(observation.calls * SECOND / observation.watched_ns) if counted else 0.0
    summed = replace(
        usual,
        calls=usual.calls + timed,
        total_ns=usual.total_ns + time_ns,
        counted=usual.counted + (observation.calls if counted else 0),
        watched_ns=usual.watched_ns + (observation.watched_ns if counted else 0),
        rates=usual.rates + counted,
        rate_sum=usual.rate_sum + rate,
        rate_squares=usual.rate_squares + rate * rate,
        histogram=usual.histogram + observation.histogram,
        bias_total=usual.bias_total + observation.bias_ns * timed,
    )
    if split is None:
        return summed
    return replace(
        summed,
        split_calls=usual.split_calls + timed,
        split_ns=usual.split_ns + time_ns,
        waiting_ns=usual.waiting_ns + split.waiting_ns.total,
        blocked_ns=usual.blocked_ns + split.blocked_ns.total,
        on_cpu=usual.on_cpu + split.on_cpu,
    )


def usual_of(observations: Iterable[Observation]) -> Usual:
    """Return the sums over observations."""
    usual = Usual()
    for one in observations:
        usual = with_observation(usual, one)
    return usual
