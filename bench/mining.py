"""The tables of docs/mining.md: how the defaults were chosen, false borders, power, planted call paths, speed.

``python bench/mining.py defaults|false|power|changes|paths|speed [--cases N]``; every draw is seeded.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from specmine.mining.borders import borders
from specmine.mining.explain import explain
from specmine.mining.observation import (
    BUCKETS,
    CallPath,
    Counts,
    Frame,
    Kind,
    Observation,
    PathHistogram,
    histogram_of,
)
from specmine.mining.settings import MiningSettings
from specmine.mining.stability import chain, stable_borders

S = MiningSettings()
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

SHAPES: dict[str, Draw] = {
    "normal 10 %": lambda rng, n: rng.normal(2e4, 2e3, n),
    "lognormal 0.5": lambda rng, n: rng.lognormal(np.log(2e4), 0.5, n),
    "exponential": lambda rng, n: rng.exponential(2e4, n),
    "gamma 0.7": lambda rng, n: rng.gamma(0.7, 2e4, n),
    "weibull 0.6": lambda rng, n: 2e4 * rng.weibull(0.6, n),
    "pareto 1.5": lambda rng, n: 1e4 * (1 + rng.pareto(1.5, n)),
    "uniform": lambda rng, n: rng.uniform(1e4, 3e4, n),
}


def rounded(values: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Round to multiples of the step."""
    return np.asarray(np.round(values / step) * step)


DIRT: dict[str, Callable[[np.random.Generator, NDArray[np.float64]], NDArray[np.float64]]] = {
    "clean": lambda rng, x: x,
    "0.5 % preempted": lambda rng, x: x + (rng.random(x.size) < 0.005) * rng.uniform(1e6, 4e6, x.size),
    "clock 40 ns": lambda rng, x: rounded(x, 40),
    "clock 1 us": lambda rng, x: rounded(x, 1_000),
    "30 % rounded to 1 us": lambda rng, x: np.where(rng.random(x.size) < 0.3, rounded(x, 1_000), x),
    "10 % rounded to 5 us": lambda rng, x: np.where(rng.random(x.size) < 0.1, rounded(x, 5_000), x),
}


def observed(index: int, counts: Counts, paths: tuple[PathHistogram, ...] = ()) -> Observation:
    """Return an observation of ten seconds."""
    return Observation(
        function="f",
        lifetime="l",
        kind=Kind.PATH if paths else Kind.TIME,
        start_ns=index * 10**10,
        end_ns=(index + 1) * 10**10,
        counts=counts,
        calls=int(counts.sum()),
        watched_ns=10**10,
        paths=paths,
    )


def history(rng: np.random.Generator, draw: Draw, calls: int, count: int = 10) -> list[Observation]:
    """Draw observations of so many calls each."""
    return [observed(i, histogram_of(np.maximum(draw(rng, calls), 0))) for i in range(count)]


def two_classes(weight: float, separation: float) -> Draw:
    """Return two normal classes of equal width, the upper with this weight, so many sd apart."""
    return lambda rng, n: rng.normal(2e4, 1e3, n) + (rng.random(n) < weight) * separation * 1e3


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, row by row."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(f'{c:.3g}' if isinstance(c, float) else str(c) for c in row)} |", flush=True)


def found(past: list[Observation], settings: MiningSettings, at: float | None = None) -> bool:
    """Return whether a stable border is found (near a CDF value)."""
    own = [borders(o.counts, settings=settings) for o in past]
    stable = stable_borders(past, settings=settings, found=own)
    return any(at is None or abs(b.cdf - at) < settings.match_threshold for b in stable)


