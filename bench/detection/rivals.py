"""How do charts of process control do on windows that wander, against the detector?

    .venv/bin/python -m bench.detection.rivals [--hosts 2] [--hours 12]

All watch the same windows of simulated hosts (scenario S1), with the baseline and the spread that the detector
learned. Kalibera and Tuma (*Precise Regression Benchmarking with Random Effects*, and Kalibera's thesis) name process
control as the on-line method for running systems; Horvath's test is their method for histories. Needs no root.
"""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bench.lib.simulated_hosts import GRID, LEARNING, SCENARIOS, SLOWER, Hosts, learned, watch
from specmine.mining.detection.detector import LEAST_FACTOR, LEAST_WINDOWS
from specmine.mining.detection.streams import Streams
from specmine.mining.detection.threshold import more_evidence

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
REFERENCE = 0.5
WEIGHT = 0.2
HISTORY = 40


def qualified(streams: Streams, sampling: Floats) -> Floats:
    """Return the evidence that functions are slower, beyond what is needed more, where the other conditions hold."""
    enough = (streams.windows >= LEAST_WINDOWS) & (streams.total >= math.log(LEAST_FACTOR) * streams.windows)
    more = np.array([more_evidence(float(one)) for one in streams.variance - sampling])
    return np.asarray(np.where(enough, streams.evidence, 0.0)[:, SLOWER].max(axis=1) - more)


class Chart(Protocol):
    """One rival: told the standardised residuals of some functions, it says which of them alarm."""

    def alarms(self, rows: Rows, deviations: Floats, streams: Streams, sampling: Floats) -> NDArray[np.bool_]:
        """Return which of these functions alarm; their chart then begins anew."""
        ...


class Cusum:
    """CUSUM of independent normal windows (Page, Biometrika 41, 1954)."""

    def __init__(self, count: int, limit: float) -> None:
        """Begin at 0."""
        self.sums, self.limit = np.zeros(count), limit

    def alarms(self, rows: Rows, deviations: Floats, streams: Streams, sampling: Floats) -> NDArray[np.bool_]:
        """Add what exceeds half a standard deviation."""
        sums = np.maximum(0.0, self.sums[rows] + deviations - REFERENCE)
        self.sums[rows] = np.where(sums > self.limit, 0.0, sums)
        return sums > self.limit


class Ewma:
    """Exponentially weighted mean (Roberts, Technometrics 1, 1959)."""

    def __init__(self, count: int, limit: float) -> None:
        """Begin at 0; the limit is in standard deviations of the mean."""
        self.means, self.limit = np.zeros(count), limit * math.sqrt(WEIGHT / (2 - WEIGHT))

    def alarms(self, rows: Rows, deviations: Floats, streams: Streams, sampling: Floats) -> NDArray[np.bool_]:
        """Take a fifth of each window."""
        means = (1 - WEIGHT) * self.means[rows] + WEIGHT * deviations
        self.means[rows] = np.where(means > self.limit, 0.0, means)
        return means > self.limit


class Runs:
    """Three windows running beyond a limit."""

    def __init__(self, count: int, limit: float) -> None:
        """Begin at 0."""
        self.runs, self.limit = np.zeros(count), limit

    def alarms(self, rows: Rows, deviations: Floats, streams: Streams, sampling: Floats) -> NDArray[np.bool_]:
        """Count."""
        runs = np.where(deviations > self.limit, self.runs[rows] + 1, 0.0)
        self.runs[rows] = np.where(runs >= 3, 0.0, runs)
        return runs >= 3


