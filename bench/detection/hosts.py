"""How often does the detector page for nothing, how soon does it find a change, and when does it say it began?

    .venv/bin/python -m bench.detection.hosts [--scenario S1] [--months 10] [--seed 1] [--hosts 20] [--hours 24]

It simulates hosts of 200 functions (``bench/lib/simulated_hosts.py``) and makes the tables of docs/detection.md. A
month of S1 takes about two minutes of one CPU. Needs no root.
"""

from __future__ import annotations

import argparse
import copy
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.lib.simulated_hosts import FUNCTIONS, GRID, LEARNING, SCENARIOS, SLOWER, Hosts, learned, watch
from specmine.mining.detection.detector import LEAST_FACTOR, LEAST_WINDOWS
from specmine.mining.detection.innovations import Streams
from specmine.mining.detection.threshold import FROM, Calibration, with_peak, with_time

Floats = NDArray[np.float64]
THRESHOLDS = np.arange(16.0, 24.5, 1.0)
WATCHED_SECONDS = 1_500.0
PARTS = {"all": (0.0, 1.0), "to 10 %": (0.0, 0.1), "10 to 15 %": (0.1, 0.15), "15 to 30 %": (0.15, 1.0)}


def qualified(streams: Streams) -> Floats:
    """Return the evidence that functions are slower, where the other conditions of an open change hold."""
    enough = (streams.windows >= LEAST_WINDOWS) & (streams.total >= math.log(LEAST_FACTOR) * streams.windows)
    return np.asarray(np.where(enough, streams.evidence, 0.0)[:, :SLOWER].max(axis=1))


