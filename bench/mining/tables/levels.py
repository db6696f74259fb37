"""How long chains last while levels only vary, how often a step ends them, and what is said of mixtures over time.

Windows have levels of an autoregressive process: standard deviation, correlation from one window to the next. A share
of the windows is disturbed: 1.2 to 5 times as slow. So healthy servers were seen to behave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.mining.tables.borders import upper_bound
from bench.mining.tables.distributions import observed
from specmine.mining.borders.stability import Chain, chain
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

S = MiningSettings()
CALLS = 500
Levels = NDArray[np.float64]
STEPS = (1.1, 1.25, 1.5, 2.0)
HEALTHY = ((0.0, 0.0, 0.0), (0.05, 0.5, 0.02), (0.1, 0.8, 0.02), (0.2, 0.8, 0.05), (0.3, 0.5, 0.05), (0.3, 0.95, 0.05))
HEAD = (
    "sd of levels", "correlation", "disturbed", "spread", "ended by the level, %: 10 windows", "20 windows",
    "40 windows", "unstable by a course, %, 20 windows", *(f"{step:g}-fold found after 5" for step in STEPS),
)  # fmt: skip
COURSES_HEAD = ("levels of 20 windows", "spread", "stable", "drift", "wave", "mixture", "ended by the level only")


def autoregressive(rng: np.random.Generator, count: int, sd: float, correlation: float) -> Levels:
    """Return log levels of so many windows."""
    levels = np.empty(count)
    levels[0] = rng.normal(0, sd)
    for index in range(1, count):
        levels[index] = correlation * levels[index - 1] + rng.normal(0, sd * np.sqrt(1 - correlation**2))
    return levels


def disturbed(rng: np.random.Generator, levels: Levels, share: float) -> Levels:
    """Return levels of which this share is 1.2 to 5 times as slow."""
    return levels + (rng.random(len(levels)) < share) * rng.uniform(np.log(1.2), np.log(5.0), len(levels))


def windows(rng: np.random.Generator, levels: Levels, spread: float, classes: bool = False) -> list[Observation]:
    """Draw a window at each level: lognormal durations, or two classes of them, eightfold apart."""
    slow = 8.0 * (rng.random((len(levels), CALLS)) < 0.3) if classes else 0.0
    values = 2e4 * np.exp(levels[:, None] + rng.normal(0, spread, (len(levels), CALLS))) * np.maximum(1.0, slow)
    return [observed(index, Histogram.from_durations(row)) for index, row in enumerate(values)]


def table(cases: int) -> Iterator[list[object]]:
    """Yield rows: rates in percent with upper 99 % bounds; found steps as shares."""
    for sd, correlation, share in HEALTHY:
        for spread in (0.3, 0.9):
            rng = np.random.default_rng(8)

            def drawn(
                count: int, sd: float = sd, phi: float = correlation, q: float = share, rng: np.random.Generator = rng
            ) -> Levels:
                return disturbed(rng, autoregressive(rng, count, sd, phi), q)

            kept = {count: [chain(windows(rng, drawn(count), spread), settings=S) for _ in range(cases)]
                    for count in (10, 20, 40)}  # fmt: skip
            ended = [_rate([one.ended_by == "level" for one in of_count]) for of_count in kept.values()]
            courses = _rate([one.course is not None for one in kept[20]])
            found = []
            for step in STEPS:
                after = np.log(step) * (np.arange(20) >= 15)
                got = [chain(windows(rng, drawn(20) + after, spread), settings=S) for _ in range(cases // 4)]
                found.append(float(np.mean([one.observations <= 5 for one in got])))
            yield [sd, correlation, share, spread, *ended, courses, *found]


COURSES: dict[str, Callable[[np.random.Generator], Levels]] = {
    "constant": lambda rng: rng.normal(0, 0.05, 20),
    "drift to the double": lambda rng: np.linspace(0, np.log(2), 20) + rng.normal(0, 0.05, 20),
    "drift to the fivefold": lambda rng: np.linspace(0, np.log(5), 20) + rng.normal(0, 0.05, 20),
    "wave, 2-fold, 10 windows": lambda rng: _sine(rng, 2.0, 10),
    "wave, 5-fold, 10 windows": lambda rng: _sine(rng, 5.0, 10),
    "1 or 2 by lot": lambda rng: np.log(2) * rng.integers(0, 2, 20) + rng.normal(0, 0.05, 20),
    "1 or 5 by lot": lambda rng: np.log(5) * rng.integers(0, 2, 20) + rng.normal(0, 0.05, 20),
    "5-fold after 10 windows": lambda rng: np.log(5) * (np.arange(20) >= 10) + rng.normal(0, 0.05, 20),
}


def _sine(rng: np.random.Generator, factor: float, period: float) -> Levels:
    angle = 2 * np.pi * (np.arange(20) / period + rng.random())
    wave: Levels = 0.5 * np.log(factor) * np.sin(angle) + rng.normal(0, 0.05, 20)
    return wave


def courses(cases: int) -> Iterator[list[object]]:
    """Yield rows: how often each course is named."""
    for name, levels in COURSES.items():
        for spread in (0.1, 0.3):
            rng = np.random.default_rng(9)
            said: Counter[str] = Counter()
            for _ in range(cases):
                said[_said(chain(windows(rng, levels(rng), spread), settings=S))] += 1
            yield [name, spread, *(said[key] / cases for key in ("stable", "drift", "wave", "mixture", "level"))]


def _said(one: Chain) -> str:
    if one.course is not None:
        return one.course.kind.value
    return "stable" if one.stable else "level"


def _rate(hits: Sequence[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.1f} (at most {100 * upper_bound(sum(hits), len(hits)):.1f})"
