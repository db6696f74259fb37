"""How often does mining find false borders and groups, how often true ones, and how fast is it?

    .venv/bin/python -m bench.mining.run COMMAND [--cases N]

It makes the tables of docs/measured/mining.md, one by each command; `--help` lists the commands. Every draw is
seeded. The parts are in bench/mining/tables/. Needs diptest and statsmodels (`make setup` installs both), no root.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

from bench.mining.tables import blocked as mining_blocked
from bench.mining.tables import borders as mining_borders
from bench.mining.tables import budget_policies, callees, path_variation
from bench.mining.tables import call_paths as mining_paths
from bench.mining.tables import levels as mining_levels
from bench.mining.tables import recorded as mining_recorded
from bench.mining.tables.alternatives import METHODS
from bench.mining.tables.borders import ONE, OURS, Mixture
from bench.mining.tables.distributions import DIRT, FAMILIES, history, observed
from specmine.mining.borders.detection import borders
from specmine.mining.borders.stability import chain
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

S = MiningSettings()
DOCS = Path(__file__).resolve().parents[2] / "docs"


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, row by row."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(f'{c:.3g}' if isinstance(c, float) else str(c) for c in row)} |", flush=True)


def false(cases: int, families: Sequence[str], seen: Sequence[str] = tuple(DIRT)) -> None:
    """Print the share of histories of a single class in which a stable border is found."""
    sizes = [f"{size:,}" for size in mining_borders.SIZES]
    head = ["family", "as seen", *sizes, "worst, upper 99 %"]
    table("False stable borders, %", head, mining_borders.false_rates(cases, families, seen))


def recorded(cases: int, _: Sequence[str]) -> None:
    """Print the same for recorded durations: by the step of their clock, and by the digits they are written with."""
    sizes = ", ".join(f"{calls:,}" for calls in mining_recorded.CALLS)
    table(f"False stable borders, %, at {sizes} calls", mining_recorded.HEAD, mining_recorded.table(cases))


def true(cases: int, _: Sequence[str]) -> None:
    """Print the share of histories of two classes in which just their border is found, at the same settings."""
    sizes = [f"{size:,}" for size in mining_borders.SIZES]
    table("True stable borders, %", ["smaller class", "sd apart", *sizes], mining_borders.true_rates(cases))


def power(cases: int, _: Sequence[str]) -> None:
    """Print and draw how often the borders of two to five classes are found, by each method at the same false rate."""
    limits = mining_borders.thresholds(1_000)
    head = ["weights", "sd apart", "shape", OURS, *METHODS, ONE]
    drawn = []
    for title, mixtures in (("Two classes", mining_borders.TWO), ("More classes, and tails", mining_borders.MORE)):
        rows = []
        for mixture, values in zip(mixtures, mining_borders.power(mixtures, cases, 1_000, limits), strict=True):
            rows.append([" ".join(f"{w:.2g}" for w in mixture.weights), mixture.apart, mixture.tails, *values])
            if mixtures is mining_borders.TWO:
                drawn.append((mixture, [float(str(value)) for value in values]))
        table(f"{title}: ten observations of 1,000 calls", head, rows)
    mining_borders.drawn(drawn, DOCS / "mining-power.svg")


def changes(cases: int, _: Sequence[str]) -> None:
    """Print how long chains last while nothing changes, and how soon another mix of classes ends them."""
    rows = []
    for spread in (None, 200.0, 50.0):
        rng = np.random.default_rng(4)

        def one(index: int, share: float, spread: float | None = spread, rng: np.random.Generator = rng) -> Observation:
            own = float(rng.beta(share * spread, (1 - share) * spread)) if spread else share
            slow = rng.random(1_000) < own
            return observed(
                index, Histogram.from_durations(rng.lognormal(np.log(2e4), 0.2, 1_000) * np.where(slow, 8.0, 1.0))
            )

        kept: list[bool] = []
        seen: dict[float, list[bool]] = {0.05: [], 0.1: [], 0.2: []}
        for _case in range(cases):
            past = [one(i, 0.3) for i in range(20)]
            kept.append(chain(past, settings=S).observations == 20)
            for change, hits in seen.items():
                got = chain([*past[:15], *(one(15 + i, 0.3 + change) for i in range(5))], settings=S)
                hits.append(got.observations <= 5)
        rows.append([spread or "none", float(np.mean(kept)), *(float(np.mean(hits)) for hits in seen.values())])
    head = ["beta size of the shares", "20 of 20 kept", "+0.05 seen after 5", "+0.10", "+0.20"]
    table("Chains under constant and changed shares", head, rows)


def levels(cases: int, _: Sequence[str]) -> None:
    """Print how often levels that only vary end a chain, how often steps do, and what is said of mixtures over time."""
    table("Chains under levels that vary, and steps", mining_levels.HEAD, mining_levels.table(cases))
    table("Courses of the level", mining_levels.COURSES_HEAD, mining_levels.courses(max(cases // 4, 1)))


def watching(cases: int, _: Sequence[str]) -> None:
    """Print what utility gains on workloads that stay, drift, switch and alternate, relative to equal shares."""
    table("Twenty functions, budget for one at a time", budget_policies.HEAD, budget_policies.table(cases))


def paths(cases: int, _: Sequence[str]) -> None:
    """Print how well planted behaviours are found again."""
    table("Planted behaviours, 10,000 calls", mining_paths.HEAD, mining_paths.table(cases))


def atoms(cases: int, _: Sequence[str]) -> None:
    """Print how many call edges assertions take, by the number of behaviours."""
    table("Call edges in all expressions of a function", mining_paths.ATOMS_HEAD, mining_paths.atoms(cases))


def chance(cases: int, _: Sequence[str]) -> None:
    """Print how soon the search for edges gives up where groups follow none."""
    table("2,000 paths grouped at random", mining_paths.CHANCE_HEAD, mining_paths.chance(cases))


def lot(cases: int, _: Sequence[str]) -> None:
    """Print how often call paths whose class shares are drawn by lot are explained."""
    table("Class shares of paths by lot", path_variation.LOT_HEAD, path_variation.lot_table(cases))


def edge(cases: int, _: Sequence[str]) -> None:
    """Print what is stated where one call edge decides, and paths have effects of their own."""
    table("One deciding edge, 10,000 calls", path_variation.EDGE_HEAD, path_variation.edge_table(cases))


def reached(cases: int, _: Sequence[str]) -> None:
    """Print how often callees that calls reached are stated, where they decide and where not."""
    table("Calls over one path that reach callees, 20 windows", callees.HEAD, callees.table(cases))


def waiting(cases: int, _: Sequence[str]) -> None:
    """Print how often it is stated that calls were blocked, where they are slow for that and where not."""
    table("Calls over one path that reach one callee, 20 windows", mining_blocked.HEAD, mining_blocked.table(cases))


def again(cases: int, _: Sequence[str]) -> None:
    """Print how alike two minings of the same planted models are."""
    table("The same models, other calls", mining_paths.AGAIN_HEAD, mining_paths.again(cases))


def speed(cases: int, _: Sequence[str]) -> None:
    """Print times of one observation and of a history, and those of a Gaussian mixture on the same data, in one run."""
    rng = np.random.default_rng(5)
    values = rng.normal(2e4, 1e3, 10_000) + (rng.random(10_000) < 0.3) * 6e3
    logs = np.log(values)[:, None]
    counts, one = Histogram.from_durations(values), Histogram.from_durations(rng.lognormal(np.log(2e4), 0.5, 10_000))
    past = [history(rng, Mixture(weights=(0.7, 0.3), apart=6.0).chances(), 1_000) for _ in range(500)]
    single = [
        [observed(i, Histogram.from_durations(rng.lognormal(np.log(2e4), 0.5, 1_000))) for i in range(10)]
        for _ in range(500)
    ]

    def median(work: Callable[[], object], repeats: int) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return 1e3 * float(np.median(times))

    mixture = median(lambda: [GaussianMixture(k, random_state=0).fit(logs).bic(logs) for k in range(1, 7)], 5)
    rows: list[list[object]] = [["scikit-learn's Gaussian mixture, k 1 to 6, BIC, 10,000 calls", mixture, 1.0]]
    for name, work in (
        ("borders of two classes, 10,000 calls", lambda: borders(counts, settings=S)),
        (
            "the same, 10 million calls",
            lambda: borders(Histogram.from_pairs(counts.buckets, 1_000 * counts.counts), settings=S),
        ),
        ("borders of one class, 10,000 calls", lambda: borders(one, settings=S)),
        ("500 functions of two classes, mined anew from 10 observations", lambda: [chain(p, settings=S) for p in past]),
        ("500 functions of one class, mined anew from 10 observations", lambda: [chain(p, settings=S) for p in single]),
    ):
        took = median(work, 3 if "anew" in name else cases)
        rows.append([name, took, mixture * (500 if "anew" in name else 1) / took])
    table("Time, median", ["what", "ms", "times faster"], rows)


COMMANDS: dict[str, tuple[Callable[[int, Sequence[str]], None], int]] = {
    "false": (false, 2_000),
    "recorded": (recorded, 500),
    "true": (true, 200),
    "power": (power, 100),
    "changes": (changes, 60),
    "levels": (levels, 400),
    "watching": (watching, 5),
    "paths": (paths, 10),
    "atoms": (atoms, 20),
    "reached": (reached, 100),
    "blocked": (waiting, 500),
    "again": (again, 10),
    "chance": (chance, 5),
    "lot": (lot, 5),
    "edge": (edge, 10),
    "speed": (speed, 200),
}


def main(arguments: Sequence[str]) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--cases", type=int, default=0, help="draws a cell (default: as in docs/measured/mining.md)")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="of 'false': these only")
    parser.add_argument("--seen", action="append", choices=sorted(DIRT), help="of 'false': seen in these ways only")
    chosen = parser.parse_args(arguments)
    run, cases = COMMANDS[chosen.command]
    if run is false:
        false(chosen.cases or cases, chosen.family or tuple(FAMILIES), chosen.seen or tuple(DIRT))
    else:
        run(chosen.cases or cases, ())


if __name__ == "__main__":
    main(sys.argv[1:])
