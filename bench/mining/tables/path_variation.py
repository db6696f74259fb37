"""Functions whose call paths vary on their own: by lot alone, or around what one call edge decides.

Each path has class shares of its own, and no call edge, or only one, has anything to do with them. So an explanation
by edges is false, or must be that one edge.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from bench.mining.tables.distributions import observed
from specmine.mining.assertions.edge_search import Edge
from specmine.mining.assertions.explain import explain
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import evaluate, named_edges, shared_names
from specmine.mining.settings import MiningSettings
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation, PathHistogram

_BORDER = 350
_WINDOWS = 10
_SIMILAR = 0.01  # share of the calls over paths on which an edge that passes for the planted one may differ from it
_WINDOW_SIZE = 200.0  # beta size of the shares from window to window, sd up to 0.035
S = MiningSettings()
COUNTS = (30, 100, 300, 1_000)
CALLS = (10_000, 100_000)
FEW = (3, 5, 10)
LOT_HEAD = ["paths", "calls", "models", "explained", "at most, 95 %", "for their variation", "as a list", "other",
            "CPU seconds"]  # fmt: skip
EDGE_HEAD = ["paths", "own effects, sd", "slow without and with the edge", "models", "the edge alone", "unexplained",
             "one too many", "more", "another edge", "CPU seconds"]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Which frames paths have in common."""

    name: str
    layers: int
    """Frames between ``main`` and the function."""
    width: int
    """Functions of a layer; 0: as many as make so many paths possible with room."""


STRUCTURES = (
    Structure(name="eight layers, few functions", layers=8, width=0),
    Structure(name="three layers, wide", layers=3, width=12),
    Structure(name="a caller of its own for each path", layers=1, width=-1),
)


def call_paths(rng: np.random.Generator, count: int, structure: Structure) -> list[CallPath]:
    """Draw different paths; functions of a layer are of unequal popularity."""
    width = structure.width or max(3, int(count**0.3) + 1)
    if width < 0 or width**structure.layers < 2 * count:
        width = max(count if structure.layers == 1 else 0, int((4.0 * count) ** (1 / structure.layers)) + 1)
    if structure.layers == 1:
        rows: list[tuple[int, ...]] = [(i,) for i in range(count)]
    else:
        chance = 1 / np.arange(1, width + 1) ** 1.2
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < count:
            for row in rng.choice(width, size=(count, structure.layers), p=chance / chance.sum()).tolist():
                drawn.setdefault(tuple(row))
        rows = list(itertools.islice(drawn, count))
    return [
        CallPath(tuple(Frame(name, "app") for name in ("main", *(f"f{i}_{n}" for i, n in enumerate(row)), "z")))
        for row in rows
    ]


