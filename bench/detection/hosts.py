"""How often does the detector page for nothing, how soon does it find a change, and when does it say it began?

    .venv/bin/python -m bench.detection.hosts [--scenario S1] [--months 10] [--seed 1] [--learning 21600]

It simulates hosts of 200 functions (``bench/lib/simulated_hosts.py``) and makes the tables of
docs/measured/detection.md. A month of S1 takes some 15 seconds of one CPU. With ``--learning 120`` hosts are watched
from two minutes after their start on, for ``--hours`` each. Needs gcc, but no root.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.lib import stream_simulation as native
from bench.lib.simulated_hosts import FUNCTIONS, LEARNING, SCENARIOS, Hosts
from specmine.mining.detection.detector import THRESHOLD
from specmine.mining.detection.power import KNOWN_WINDOWS, LEAST_KNOWN_WINDOWS, least_factor
from specmine.mining.detection.threshold import Calibration, with_peak, with_time

Floats = NDArray[np.float64]
Rows = NDArray[np.void]
THRESHOLDS = (16.0, 16.5, 17.0, 17.5, 18.0, 20.0)
WATCHED_SECONDS = 1_500.0
PARTS = {
    "all": (0.0, 1.0),
    "to 6 %": (0.0, 0.06),
    "to 10 %": (0.0, 0.1),
    "10 to 15 %": (0.1, 0.15),
    "15 to 30 %": (0.15, 1.0),
}
HOSTS = 20
"""Hosts at once."""


def pages(watched: native.Watched, threshold: float) -> int:
    """Return the pages: one a host and minute."""
    over = watched.peaks[watched.peaks["peak"] >= threshold]
    return len({(int(one["stream"]) // FUNCTIONS, int(one["at"] // 60)) for one in over})


def calibrated(watched: native.Watched, hours: float) -> list[float]:
    """Return the threshold that each host sets itself after so long."""
    found = []
    for host in range(HOSTS):
        known = with_time(with_time(Calibration(), 1), 1 + int(hours * 3600 * 1e9))
        for one in watched.peaks[watched.peaks["stream"] // FUNCTIONS == host]:
            known = with_peak(known, float(one["peak"]))
        found.append(known.threshold)
    return found


def interval(count: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean of a Poisson count."""
    low = float(stats.chi2.ppf(0.025, 2 * count) / 2) if count else 0.0
    return low, float(stats.chi2.ppf(0.975, 2 * count + 2) / 2)


def false_pages(scenario: str, months: float, seed: int, hours: float, learning: float) -> tuple[Hosts, Rows, Rows]:
    """Print false pages a host-month by threshold, with 95 % intervals; return the hosts of the last round."""
    counts, done, limits, windows, fast, rounds = dict.fromkeys(THRESHOLDS, 0), 0.0, [], 0, 0, 0
    while True:
        hosts = Hosts(np.random.default_rng((seed, rounds)), SCENARIOS[scenario], HOSTS)
        functions, streams = native.learned(hosts, learning)
        started = functions.copy(), streams.copy()
        watched = native.watch(functions, streams, learning, learning + 3600 * hours)
        windows, fast, rounds, done = (
            windows + watched.windows,
            fast + watched.fast,
            rounds + 1,
            done + HOSTS * hours / 720,
        )
        counts = {threshold: count + pages(watched, threshold) for threshold, count in counts.items()}
        limits += calibrated(watched, hours)
        if done >= months - 1e-6:
            break
    print(
        f"{scenario}, {done:.2f} host-months after {learning:.0f} s,"
        f" {windows} windows, {100 * fast / windows:.0f} % of them soon"
    )
    for threshold, count in counts.items():
        low, high = (each / done for each in interval(count))
        print(f"  threshold {threshold:g}: {count} false pages, {count / done:.2f} a month ({low:.2f} to {high:.2f})")
    middle = np.quantile(limits, (0.1, 0.5, 0.9))
    print(f"  thresholds that hosts set themselves: {' '.join(f'{each:.1f}' for each in middle)}", flush=True)
    return (hosts, functions, streams) if learning >= LEARNING else (hosts, *started)