@dataclass
class Peaks:
    """The peaks of evidence of functions that did not change."""

    peak: Floats
    found: list[tuple[float, int, float]] = field(default_factory=list)
    """When, which function, and how much."""

    def see(self, rows: NDArray[np.intp], now: float, streams: Streams) -> None:
        """Take one step into account; an excursion ends where no factor has evidence."""
        self.peak[rows] = np.maximum(self.peak[rows], qualified(streams))
        over = (streams.evidence[:, :SLOWER].max(axis=1) <= 0) & (self.peak[rows] > 0)
        self.found += [(now, int(row), float(self.peak[row])) for row in rows[over] if self.peak[row] > FROM]
        self.peak[rows[over]] = 0.0

    def pages(self, threshold: float) -> int:
        """Return the pages: one a host and minute."""
        every = [*self.found, *((0.0, int(row), float(self.peak[row])) for row in np.flatnonzero(self.peak > FROM))]
        return len({(row // FUNCTIONS, now // 60) for now, row, peak in every if peak >= threshold})


def false_pages(scenario: str, months: float, seed: int, number: int, hours: float) -> tuple[Hosts, Streams]:
    """Print false pages a host-month by threshold, with 95 % intervals; return the hosts of the last round."""
    counts, done, round_number, thresholds = dict.fromkeys(THRESHOLDS.tolist(), 0), 0.0, 0, []
    suspected = windows = 0
    while True:
        hosts, streams = learned(np.random.default_rng((seed, round_number)), SCENARIOS[scenario], number)
        peaks = Peaks(peak=np.zeros(hosts.count))

        def see(rows: NDArray[np.intp], now: float, part: Streams, _: Floats, peaks: Peaks = peaks) -> None:
            nonlocal suspected, windows
            peaks.see(rows, now, part)
            suspected += int((part.evidence.max(axis=1) > FROM).sum())
            windows += len(rows)

        watch(hosts, streams, LEARNING, LEARNING + 3600 * hours, see)
        done += number * hours / 720
        round_number += 1
        for threshold in counts:
            counts[threshold] += peaks.pages(threshold)
        thresholds += [_calibrated(peaks, host, hours) for host in range(number)]
        cells = [
            f"h {h:.0f}: {n / done:.1f} ({_low(n) / done:.1f} to {_high(n) / done:.1f})" for h, n in counts.items()
        ]
        print(f"{scenario}, {done:.2f} host-months, false pages a month: " + "; ".join(cells))
        print(
            f"  thresholds after a day: {np.quantile(thresholds, 0.1):.1f} to {np.quantile(thresholds, 0.9):.1f};"
            f" windows above {FROM:.0f}: {suspected / windows:.2g}; windows a month {windows / done:.2g}",
            flush=True,
        )
        if done >= months - 1e-6:
            return hosts, streams


def _calibrated(peaks: Peaks, host: int, hours: float) -> float:
    """Return the threshold that a host sets itself after the day, as if it had lasted a week."""
    known = with_time(with_time(Calibration(), 1), 1 + int(hours * 3600 * 1e9))
    for _, row, peak in peaks.found:
        if row // FUNCTIONS == host:
            known = with_peak(known, peak)
    return known.threshold


def _low(count: int) -> float:
    return float(stats.chi2.ppf(0.025, 2 * count) / 2) if count else 0.0


def _high(count: int) -> float:
    return float(stats.chi2.ppf(0.975, 2 * count + 2) / 2)


def delays(scenario: str, hosts: Hosts, streams: Streams, seed: int, hours: float) -> None:
    """Print how long after a change of each size it is open, by threshold and spread, and how exact its moment is."""
    begin = LEARNING + 3600 * hours
    for factor in (1.5, 2.0, 3.0, 10.0):
        changed, watched = copy.deepcopy(hosts), streams.take(np.arange(hosts.count))
        changed.rng = np.random.default_rng(seed)
        at = begin + changed.rng.uniform(0, 60, hosts.count)
        found = np.full((len(THRESHOLDS), hosts.count), np.inf)
        since = np.zeros((len(THRESHOLDS), hosts.count))

        def see(
            rows: NDArray[np.intp],
            now: float,
            part: Streams,
            _: Floats,
            at: Floats = at,
            found: Floats = found,
            since: Floats = since,
        ) -> None:
            evidence = qualified(part)
            best = part.since[np.arange(len(rows)), part.evidence[:, :SLOWER].argmax(axis=1)]
            for number, threshold in enumerate(THRESHOLDS.tolist()):
                hit = (evidence >= threshold) & (now > at[rows]) & np.isinf(found[number, rows])
                found[number, rows[hit]], since[number, rows[hit]] = now, best[hit]

        def shift(rows: NDArray[np.intp], now: float, at: Floats = at, factor: float = factor) -> Floats:
            return np.where(now - GRID >= at[rows], math.log(factor), 0.0)

        watch(changed, watched, begin, begin + WATCHED_SECONDS, see, shift=shift)
        for threshold in (19.0, 20.0, 22.0):
            number = int(np.flatnonzero(threshold == THRESHOLDS)[0])
            cells = []
            for name, (low, high) in PARTS.items():
                part = (hosts.spread > low) & (hosts.spread <= high)
                if part.any():
                    delay = found[number, part] - at[part]
                    cells.append(f"{name}: {np.median(delay):.0f} s, {100 * np.mean(delay <= 60):.0f} %")
            seen = np.isfinite(found[number])
            off = np.abs(since[number, seen] - at[seen]) / hosts.interval[seen]
            located = f"within two windows {100 * np.mean(off <= 2):.0f} %" if seen.any() else ""
            print(f"{scenario} x{factor:g} h {threshold:.0f} | " + " | ".join(cells) + f" | {located}", flush=True)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="S1")
    parser.add_argument("--months", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=20, help="hosts at once")
    parser.add_argument("--hours", type=float, default=24.0, help="hours that they are watched, after six of learning")
    options = parser.parse_args()
    hosts, streams = false_pages(options.scenario, options.months, options.seed, options.hosts, options.hours)
    delays(options.scenario, hosts, streams, options.seed, options.hours)


if __name__ == "__main__":
    main()
