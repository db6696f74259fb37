"""How often recorded durations of a single class show a stable border: by the step of the clock, and by rounding.

The durations are drawn one by one and go the way of `specmine analyze`: the step is found in a sample of them, each is
spread over what it stands for, then borders are inferred from ten observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench.mining.tables.borders import upper_bound
from bench.mining.tables.distributions import observed
from specmine.analysis.importers.exact import EVEN, PLACES
from specmine.mining.borders.detection import borders
from specmine.mining.borders.raw_resolution import resolution_of, spread
from specmine.mining.borders.stability import chain
from specmine.mining.borders.stretch import NONE, STABLE_Z, stretch_of
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram

Values = NDArray[np.float64]
S = MiningSettings()
CALLS = (200, 1_000, 5_000)
LAWS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "normal, sd 0.5 %": lambda rng, n: rng.normal(1e6, 5e3, n),
    "normal, sd 20 %": lambda rng, n: rng.normal(2e4, 4e3, n),
    "lognormal, sigma 0.5": lambda rng, n: rng.lognormal(np.log(2e4), 0.5, n),
    "exponential": lambda rng, n: rng.exponential(2e4, n),
    "Weibull, shape 0.6": lambda rng, n: 2e4 * rng.weibull(0.6, n),
    "Pareto, alpha 1.5": lambda rng, n: 1e4 * (1 + rng.pareto(1.5, n)),
    "uniform": lambda rng, n: rng.uniform(1e4, 3e4, n),
    "log-uniform, 3 decades": lambda rng, n: np.exp(rng.uniform(np.log(1e3), np.log(1e6), n)),
}


def clock(step: float) -> Callable[[Values], Values]:
    """Return what a clock of this step shows, in whole ns."""
    return lambda values: np.round(np.round(values / step) * step)


def digits(number: int) -> Callable[[Values], Values]:
    """Return what is left of durations that are written with so many digits."""

    def written(values: Values) -> Values:
        power = 10.0 ** (np.floor(np.log10(np.maximum(values, 1.0))) - number + 1)
        return np.asarray(np.round(values / power) * power)

    return written


RECORDED: dict[str, Callable[[Values], Values]] = {
    "whole ns": np.round,
    "64 ns": clock(64.0),
    "1,024 ns": clock(1_024.0),
    "4,096 ns": clock(4_096.0),
    "100 ns": clock(100.0),
    "1 us": clock(1e3),
    "2.5 us": clock(2_500.0),
    "41.67 ns (24 MHz)": clock(1e9 / 24e6),
    "279.4 ns (ACPI timer)": clock(1e9 / 3.579545e6),
    "333.3 ns (3 MHz)": clock(1e9 / 3e6),
    "777 ns": clock(777.0),
    "3.815 us (262,144 Hz)": clock(1e9 / 262_144),
    "1 us, cut off": lambda values: np.floor(values / 1e3) * 1e3,
    "two digits": digits(2),
    "three digits": digits(3),
}
HEAD = ("recorded in", *LAWS, "worst cell, upper 99 %", "all, upper 99 %")


def histories(durations_ns: Values) -> tuple[list[Histogram], MiningSettings]:
    """Return ten observations as `specmine analyze` takes them up, and the settings for them."""
    sample = durations_ns[:: max(len(durations_ns) // (1 << 14), 1)]
    places = [np.modf(np.arange(len(durations_ns)) * ratio)[0] for ratio in (EVEN, *PLACES)]
    resolution = resolution_of(sample, above_ns=0.4 * S.resolution_ns)
    exact, stretch = spread(durations_ns, resolution, places[0]), stretch_of(sample, resolution)
    if stretch == NONE:
        return [Histogram.from_durations(own) for own in np.array_split(exact, 10)], S
    buckets = stretch.buckets(exact + S.resolution_ns * (places[1] + places[2] - 1.0))
    ones = [Histogram.from_pairs(own, np.ones(len(own))) for own in np.array_split(buckets, 10)]
    return ones, replace(S, resolution_ns=0.0, stable_z=STABLE_Z)


def is_false(rng: np.random.Generator, law: str, recorded: str, calls: int) -> bool:
    """Draw a history of ten observations and return whether it has a stable border."""
    windows, settings = histories(RECORDED[recorded](np.maximum(LAWS[law](rng, 10 * calls), 0.0)))
    if not borders(Histogram.sum(windows), settings=settings, z=settings.stable_z):
        return False
    past = [observed(number, window) for number, window in enumerate(windows)]
    return bool(chain(past, settings=settings, found=[()] * len(past)).borders)


def table(cases: int) -> Iterator[list[object]]:
    """Yield rows: false borders in percent by law, each of three sizes."""
    for way, recorded in enumerate(RECORDED):
        row: list[object] = [recorded]
        worst, hits, total = 0.0, 0, 0
        for number, law in enumerate(LAWS):
            rates = []
            for calls in CALLS:
                rng = np.random.default_rng([10, way, number, calls])
                count = sum(is_false(rng, law, recorded, calls) for _ in range(cases))
                rates.append(f"{100 * count / cases:.2g}")
                worst, hits, total = max(worst, upper_bound(count, cases)), hits + count, total + cases
            row.append(" ".join(rates))
        yield [*row, f"{100 * worst:.2f}", f"{100 * upper_bound(hits, total):.2f}"]