def changed(functions: Rows, streams: Rows, begin: float, factor: Floats, seed: int) -> tuple[Rows, Floats]:
    """Let each function change by its factor within a minute, and return what was found and how long after."""
    at = begin + np.random.default_rng((seed, 7)).uniform(0, 60, len(functions))
    changes = native.new_changes(at, 1.0)
    changes["factor"] = np.log(factor)
    native.watch(
        functions.copy(), streams.copy(), begin, begin + WATCHED_SECONDS, changes=changes, thresholds=THRESHOLDS
    )
    return changes, changes["found"] - at[:, None]


def delays(hosts: Hosts, functions: Rows, streams: Rows, begin: float, seed: int, shown: tuple[float, ...]) -> None:
    """Print how long after a change of each size it is open, by threshold and spread, and how exact its moment is."""
    for factor in (1.5, 2.0, 3.0, 10.0):
        changes, delay = changed(functions, streams, begin, np.full(hosts.count, factor), seed)
        for threshold in shown:
            number, cells = THRESHOLDS.index(threshold), []
            for name, (low, high) in PARTS.items():
                part = (hosts.spread > low) & (hosts.spread <= high)
                if part.any():
                    lower, upper = median_interval(delay[part, number])
                    middle, soon = np.median(delay[part, number]), 100 * np.mean(delay[part, number] <= 60)
                    cells.append(f"{name}: {middle:.0f} s ({lower:.0f} to {upper:.0f}), {soon:.0f} %")
            seen = np.isfinite(delay[:, number])
            off = np.abs(changes["since"][seen, number] - changes["at"][seen]) / hosts.interval[seen]
            print(
                f"x{factor:g} h {threshold:g} | {' | '.join(cells)} |"
                f" within two windows {100 * np.mean(off <= 2):.0f} %"
            )


def median_interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % interval of a median, from the binomial law of ranks."""
    low = int(stats.binom.ppf(0.025, len(values), 0.5))
    ordered = np.sort(values)
    return float(ordered[low]), float(ordered[len(values) - 1 - low])


def detectable(hosts: Hosts, functions: Rows, streams: Rows, begin: float, seed: int, threshold: float) -> None:
    """Print which changes are found within a minute, by what is said to be detectable of each function."""
    sampling = hosts.sigma**2 / hosts.calls
    told = np.array(
        [
            least_factor(
                variance=float(one["variance"]),
                sampling=float(error),
                correlation=float(one["lagged"] / one["square"]),
                interval=float(one["interval"]),
                disturbed=float(one["disturbed"]),
                seen=min(float(one["seen"]), KNOWN_WINDOWS),
                threshold=threshold,
            )
            for one, error in zip(streams, sampling, strict=True)
        ]
    )
    known = np.isfinite(told) & (streams["seen"] >= LEAST_KNOWN_WINDOWS)
    _, delay = changed(functions, streams, begin, np.where(known, told, 1.0), seed)
    soon = delay[:, THRESHOLDS.index(threshold)] <= 60
    print(f"detectable, threshold {threshold:g}: known of {100 * known.mean():.0f} % of {len(told)} functions")
    for name, group in (("spread", hosts.spread), ("interval", hosts.interval)):
        edges = np.unique(np.quantile(group, (0, 0.25, 0.5, 0.75, 1)))
        for low, high in itertools.pairwise(edges) if len(edges) > 1 else ():
            part = known & (group >= low) & ((group < high) | (high == edges[-1]))
            if part.any():
                error = math.sqrt(0.25 / part.sum())
                print(
                    f"  {name} {low:.2f} to {high:.2f}: factor {np.median(told[part]):.2f},"
                    f" found {100 * soon[part].mean():.0f} % (+- {196 * error:.0f})"
                )


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="S1")
    parser.add_argument("--months", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=72.0, help="hours that hosts are watched after learning")
    parser.add_argument("--learning", type=float, default=LEARNING, help="seconds of learning")
    parser.add_argument("--threshold", type=float, choices=THRESHOLDS, help="only this one")
    options = parser.parse_args()
    hosts, functions, streams = false_pages(
        options.scenario, options.months, options.seed, options.hours, options.learning
    )
    begin = options.learning + (3600 * options.hours if options.learning >= LEARNING else 0)
    shown = (options.threshold,) if options.threshold else (16.5, 17.0, 18.0)
    delays(hosts, functions, streams, begin, options.seed, shown)
    detectable(hosts, functions, streams, begin, options.seed, options.threshold or THRESHOLD)


if __name__ == "__main__":
    main()