def defaults(cases: int) -> None:
    """Print false stable borders beside power for settings around the defaults."""
    changes: list[dict[str, Any]] = [
        {},
        *({"stable_z": z} for z in (2.5, 2.75, 3.25, 3.5)),
        *({"candidate_z": z} for z in (0.5, 1.5, 2.0)),
        *({"stable_share": s} for s in (0.5, 0.6, 0.8, 0.9)),
        *({"minimum_depth": d} for d in (0.05, 0.25)),
        *({"window_shares": w} for w in ((0.5,), (1.0,), (2.0,), (0.25, 0.5, 1.0, 2.0))),
        *({"match_threshold": t} for t in (0.025, 0.1)),
    ]

    def row(change: dict[str, Any]) -> list[object]:
        settings = replace(S, **change)
        rng = np.random.default_rng(1)
        false = [
            found(history(rng, SHAPES[shape], calls), settings)
            for calls in (200, 1_000)
            for shape in ("lognormal 0.5", "exponential", "uniform", "weibull 0.6")
            for _ in range(cases)
        ]
        power = [
            np.mean([found(history(rng, two_classes(w, d), 1_000), settings, 1 - w) for _ in range(cases)])
            for w, d in ((0.1, 4.0), (0.1, 4.5), (0.2, 4.0), (0.3, 3.5))
        ]
        name = ", ".join(f"{k} {v}" for k, v in change.items()) or "**defaults**"
        return [name, float(np.mean(false)), *map(float, power)]

    head = ["setting", "false", "10 %, 4 sd", "10 %, 4.5 sd", "20 %, 4 sd", "30 %, 3.5 sd"]
    table("False stable borders and power", head, map(row, changes))


def false(cases: int) -> None:
    """Print the share of histories of a single class in which a stable border is found."""
    rows = []
    for shape, dirt in itertools.product(SHAPES, DIRT):
        rng = np.random.default_rng(2)

        def draw(own: np.random.Generator, n: int, shape: str = shape, dirt: str = dirt) -> NDArray[np.float64]:
            return DIRT[dirt](own, SHAPES[shape](own, n))

        rates = [float(np.mean([found(history(rng, draw, n), S) for _ in range(cases)])) for n in (200, 1_000, 10_000)]
        rows.append([shape, dirt, *rates])
    table("False stable borders", ["shape", "as seen", "200 calls", "1,000", "10,000"], rows)


def power(cases: int) -> None:
    """Print how often the border of two classes is found stable, and in a single observation."""
    rows = []
    for weight, apart in itertools.product((0.06, 0.1, 0.2, 0.5), (3.0, 3.5, 4.0, 4.5, 5.0, 6.0)):
        rng = np.random.default_rng(3)
        past = [history(rng, two_classes(weight, apart), 1_000) for _ in range(cases)]
        single = [
            any(abs(b.cdf - 1 + weight) < S.match_threshold for b in borders(p[0].counts, settings=S)) for p in past
        ]
        rows.append([weight, apart, float(np.mean(single)), float(np.mean([found(p, S, 1 - weight) for p in past]))])
    table("Two classes, 1,000 calls an observation", ["weight", "sd apart", "in one", "stable"], rows)


def changes(cases: int) -> None:
    """Print how long chains last while nothing changes, and how soon another mix of classes ends them."""
    rows = []
    for spread in (None, 200.0, 50.0):
        rng = np.random.default_rng(4)

        def one(index: int, share: float, spread: float | None = spread, rng: np.random.Generator = rng) -> Observation:
            own = float(rng.beta(share * spread, (1 - share) * spread)) if spread else share
            slow = rng.random(1_000) < own
            return observed(index, histogram_of(rng.lognormal(np.log(2e4), 0.2, 1_000) * np.where(slow, 8.0, 1.0)))

        kept, seen = [], {0.05: [], 0.1: [], 0.2: []}  # type: ignore[var-annotated]
        for _ in range(cases):
            past = [one(i, 0.3) for i in range(20)]
            kept.append(chain(past, settings=S).observations == 20)
            for change, hits in seen.items():
                got = chain([*past[:15], *(one(15 + i, 0.3 + change) for i in range(5))], settings=S)
                hits.append(got.observations <= 5)
        rows.append([spread or "none", float(np.mean(kept)), *(float(np.mean(hits)) for hits in seen.values())])
    head = ["beta size of the shares", "20 of 20 kept", "+0.05 seen after 5", "+0.10", "+0.20"]
    table("Chains under constant and changed shares", head, rows)


