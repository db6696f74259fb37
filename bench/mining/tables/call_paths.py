"""Planted models of call paths: a few call edges distinguish the behaviours, over many paths of skewed weight."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from bench.mining.tables.distributions import observed
from bench.mining.tables.oracle import likelihood, planted_is_likeliest
from specmine.mining.assertions.assertion import state_groups
from specmine.mining.assertions.edge_search import Edge
from specmine.mining.assertions.explain import explain
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import evaluate, named_edges, shared_names
from specmine.mining.model_merge.consistency import merge
from specmine.mining.settings import MiningSettings
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation, PathHistogram

_LAYERS = 8
_BORDER = 350
COUNTS, GROUPS = (3, 10, 50, 300, 2_000), (1, 2, 3, 4, 5, 6)
_LEAST = 0.03  # every behaviour has at least this share of the calls
S = MiningSettings()
HEAD = [
    "paths", "behaviours", "models", "Rand index, mean", "least", "oracle, least", "right number", "expressions equal",
    "planted are likeliest", "equal on decided paths", "calls on these", "calls on which they agree", "edges, most",
    "proved minimal", "CPU seconds",
]  # fmt: skip
ATOMS_HEAD = ["behaviours", "models", "edges planted", "median", "95 %", "most", "above 8", "proved minimal"]
CHANCE_HEAD = ["groups", "models", "given up", "CPU seconds, most"]
AGAIN_HEAD = ["paths", "behaviours", "models", "same expressions", "calls grouped alike"]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What is true, and what is seen of it."""

    truth: dict[CallPath, int]
    edges: tuple[Edge, ...]
    """A path has the behaviour of the first of these that it has, from 1; 0 without any."""
    windows: list[Observation]


@dataclass(frozen=True, kw_only=True)
class Score:
    """How much of a planted model was found again."""

    rand: float
    """Adjusted Rand index of the grouping, weighted by calls; unassigned paths are a group of their own."""
    oracle: float
    """The same for each path put where its own calls are most likely, the number of behaviours and their shares being
    known: what calls alone can show, without edges.
    """
    groups: bool
    """The right number of behaviours."""
    equal: bool
    """Each expression is true for just the observed paths of one planted behaviour, whatever their calls."""
    likeliest: bool
    """What is planted is likelier than all that differs in one edge, the shares being known: else who could find it?"""
    decided: bool
    """As ``equal``, but for paths of which it is at least 99 % certain."""
    certain: float
    """Share of the calls over these."""
    agreeing: float
    """Share of the calls over paths on which the expressions agree with the planted ones."""
    atoms: int
    optimal: bool
    seconds: float


def planted(rng: np.random.Generator, count: int, groups: int, calls: int = 10_000) -> Planted | None:
    """Plant behaviours by the presence of edges; 10 windows; None if these paths allow no such model."""
    width = max(3, int(count**0.3) + 1)
    popularity = 1 / np.arange(1, width + 1) ** 1.2
    popularity /= popularity.sum()
    names: dict[tuple[int, ...], None] = {}
    while len(names) < count:
        for row in rng.choice(width, size=(count, _LAYERS), p=popularity).tolist():
            names.setdefault(tuple(row))
    own = [
        CallPath(tuple(Frame(name, "app") for name in ("main", *(f"f{i}_{n}" for i, n in enumerate(row)), "z")))
        for row in itertools.islice(names, count)
    ]
    weight = rng.pareto(1.2, count) + 0.1
    weight /= weight.sum()
    edges = sorted({edge for path in own for edge in path.edges()})
    present = np.array([[edge in path.edges() for edge in edges] for path in own])
    common = np.flatnonzero((weight @ present > 0.05) & (weight @ present < 0.8))
    for _ in range(300):
        picked = rng.permutation(common)[: groups - 1]
        if len(picked) == 0:
            return Planted(
                truth=dict.fromkeys(own, 0),
                edges=(),
                windows=_drawn(rng, own, np.zeros(count, np.int64), weight, calls),
            )
        first = np.where(present[:, picked].any(axis=1), present[:, picked].argmax(axis=1) + 1, 0)
        if len(picked) == groups - 1 and np.bincount(first, weights=weight, minlength=groups).min() >= _LEAST:
            return Planted(
                truth=dict(zip(own, first.tolist(), strict=True)),
                edges=tuple(edges[i] for i in picked),
                windows=_drawn(rng, own, first, weight, calls),
            )
    return None


def _drawn(
    rng: np.random.Generator, paths: list[CallPath], labels: NDArray[np.int64], weight: NDArray[np.float64], calls: int
) -> list[Observation]:
    """Draw ten windows of two classes; shares vary from window to window (beta of size 200, sd up to 0.035)."""
    upper = _upper(int(labels.max()) + 1)
    windows = []
    for index in range(10):
        seen = []
        for path, label, share in zip(paths, labels, weight, strict=True):
            number = int(rng.poisson(calls / 10 * share))
            slow = rng.binomial(number, rng.beta(upper[label] * 200, (1 - upper[label]) * 200))
            histogram = Histogram.from_pairs([_BORDER - 50, _BORDER + 50], [number - slow, slow])
            if number:
                seen.append(PathHistogram(path=path, histogram=histogram))
        windows.append(observed(index, Histogram.sum(p.histogram for p in seen), tuple(seen)))
    return windows


def _upper(groups: int) -> NDArray[np.float64]:
    """Return the share of the upper class of each behaviour."""
    return np.linspace(0.05, 0.95, groups) if groups > 1 else np.array([0.4])


