"""Simulated hosts of 200 functions each: window locations that wander, follow the day, and are sometimes disturbed.

The level of a window is an autoregressive process of order 1 in log units. A daily wave and the sampling error of
the calls come on top. Disturbances last 10 s, make calls 1.2 to 5 times slower and come independently to each
function. All functions of all hosts are held in arrays, and time goes in steps of 5 s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.detection.changes import STEPS, SUSPECTED
from specmine.mining.detection.innovations import started, step
from specmine.mining.detection.streams import Streams

Floats = NDArray[np.float64]
GRID = 5.0
DAY = 86_400.0
FUNCTIONS = 200
LEARNING = 6 * 3600.0
QUIET = (0.015, 0.06)
SLOWER = STEPS > 0
"""Factors slower; the others are faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The ranges that each function's properties are drawn from."""

    intervals: tuple[float, ...] = (10.0, 20.0, 30.0, 60.0)
    """Seconds between windows."""
    spread: tuple[float, float] = (0.05, 0.30)
    """Standard deviation of windows ..."""
    quiet: float = 0.0
    """... but of this share of the functions it is within ``QUIET``."""
    correlation: tuple[float, float] = (0.5, 0.95)
    disturbed: tuple[float, float] = (0.01, 0.05)
    """Share of time."""
    wave: float = 0.4
    """Largest amplitude of the day."""


SCENARIOS = {
    "S1": Scenario(),
    "S3": Scenario(intervals=(10.0,), spread=(0.05, 0.15), correlation=(0.5, 0.9)),
    "S4": Scenario(intervals=(10.0,), spread=(0.05, 0.15), correlation=(0.5, 0.9), disturbed=(0.001, 0.005), wave=0.1),
    "rare": Scenario(intervals=(60.0,)),
    "quiet": Scenario(quiet=0.9),
    "mixed": Scenario(quiet=0.6),
    "quiet-rare": Scenario(intervals=(60.0,), quiet=0.9),
    "mixed-rare": Scenario(intervals=(60.0,), quiet=0.6),
    "S6": Scenario(intervals=(5.0,), spread=(0.05, 0.10), correlation=(0.5, 0.9), disturbed=(0.001, 0.005), wave=0.1),
}


class Hosts:
    """The functions of some hosts; what they measure is drawn when a window ends."""

    def __init__(self, rng: np.random.Generator, scenario: Scenario, hosts: int, functions: int = FUNCTIONS) -> None:
        """Draw the properties of hosts x functions functions."""
        count = hosts * functions
        self.rng, self.count, self.functions = rng, count, functions
        self.interval = rng.choice(np.array(scenario.intervals), count)
        self.spread = rng.uniform(*scenario.spread, count)
        if scenario.quiet:
            calm = np.exp(rng.uniform(np.log(QUIET[0]), np.log(QUIET[1]), count))
            self.spread = np.where(rng.random(count) < scenario.quiet, calm, self.spread)
        self.correlation = rng.uniform(*scenario.correlation, count)
        self.disturbed = rng.uniform(*scenario.disturbed, count)
        self.wave = rng.uniform(0, scenario.wave, count)
        self.phase = np.repeat(rng.uniform(0, 1, hosts), functions) + rng.uniform(-0.3, 0.3, count) / (2 * np.pi)
        self.calls = np.exp(rng.uniform(np.log(100), np.log(500), count))
        self.sigma = rng.uniform(0.3, 0.9, count)
        self.wander = rng.normal(0, self.spread)
        self.started = np.zeros(count, dtype=bool)
        self.factor = np.zeros(count)
        self.due = GRID * np.ceil(rng.uniform(0, self.interval) / GRID)
        self.before = np.zeros(count)

    def measure(self, rows: NDArray[np.intp], now: float) -> tuple[Floats, Floats, Floats]:
        """Return location, sampling variance and seconds since the window before, of the functions that are due."""
        rng, elapsed = self.rng, np.maximum(now - self.before[rows], GRID)
        kept = self.correlation[rows] ** (elapsed / self.interval[rows])
        fresh = rng.normal(0, 1, len(rows)) * self.spread[rows] * np.sqrt(1 - kept**2)
        self.wander[rows] = wander = kept * self.wander[rows] + fresh
        goes_on = (elapsed < 2 * GRID) & self.started[rows]
        share = self.disturbed[rows]
        begins = rng.random(len(rows)) < np.where(elapsed < 2 * GRID, 0.5 * share, share)
        factor = np.where(
            goes_on,
            self.factor[rows],
            np.where(begins, rng.uniform(np.log(1.2), np.log(5), len(rows)), 0.0),
        )
        first = begins & ~goes_on & ((elapsed < 2 * GRID) | (rng.random(len(rows)) < 0.5))
        self.started[rows], self.factor[rows], self.before[rows] = first, factor, now
        sampling = self.sigma[rows] ** 2 / self.calls[rows]
        day = self.wave[rows] * np.sin(2 * np.pi * (now / DAY + self.phase[rows]))
        places = wander + day + factor + np.sqrt(sampling) * rng.normal(0, 1, len(rows))
        return places, sampling, elapsed


Shift = Callable[[NDArray[np.intp], float], Floats]


def watch(
    hosts: Hosts,
    streams: Streams,
    begin: float,
    end: float,
    see: Callable[[NDArray[np.intp], float, Streams, Floats], None] = lambda *_: None,
    *,
    shift: Shift | None = None,
) -> None:
    """Let hosts run, and their streams watch them.

    Parameters
    ----------
    hosts, streams
        Both are changed in place.
    begin, end : float
        Seconds.
    see : callable
        Is told rows, time, their streams and their locations after each step.
    shift : callable, optional
        What a change adds to the locations of these rows now.
    """
    for tick in range(int(begin / GRID), int(end / GRID)):
        now = tick * GRID
        rows = np.flatnonzero(hosts.due <= now)
        if not len(rows):
            continue
        places, sampling, elapsed = hosts.measure(rows, now)
        if shift is not None:
            places = places + shift(rows, now)
        part = streams.take(rows)
        part = step(part, places, sampling, elapsed, np.full(len(rows), now - GRID), np.ones(len(rows)))
        streams.put(rows, part)
        see(rows, now, part, places)
        alert = (part.evidence[:, SLOWER].max(axis=1) > SUSPECTED) | (
            part.evidence[:, ~SLOWER].max(axis=1) > 2 * SUSPECTED
        )
        hosts.due[rows] = now + np.where(alert, GRID, hosts.interval[rows])


def learned(
    rng: np.random.Generator, scenario: Scenario, hosts: int, functions: int = FUNCTIONS
) -> tuple[Hosts, Streams]:
    """Return hosts whose streams have watched them for six hours."""
    made = Hosts(rng, scenario, hosts, functions)
    streams = started(np.zeros(made.count), np.full(made.count, 0.02), made.interval)
    watch(made, streams, 0.0, LEARNING)
    return made, streams
