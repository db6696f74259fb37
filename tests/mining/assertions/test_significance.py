"""An explanation is stated only if edges decide: not by lot, not for how paths vary, not for a part of the calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from specmine.mining.assertions.explain import explain
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.behaviours.path_variation import UsualVariation
from specmine.mining.settings import MiningSettings
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

S = MiningSettings()
NOISE = (0.0, 0.001, 0.01, 0.05)


def layered(rng: np.random.Generator, count: int, width: int = 4) -> list[CallPath]:
    """Draw different paths through five layers of so many functions."""
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < count:
        drawn.add(tuple(rng.integers(width, size=5).tolist()))
    return [CallPath(tuple(Frame(name, "app") for name in ("main", *names(row), "z"))) for row in sorted(drawn)]


def names(row: tuple[int, ...]) -> list[str]:
    """Return the names of the functions of a path."""
    return [f"{layer}{number}" for layer, number in zip("abcde", row, strict=True)]


def mined(
    rng: np.random.Generator, paths: list[CallPath], slow: NDArray[np.float64], calls: int, **more: UsualVariation
) -> Explanation:
    """Draw ten windows of so many calls a path and explain."""
    windows = []
    for index in range(10):
        parts = []
        for path, share in zip(paths, np.clip(slow, 0, 1).tolist(), strict=True):
            above = int(rng.binomial(calls // 10, share))
            parts.append(
                PathHistogram(path=path, histogram=Histogram.from_pairs([300, 400], [calls // 10 - above, above]))
            )
        histogram = Histogram.sum(part.histogram for part in parts)
        windows.append(
            Observation(
                function="z", lifetime="l", kind=Kind.PATH, start_ns=index * 10, end_ns=index * 10 + 10,
                histogram=histogram, calls=histogram.total, watched_ns=10, paths=tuple(parts),
            )
        )  # fmt: skip
    return explain(windows, [350], program={"app"}, settings=S, **more)


def pure(
    rng: np.random.Generator,
    groups: int,
    each: int,
    noise: float,
    calls: int,
    shares: NDArray[np.float64] | None = None,
) -> Explanation:
    """Explain groups of paths that each have a class of their own, but for a share of the calls, or these shares."""
    if shares is None:
        shares = (1 - noise) * np.eye(groups) + noise * (1 - np.eye(groups)) / max(groups - 1, 1)
    paths = [
        CallPath(tuple(Frame(name, "app") for name in ("main", f"a{number}", f"b{group}", "z")))
        for group in range(groups)
        for number in range(each)
    ]
    starts = [300 + 100 * number for number in range(shares.shape[1])]
    windows = []
    for index in range(10):
        parts = tuple(
            PathHistogram(
                path=path,
                histogram=Histogram.from_pairs(starts, rng.multinomial(calls // 10, shares[place // each]).tolist()),
            )
            for place, path in enumerate(paths)
        )
        histogram = Histogram.sum(part.histogram for part in parts)
        windows.append(
            Observation(
                function="z", lifetime="l", kind=Kind.PATH, start_ns=index * 10, end_ns=index * 10 + 10,
                histogram=histogram, calls=histogram.total, watched_ns=10, paths=parts,
            )
        )  # fmt: skip
    return explain(windows, [start - 50 for start in starts[1:]], program={"app"}, settings=S)


def has(paths: list[CallPath], caller: str, callee: str) -> NDArray[np.bool_]:
    """Return which paths have an edge."""
    return np.array([(caller, callee) in {(a.name, b.name) for a, b in path.edges()} for path in paths])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [30, 60])
def test_paths_whose_kind_is_drawn_by_lot_are_not_explained(seed: int, count: int) -> None:
    """Edges enough are found that tell the kinds apart, but no shorter than a list of the paths."""
    rng = np.random.default_rng([seed, count])
    got = mined(rng, layered(rng, count), np.where(rng.random(count) < 0.5, 0.1, 0.8), 300)
    assert [behaviour.expression for behaviour in got.behaviours] == ["true"]
    assert got.why in ("by-lot", "path-variation")


@pytest.mark.parametrize("seed", range(3))
def test_paths_with_effects_of_their_own_make_no_groups(seed: int) -> None:
    """Five points between paths, each known to half a point: nothing that an edge decides."""
    rng = np.random.default_rng([7, seed])
    got = mined(rng, layered(rng, 40), rng.normal(0.4, 0.05, 40), 10_000)
    assert (len(got.behaviours), got.why) == (1, "path-variation")


@pytest.mark.parametrize("seed", range(3))
def test_one_edge_decides_whatever_paths_have_of_their_own(seed: int) -> None:
    """The planted edge is stated, alone, or nothing."""
    rng = np.random.default_rng([8, seed])
    paths = layered(rng, 40, width=3)
    got = mined(rng, paths, np.where(has(paths, "c1", "d1"), 0.7, 0.2) + rng.normal(0, 0.05, 40), 2_000)
    assert {behaviour.expression for behaviour in got.behaviours} == {"c1->d1", "not c1->d1"}


def test_paths_that_lie_apart_without_effects_are_explained() -> None:
    """Two paths of thousands of calls, far apart: few paths are enough where they differ so much."""
    rng = np.random.default_rng(9)
    paths = layered(rng, 2)
    assert len(mined(rng, paths, np.array([0.1, 0.9]), 5_000).behaviours) == 2
    assert mined(rng, paths, np.array([0.40, 0.45]), 50_000).why == "path-variation"


def test_what_other_functions_show_decides_for_few_paths() -> None:
    """Where paths usually vary by 30 points, two that differ by 50 are nothing special."""
    rng = np.random.default_rng(10)
    paths = layered(rng, 2)
    got = mined(rng, paths, np.array([0.2, 0.7]), 5_000, usual=UsualVariation(deviation=0.3))
    assert got.why == "path-variation"


def test_calls_over_incomplete_paths_are_fitted_by_nothing() -> None:
    """A third of the calls whose path is not known: the edges explain only the rest."""
    rng = np.random.default_rng(11)
    paths = [CallPath(tuple(Frame(name, "app") for name in ("main", a, b, "z"))) for a in "stuv" for b in "pqr"]
    slow = np.where(has(paths, "p", "z"), 0.8, 0.1)
    assert len(mined(rng, paths, slow, 1_000).behaviours) == 2
    broken = [CallPath(path.frames, complete=i % 3 != 2) for i, path in enumerate(paths)]
    got = mined(rng, broken, slow, 1_000)
    assert (len(got.behaviours), got.why) == (1, "poor-fit")
    assert {path.behaviour for path in got.paths if not path.path.complete} == {None}


@pytest.mark.parametrize("seed", range(2))
def test_no_behaviour_is_empty_and_nearly_all_calls_have_one(seed: int) -> None:
    """Whatever is planted: three behaviours over forty paths."""
    rng = np.random.default_rng([12, seed])
    paths = layered(rng, 40)
    slow = np.where(has(paths, "a1", "b1"), 0.9, np.where(has(paths, "c2", "d2"), 0.5, 0.1))
    got = mined(rng, paths, slow, 500)
    assert len(got.behaviours) == 3
    assert all(behaviour.paths and behaviour.calls for behaviour in got.behaviours)
    assert sum(path.calls for path in got.paths if path.behaviour is not None) >= 0.9 * sum(got.class_calls)


@given(
    groups=st.integers(2, 5),
    each=st.integers(1, 3),
    calls=st.sampled_from([300, 1_000, 10_000]),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=10, deadline=None)
def test_less_noise_never_gives_a_weaker_answer(groups: int, each: int, calls: int, seed: int) -> None:
    """Groups of a class each are stated without a misplaced call too, if they are with some."""
    found = [len(pure(np.random.default_rng(seed), groups, each, noise, calls).behaviours) for noise in NOISE]
    assert found == [groups] * len(NOISE)


def test_three_paths_that_share_hardly_a_class_are_explained() -> None:
    """Shares as a live program had them: nearly all calls of the first path in one class, of the others in two."""
    shares = np.array([[0.999, 0.0005, 0.0005, 0, 0], [0, 0.82, 0.17, 0.005, 0.005], [0, 0, 0, 0.78, 0.22]])
    for calls in (1_000, 5_000):
        got = pure(np.random.default_rng(13), 3, 1, 0, calls, shares)
        assert (len(got.behaviours), got.why) == (3, "")