def scored(model: Planted) -> Score:
    """Mine a planted model and compare."""
    start = time.process_time()
    got = explain(model.windows, [_BORDER], program={"app"}, settings=S)
    seconds = time.process_time() - start
    calls = np.array([path.calls for path in got.paths])
    truth = np.array([model.truth[path.path] for path in got.paths])
    mine = np.array([-1 if path.behaviour is None else path.behaviour for path in got.paths])
    stated = _stated(got)
    upper = _upper(max(model.truth.values()) + 1)
    likelihoods = likelihood(np.array([path.class_calls for path in got.paths]), upper)
    likely = likelihoods.argmax(axis=1)
    sure = np.array([path.certainty >= 1 - S.level for path in got.paths])
    agreeing = sum(
        max(int(calls[(truth == group) & (stated == other)].sum()) for other in range(len(got.behaviours)))
        for group in np.unique(truth)
    )
    return Score(
        rand=float(adjusted_rand_score(np.repeat(truth, calls), np.repeat(mine, calls))),
        oracle=float(adjusted_rand_score(np.repeat(truth, calls), np.repeat(likely, calls))),
        groups=len(got.behaviours) == len(set(model.truth.values())),
        equal=_same(truth, stated),
        likeliest=planted_is_likeliest([path.path for path in got.paths], model.edges, likelihoods),
        decided=_same(truth[sure], stated[sure]),
        certain=float(calls[sure].sum() / calls.sum()),
        agreeing=agreeing / int(calls.sum()),
        atoms=got.atoms,
        optimal=got.optimal,
        seconds=seconds,
    )


def _same(truth: NDArray[np.int64], stated: NDArray[np.int64]) -> bool:
    """Return whether two groupings are the same but for the numbers, and each path is in one."""
    pairs = set(zip(truth.tolist(), stated.tolist(), strict=True))
    return bool((stated >= 0).all()) and len(pairs) == len(set(truth.tolist())) == len(set(stated.tolist()))


def _stated(got: Explanation) -> NDArray[np.int64]:
    """Return the behaviour whose expression each path fulfils, -1 if not just one."""
    shared = shared_names(path.path for path in got.paths)
    stated = []
    for path in got.paths:
        fits = [i for i, each in enumerate(got.behaviours) if evaluate(each.formula, named_edges(path.path, shared))]
        stated.append(fits[0] if len(fits) == 1 else -1)
    return np.array(stated)


def table(cases: int) -> Iterator[list[object]]:
    """Yield the rows under ``HEAD``."""
    for count, groups in itertools.product(COUNTS, GROUPS):
        if groups > count:
            continue
        models = (planted(np.random.default_rng([count, groups, seed]), count, groups) for seed in range(cases))
        scores = [scored(model) for model in models if model is not None]
        if scores:
            yield [
                count,
                groups,
                len(scores),
                float(np.mean([s.rand for s in scores])),
                min(s.rand for s in scores),
                min(s.oracle for s in scores),
                float(np.mean([s.groups for s in scores])),
                float(np.mean([s.equal for s in scores])),
                float(np.mean([s.likeliest for s in scores])),
                float(np.mean([s.decided for s in scores])),
                float(np.mean([s.certain for s in scores])),
                float(np.mean([s.agreeing for s in scores])),
                max(s.atoms for s in scores),
                float(np.mean([s.optimal for s in scores])),
                float(np.mean([s.seconds for s in scores])),
            ]


def atoms(cases: int) -> Iterator[list[object]]:
    """Yield for each number of behaviours how many edges the expressions take."""
    for groups in GROUPS:
        scores = []
        for count, seed in itertools.product((10, 50, 300), range(cases)):
            model = planted(np.random.default_rng([count, groups, seed]), count, groups) if groups <= count else None
            if model is not None:
                scores.append(scored(model))
        used = [s.atoms for s in scores]
        yield [
            groups,
            len(scores),
            groups - 1,
            float(np.median(used)),
            float(np.quantile(used, 0.95)),
            max(used),
            float(np.mean([n > 8 for n in used])),
            float(np.mean([s.optimal for s in scores])),
        ]


def chance(cases: int) -> Iterator[list[object]]:
    """Yield what becomes of groups that follow no edges, over 2,000 paths."""
    for groups in (2, 4, 6):
        took, given_up = [], 0
        for seed in range(cases):
            model = planted(np.random.default_rng([2_000, 2, seed]), 2_000, 2)
            if model is None:
                continue
            labels = np.random.default_rng(seed).integers(0, groups, len(model.truth)).tolist()
            start = time.process_time()
            given_up += state_groups(list(model.truth), labels, limit=S.search_limit) is None
            took.append(time.process_time() - start)
        yield [groups, len(took), given_up, max(took)]


def again(cases: int) -> Iterator[list[object]]:
    """Yield how alike two minings of one model from different calls are."""
    for count, groups in itertools.product((10, 50, 300, 2_000), (2, 3, 4)):
        same, alike = [], []
        for seed in range(cases):
            model = planted(np.random.default_rng([count, groups, seed]), count, groups)
            if model is None:
                continue
            weight = np.zeros(len(model.truth))
            index = {path: i for i, path in enumerate(model.truth)}
            for window in model.windows:
                for one in window.paths:
                    weight[index[one.path]] += float(one.histogram.total)
            labels = np.array(list(model.truth.values()))
            rng = np.random.default_rng([9, seed])
            other = _drawn(rng, list(model.truth), labels, weight / weight.sum(), int(weight.sum()))
            first, second = (explain(w, [_BORDER], program={"app"}, settings=S) for w in (model.windows, other))
            same.append({b.expression for b in first.behaviours} == {b.expression for b in second.behaviours})
            left, right = (
                {p.path: (p.behaviour, p.calls) for p in got.paths if p.behaviour is not None}
                for got in (first, second)
            )
            alike.append(merge(left, right)[1].calls)
        if same:
            yield [count, groups, len(same), float(np.mean(same)), float(np.mean(alike))]