class Horvath:
    """Horvath's test for a change of mean or variance, over the newest windows, asked after each (Kalibera, T13.2)."""

    def __init__(self, count: int, level: float) -> None:
        """Begin without a history; the level is that of one test."""
        self.held, self.number = np.zeros((count, HISTORY)), np.zeros(count, dtype=int)
        root = math.sqrt(2 * math.log(math.log(HISTORY)))
        shift = 2 * math.log(math.log(HISTORY)) + math.log(math.log(math.log(HISTORY)))
        self.limit = (math.log(-2 / math.log(1 - level)) + shift) / root

    def alarms(self, rows: Rows, deviations: Floats, streams: Streams, sampling: Floats) -> NDArray[np.bool_]:
        """Compare both sides of each possible change."""
        held = np.concatenate((self.held[rows, 1:], deviations[:, None]), axis=1)
        self.held[rows] = held
        self.number[rows] += 1
        full = self.number[rows] >= HISTORY
        found = np.zeros(len(rows), dtype=bool)
        if full.any():
            found[full] = np.sqrt(np.abs(_horvath(held[full]))) > self.limit
            found[full] &= held[full, -3:].mean(axis=1) > held[full, : HISTORY // 2].mean(axis=1)
        self.number[rows[found]] = 0
        return found


class Detector:
    """The detector of this project, at a threshold."""

    def __init__(self, count: int, limit: float) -> None:
        """Begin closed."""
        self.closed, self.limit = np.ones(count, dtype=bool), limit

    def alarms(self, rows: Rows, deviations: Floats, streams: Streams, sampling: Floats) -> NDArray[np.bool_]:
        """Alarm once an excursion."""
        over = qualified(streams, sampling) >= self.limit
        found = over & self.closed[rows]
        self.closed[rows] = ~over
        return found


RIVALS: dict[str, tuple[Callable[[int, float], Chart], tuple[float, ...]]] = {
    "detector, evidence": (Detector, (16.5, 18.0)),
    "CUSUM, limit": (Cusum, (8.0, 15.0, 30.0)),
    "EWMA, sd": (Ewma, (5.0, 7.0)),
    "3 windows running, sd": (Runs, (3.0, 5.0)),
    "Horvath's test, level": (Horvath, (1e-2, 1e-6)),
}


def _horvath(held: Floats) -> Floats:
    """Return the largest Z^2 over the possible moments of change."""
    count = np.arange(1, HISTORY + 1)
    sums, squares = np.cumsum(held, axis=1), np.cumsum(held**2, axis=1)
    before = squares / count - (sums / count) ** 2
    rest = count[-1] - count[:-1]
    after = (squares[:, -1:] - squares[:, :-1]) / rest - ((sums[:, -1:] - sums[:, :-1]) / rest) ** 2
    whole = before[:, -1]
    at = np.arange(2, HISTORY - 2)  # calls on the left side
    floor = 1e-6
    split = count[at - 1] * np.log(np.maximum(before[:, at - 1], floor))
    split = split + rest[at - 1] * np.log(np.maximum(after[:, at - 1], floor))
    return np.asarray((HISTORY * np.log(np.maximum(whole, floor))[:, None] - split).max(axis=1))


def run(hosts: Hosts, streams: Streams, begin: float, seconds: float, factor: float) -> dict[str, tuple[int, Floats]]:
    """Return alarms and delays of each rival; with a factor of 1 nothing changes."""
    hosts, streams = copy.deepcopy(hosts), streams.take(np.arange(hosts.count))
    at = begin + hosts.rng.uniform(0, 60, hosts.count)
    charts = {
        f"{name} {limit:g}": make(hosts.count, limit) for name, (make, limits) in RIVALS.items() for limit in limits
    }
    alarms, found = dict.fromkeys(charts, 0), {name: np.full(hosts.count, np.inf) for name in charts}

    def see(rows: Rows, now: float, part: Streams, places: Floats) -> None:
        sampling = hosts.sigma[rows] ** 2 / hosts.calls[rows]
        deviations = (places - part.baseline) / np.sqrt(part.variance)
        for name, chart in charts.items():
            hit = chart.alarms(rows, deviations, part, sampling)
            alarms[name] += int(hit.sum())
            late = rows[hit & (now > at[rows])]
            found[name][late] = np.minimum(found[name][late], now - at[late])

    def shift(rows: Rows, now: float) -> Floats:
        return np.where(now - GRID >= at[rows], math.log(factor), 0.0)

    watch(hosts, streams, begin, begin + seconds, see, shift=shift)
    return {name: (alarms[name], found[name]) for name in charts}


def main() -> None:
    """Simulate and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--hours", type=float, default=12.0)
    options = parser.parse_args()
    hosts, streams = learned(np.random.default_rng(1), SCENARIOS["S1"], options.hosts)
    quiet = run(hosts, streams, LEARNING, 3600 * options.hours, 1.0)
    changed = {factor: run(hosts, streams, LEARNING, 900, factor) for factor in (1.5, 2.0, 3.0)}
    months = options.hosts * options.hours / 720
    print(f"{months:.3f} host-months: one alarm is {1 / months:.0f} a month")
    for name, (alarms, _) in quiet.items():
        cells = []
        for factor, results in changed.items():
            delays = results[name][1]
            cells.append(f"x{factor:g}: {np.median(delays):.0f} s, {100 * np.mean(delays <= 60):.0f} % in 60 s")
        print(f"{name:30} {alarms / months:9.0f} a month   " + "   ".join(cells))


if __name__ == "__main__":
    main()
