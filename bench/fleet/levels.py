"""Do levels over hosts hold what they say: intervals of panels, liars, equal builds, a canary on 30 of 1,000 hosts?

    .venv/bin/python -m bench.fleet.levels [--repetitions 2000] [--hosts 1000] [--seed 1]

Hosts are simulated. Logarithms of a function's median are the sum of load (a lognormal load of sigma 0.8, a tenth of
whose logarithm counts), what the host is (5 %), what the host does to this function (4 %), and the sampling of 100
calls. *Covers*: how often a 95 % interval holds the fleet's own mean. The first to answer are those with the most load.
Needs no root.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.lib.driver import table
from specmine.mining.fleet.canary import CanaryComparison, Finding, compare_canary
from specmine.mining.fleet.host_factors import Levels, host_factors
from specmine.mining.fleet.panel import drawn
from specmine.mining.fleet.trimmed import trimmed_mean

Floats = NDArray[np.float64]
LEVEL, PANEL, CALLS = 0.95, 30, 100
SLOW = (1.5, 2.3)
BECAME = (1.25, 1.5)


class Fleet:
    """Hosts with their effects on one function."""

    def __init__(self, rng: np.random.Generator, hosts: int) -> None:
        """Draw them."""
        self.rng = rng
        self.names = [f"h{number}" for number in range(hosts)]
        self.load = rng.normal(0.0, 0.8, hosts)
        self.effects = 0.10 * self.load + rng.normal(0.0, 0.05, hosts) + rng.normal(0.0, 0.04, hosts)

    def seen(self) -> Floats:
        """Return the hosts' medians of 100 calls whose durations have a coefficient of variation of 30 %."""
        found: Floats = self.effects + self.rng.normal(0.0, 0.3 * math.sqrt(math.pi / 2 / CALLS), len(self.effects))
        return found

    def chosen(self, epoch: int, most: int) -> list[int]:
        """Return the places of a panel."""
        return [int(name[1:]) for name in drawn(self.names, most, epoch=str(epoch))]


def main() -> int:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    table(["hosts asked", "bias", "covers", "half width"], _intervals(rng, given))
    table(["canary", "found", "of equal builds called different"], _canaries(rng, given))
    slow = [f"a host {factor} times as slow named" for factor in SLOW]
    table(["hosts", *slow, "anybody named where none is slow"], _outstanding(rng, given))
    became = [f"a host that became {factor} times as slow named" for factor in BECAME]
    table(["hosts", *became, "anybody named where none did"], _changed(rng, given))
    return 0


def _intervals(rng: np.random.Generator, given: argparse.Namespace) -> list[list[str]]:
    rows = []
    for what in (
        "8 by lot",
        "30 by lot",
        "100 by lot",
        "30 by lot, 5 % of all say threefold",
        "the 30 first to answer",
    ):
        biases, covered, widths = [], 0, []
        for at in range(given.repetitions):
            fleet = Fleet(rng, given.hosts)
            seen, truth = fleet.seen(), float(fleet.effects.mean())
            if "threefold" in what:
                seen[rng.choice(given.hosts, given.hosts // 20, replace=False)] += math.log(3)
            number = PANEL if "first" in what else int(what.split()[0])
            places = np.argsort(-fleet.load)[:number].tolist() if "first" in what else fleet.chosen(at, number)
            found = trimmed_mean(seen[places])
            assert found is not None
            low, high = found.interval(LEVEL)
            covered += low <= truth <= high
            biases.append(found.mean - truth)
            widths.append(high - low)
        rows.append([what, f"{100 * np.mean(biases):+.1f} %", f"{100 * covered / given.repetitions:.1f} %",
                     f"{50 * np.mean(widths):.1f} %"])  # fmt: skip
    return rows


def _canaries(rng: np.random.Generator, given: argparse.Namespace) -> list[list[str]]:
    rows = []
    for percent in (10, 5, 2):
        for history in (False, True):
            found, wrong = 0, 0
            for at in range(given.repetitions):
                fleet = Fleet(rng, given.hosts)
                found += _canary(fleet, at, 1 + percent / 100, history=history).finding is Finding.WORSE
                same = _canary(fleet, at, 1.0, history=history)
                wrong += same.interval is not None and not same.interval[0] <= 1.0 <= same.interval[1]
            how = "each host against itself before" if history else "hosts against hosts"
            shares = [f"{100 * number / given.repetitions:.1f} %" for number in (found, wrong)]
            rows.append([f"{percent} % slower on 30 of {given.hosts}, {how}", *shares])
    return rows


def _canary(fleet: Fleet, epoch: int, factor: float, *, history: bool) -> CanaryComparison:
    canaries = {fleet.names[at] for at in fleet.chosen(epoch, PANEL)}
    before = dict(zip(fleet.names, fleet.seen().tolist(), strict=True)) if history else {}
    # load is another an hour later: a tenth of what it differs by counts
    now = fleet.seen() + 0.1 * fleet.rng.normal(0.0, 0.2, len(fleet.names)) + 0.05
    later = dict(zip(fleet.names, now.tolist(), strict=True))
    control = {host: value for host, value in later.items() if host not in canaries}
    return compare_canary(control, {host: later[host] + math.log(factor) for host in canaries}, before)


def _outstanding(rng: np.random.Generator, given: argparse.Namespace) -> list[list[str]]:
    def levels(hosts: int) -> Levels:
        host = 0.10 * rng.normal(0.0, 0.8, hosts) + rng.normal(0.0, 0.05, hosts)
        return _of_functions(rng, host, 0.05)

    return _named(levels, SLOW, given)


def _changed(rng: np.random.Generator, given: argparse.Namespace) -> list[list[str]]:
    def changes(hosts: int) -> Levels:  # each host's load is another now, as in _canary
        return _of_functions(rng, 0.10 * rng.normal(0.0, 0.2, hosts), math.sqrt(2) * 0.05)

    return _named(changes, BECAME, given)


def _of_functions(rng: np.random.Generator, host: Floats, spread: float) -> Levels:
    return {(f"f{at}", f"h{number}"): float(host[number] + rng.normal(0.0, spread))
            for at in range(20) for number in range(len(host))}  # fmt: skip


def _named(levels_of: Callable[[int], Levels], factors: Sequence[float], given: argparse.Namespace) -> list[list[str]]:
    rows = []
    repetitions = max(20, given.repetitions // 20)
    for hosts in (5, 30, 300):
        named, wrong = dict.fromkeys(factors, 0), 0
        for _ in range(repetitions):
            levels = levels_of(hosts)
            wrong += any(each.stands_out for each in host_factors(levels))
            for factor in factors:
                slow = {key: value + (math.log(factor) if key[1] == "h3" else 0.0) for key, value in levels.items()}
                named[factor] += any(each.stands_out and each.host == "h3" for each in host_factors(slow))
        shares = [f"{100 * number / repetitions:.0f} %" for number in (*named.values(), wrong)]
        rows.append([str(hosts), *shares])
    return rows


if __name__ == "__main__":
    sys.exit(main())