def weights(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw the shares of the calls that paths have: Pareto, as in ``call_paths``."""
    weight = rng.pareto(1.2, count) + 0.1
    return np.asarray(weight / weight.sum())


def windows(
    rng: np.random.Generator,
    paths: list[CallPath],
    slow: NDArray[np.float64],
    weight: NDArray[np.float64],
    calls: int,
) -> list[Observation]:
    """Draw ten windows of two classes; ``slow`` is the share of the upper class of each path."""
    mean = np.clip(slow, 0.001, 0.999)
    result = []
    for index in range(_WINDOWS):
        numbers = rng.poisson(calls / _WINDOWS * weight)
        above = rng.binomial(numbers, rng.beta(mean * _WINDOW_SIZE, (1 - mean) * _WINDOW_SIZE))
        seen = tuple(
            PathHistogram(
                path=path, histogram=Histogram.from_pairs([_BORDER - 50, _BORDER + 50], [int(n - high), int(high)])
            )
            for path, n, high in zip(paths, numbers, above, strict=True)
            if n
        )
        result.append(observed(index, Histogram.sum(part.histogram for part in seen), seen))
    return result


EFFECTS = (0.0, 0.02, 0.05, 0.1)
SHARES = ((0.05, 0.6), (0.2, 0.8), (0.3, 0.5))
LOTS = ("0.05 or 0.95, one half", "0.2 or 0.7, one half", "0.05 or 0.95, a quarter", "four shares", "any share",
        "0.4, sd 0.05", "0.4, sd 0.1")  # fmt: skip


def by_lot(rng: np.random.Generator, count: int, lot: str) -> NDArray[np.float64]:
    """Draw a share of the upper class for each path."""
    if lot == "any share":
        return rng.random(count)
    if lot.startswith("0.4, sd"):
        return rng.normal(0.4, float(lot.rsplit(" ", 1)[1]), count)
    if lot == "four shares":
        return rng.choice([0.05, 0.35, 0.65, 0.95], count)
    low, high = (0.2, 0.7) if lot.startswith("0.2") else (0.05, 0.95)
    return np.where(rng.random(count) < (0.25 if lot.endswith("quarter") else 0.5), high, low)


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A model in which one edge decides, but for what each path has of its own."""

    windows: list[Observation]
    with_edge: frozenset[CallPath]
    """Paths over the deciding edge."""


def one_edge(
    rng: np.random.Generator, count: int, structure: Structure, low: float, high: float, own: float, calls: int
) -> Decided | None:
    """Plant one edge that 15 to 85 % of the calls take, and paths' own effects of that standard deviation."""
    paths, weight = call_paths(rng, count, structure), weights(rng, count)
    edges: list[Edge] = sorted({edge for path in paths for edge in path.edges()})
    present = np.array([[edge in path.edges() for edge in edges] for path in paths])
    share = weight @ present
    common = np.flatnonzero((share > 0.15) & (share < 0.85))
    if not len(common):
        return None
    has = present[:, rng.choice(common)]
    slow = np.where(has, high, low) + rng.normal(0, own, count)
    return Decided(
        windows=windows(rng, paths, slow, weight, calls),
        with_edge=frozenset(path for path, taken in zip(paths, has, strict=True) if taken),
    )


def mined(observations: list[Observation]) -> tuple[Explanation, float]:
    """Explain, and return the CPU seconds too."""
    start = time.process_time()
    return explain(observations, [_BORDER], program={"app"}, settings=S), time.process_time() - start


def names_the_edge(got: Explanation, model: Decided) -> bool:
    """Return whether the behaviours tell the paths over the planted edge from the others."""
    sides = np.zeros((len(got.behaviours), 2))
    shared = shared_names(each.path for each in got.paths)
    for each in got.paths:
        named = named_edges(each.path, shared)
        for i, behaviour in enumerate(got.behaviours):
            sides[i, int(each.path in model.with_edge)] += each.calls * evaluate(behaviour.formula, named)
    return bool(sides.min(axis=1).sum() <= _SIMILAR * sides.sum())


def lot_table(cases: int) -> Iterator[list[object]]:
    """Yield the rows under ``LOT_HEAD``: how often paths by lot are explained, and why else they are not."""
    for count, calls in itertools.product(COUNTS, CALLS):
        reasons: Counter[str] = Counter()
        seconds = 0.0
        for structure, lot, seed in itertools.product(range(len(STRUCTURES)), range(len(LOTS)), range(cases)):
            rng = np.random.default_rng([count, calls, structure, lot, seed])
            paths, weight = call_paths(rng, count, STRUCTURES[structure]), weights(rng, count)
            got, took = mined(windows(rng, paths, by_lot(rng, count, LOTS[lot]), weight, calls))
            reasons[got.why] += 1
            seconds += took
        models = reasons.total()
        known = reasons["path-variation"], reasons["by-lot"]
        yield [
            count, f"{calls:,}", models, reasons[""], upper_bound(reasons[""], models), *known,
            models - reasons[""] - sum(known), seconds / models,
        ]  # fmt: skip


def edge_table(cases: int, counts: Sequence[int] = (*FEW, *COUNTS[:3])) -> Iterator[list[object]]:
    """Yield the rows under ``EDGE_HEAD``: what is stated where one edge decides and paths vary too."""
    for count, own, (low, high) in itertools.product(counts, EFFECTS, SHARES):
        found: Counter[str] = Counter()
        seconds = 0.0
        for structure, seed in itertools.product(range(2), range(cases)):
            rng = np.random.default_rng([count, round(1_000 * own), round(1_000 * low), structure, seed])
            model = one_edge(rng, count, STRUCTURES[structure], low, high, own, 10_000)
            if model is None:
                continue
            got, took = mined(model.windows)
            seconds += took
            found[_named(got, model)] += 1
        yield [
            count, own, f"{low:.0%}, {high:.0%}", found.total(),
            *(found[each] for each in ("the edge", "none", "one more", "more", "another")),
            seconds / max(found.total(), 1),
        ]  # fmt: skip


def _named(got: Explanation, model: Decided) -> str:
    if len(got.behaviours) == 1:
        return "none"
    if not names_the_edge(got, model):
        return "another"
    return {2: "the edge", 3: "one more"}.get(len(got.behaviours), "more")


def upper_bound(hits: int, cases: int, level: float = 0.95) -> float:
    """Return the upper bound of a probability (Clopper and Pearson, two-sided)."""
    return 1.0 if hits == cases else float(beta.ppf(0.5 + 0.5 * level, hits + 1, cases - hits))