def planted(rng: np.random.Generator, paths: int, groups: int) -> tuple[dict[CallPath, int], list[Observation]]:
    """Plant behaviours by the presence of edges, over paths of skewed weight; 10 windows of 1,000 calls."""
    width = max(3, int(paths**0.3) + 1)
    names: set[tuple[str, ...]] = set()
    while len(names) < paths:
        names.add(("main", *(f"f{i}_{rng.integers(width)}" for i in range(8)), "z"))
    own = [CallPath(tuple(Frame(name, "app") for name in path)) for path in sorted(names)]
    weight = rng.pareto(1.2, paths) + 0.1
    weight /= weight.sum()
    edges = sorted({e for p in own for e in p.edges()})
    present = np.array([[e in p.edges() for e in edges] for p in own])
    # edges on 20 to 80 % of the calls: behaviours that matter
    common = np.flatnonzero((weight @ present > 0.2) & (weight @ present < 0.8))
    labels = np.zeros(paths, dtype=np.int64)
    for _ in range(100):
        picked = rng.permutation(common)[: groups - 1]
        labels = np.array([next((i + 1 for i, e in enumerate(picked) if row[e]), 0) for row in present])
        if len(set(labels.tolist())) == groups:
            break
    upper = np.linspace(0.05, 0.9, groups) if groups > 1 else np.array([0.4])
    windows = []
    for w in range(10):
        seen = []
        for path, label, share in zip(own, labels, weight, strict=True):
            n = int(rng.poisson(1_000 * share))
            counts = np.zeros(BUCKETS, dtype=np.uint64)
            counts[400] = rng.binomial(n, rng.beta(upper[label] * 200, (1 - upper[label]) * 200))
            counts[300] = n - int(counts[400])
            if n:
                seen.append(PathHistogram(path=path, counts=counts))
        windows.append(observed(w, np.sum([p.counts for p in seen], axis=0, dtype=np.uint64), tuple(seen)))
    return dict(zip(own, labels.tolist(), strict=True)), windows


def paths(cases: int) -> None:
    """Print how well planted behaviours are found again."""
    rows = []
    for count, groups in itertools.product((3, 10, 50, 300, 2_000), (1, 2, 3, 4)):
        if groups > count:
            continue
        rands, right, atoms, seconds = [], [], [], 0.0
        for seed in range(max(3, cases // 10)):
            truth, windows = planted(np.random.default_rng(seed), count, groups)
            if len(set(truth.values())) < groups:
                continue
            start = time.perf_counter()
            got = explain(windows, [350], program={"app"}, settings=S)
            seconds += time.perf_counter() - start
            seen = [(truth[p.path], -1 if p.behaviour is None else p.behaviour, p.calls) for p in got.paths]
            calls = np.array([c for _, _, c in seen])
            rands.append(
                adjusted_rand_score(np.repeat([a for a, *_ in seen], calls), np.repeat([b for _, b, _ in seen], calls))
            )
            right.append(len(got.behaviours) == groups)
            atoms.append(got.atoms)
        if rands:
            means = [float(np.mean(v)) for v in (rands, right, atoms)]
            rows.append([count, groups, means[0], float(min(rands)), means[1], means[2], seconds / len(rands)])
    head = ["paths", "behaviours", "Rand index, mean", "least", "right number", "edges", "seconds"]
    table("Planted behaviours, 10,000 calls, Rand index weighted by calls", head, rows)


def speed(cases: int) -> None:
    """Print times of one observation, of a history, and of a Gaussian mixture on the same data."""
    rng = np.random.default_rng(5)
    values = two_classes(0.3, 6.0)(rng, 10_000)
    past = history(rng, two_classes(0.3, 6.0), 1_000)
    logs = np.log(values)[:, None]

    def best(work: Callable[[], object], repeats: int) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return 1e3 * float(np.median(times))

    counts = histogram_of(values)
    rows: list[list[object]] = [
        ["borders, 10,000 calls", best(lambda: borders(counts, settings=S), cases)],
        ["borders, 10 million calls", best(lambda: borders(counts * np.uint64(1_000), settings=S), cases)],
        ["chain over 10 observations", best(lambda: chain(past, settings=S), cases)],
        [
            "Gaussian mixture, k 1 to 6, 10,000 calls",
            best(lambda: [GaussianMixture(k, random_state=0).fit(logs).bic(logs) for k in range(1, 7)], 3),
        ],
    ]
    table("Time, median", ["what", "ms"], rows)


COMMANDS: dict[str, tuple[Callable[[int], None], int]] = {
    "defaults": (defaults, 100),
    "false": (false, 200),
    "power": (power, 100),
    "changes": (changes, 60),
    "paths": (paths, 60),
    "speed": (speed, 200),
}


def main(arguments: Sequence[str]) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--cases", type=int, default=0, help="histories a cell (default: as in docs/mining.md)")
    chosen = parser.parse_args(arguments)
    run, cases = COMMANDS[chosen.command]
    run(chosen.cases or cases)


if __name__ == "__main__":
    main(sys.argv[1:])
