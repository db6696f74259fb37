"""Explaining: from observations with paths to behaviours, deterministic and plain."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.assertions.behaviour_windows import windows_of_formula
from specmine.mining.assertions.explain import explain
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import evaluate, named_edges, shared_names
from specmine.mining.borders.stability import chain
from specmine.mining.settings import MiningSettings
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from tests.support.insides import inside_of_calls, observation_of

S = MiningSettings()


def path(text: str, *, complete: bool = True) -> CallPath:
    """Return the path of names parted by blanks."""
    return CallPath(tuple(Frame(name, "app") for name in text.split()), complete)


def history(
    rng: np.random.Generator, mix: Mapping[CallPath, tuple[float, float]], *, count: int = 10
) -> list[Observation]:
    """Draw observations: calls per window and share of slow calls (5 times slower) for each path."""
    result = []
    for w in range(count):
        paths = []
        for own, (calls, slow) in mix.items():
            n = int(rng.poisson(calls))
            values = rng.lognormal(np.log(2e4), 0.1, n) * np.where(rng.random(n) < slow, 5.0, 1.0)
            paths.append(PathHistogram(path=own, histogram=Histogram.from_durations(values)))
        histogram = Histogram.sum(p.histogram for p in paths)
        result.append(
            Observation(
                function="z",
                lifetime="l",
                kind=Kind.PATH,
                start_ns=w * 10,
                end_ns=w * 10 + 10,
                histogram=histogram,
                calls=histogram.total,
                watched_ns=10,
                paths=tuple(paths),
            )
        )
    return result


EXAMPLE: dict[CallPath, tuple[float, float]] = {
    path("main a b c z"): (340, 0.0),
    path("main a b z"): (330, 0.4),
    path("main a c z"): (330, 0.4),
}


def explained(observations: list[Observation]) -> Explanation:
    """Explain with the borders that the observations themselves have."""
    found = chain(observations, settings=S)
    assert found.stable
    return explain(observations, [b.edge for b in found.borders], program={"app"}, settings=S)


@pytest.mark.parametrize("seed", range(10))
def test_the_example_of_the_first_paper_ten_times_out_of_ten(seed: int) -> None:
    """z is fast over b->c and mixed elsewhere: two behaviours, the single atom b->c, shares within 0.05."""
    got = explained(history(np.random.default_rng(seed), EXAMPLE))
    assert [b.expression for b in got.behaviours] == ["not b->c", "b->c"]
    assert got.behaviours[0].shares == pytest.approx((0.6, 0.4), abs=0.05)
    assert got.behaviours[1].shares == pytest.approx((1.0, 0.0), abs=0.05)
    assert [b.paths for b in got.behaviours] == [2, 1]
    assert (got.why, got.atoms, got.optimal) == ("", 1, True)


def test_calls_add_up() -> None:
    """Behaviours, paths and classes count the same calls; incomplete paths are shown, not assigned."""
    broken = path("c z", complete=False)
    observations = history(np.random.default_rng(1), EXAMPLE | {broken: (50, 0.3)})
    got = explained(observations)
    assert sum(got.class_calls) == sum(o.timed for o in observations) == sum(p.calls for p in got.paths)
    (incomplete,) = [p for p in got.paths if not p.path.complete]
    assert incomplete.behaviour is None
    assert sum(b.calls for b in got.behaviours) == sum(got.class_calls) - incomplete.calls
    for number, behaviour in enumerate(got.behaviours):
        members = [p for p in got.paths if p.behaviour == number]
        assert behaviour.calls == sum(p.calls for p in members)
        assert behaviour.class_calls == tuple(sum(p.class_calls[c] for p in members) for c in range(2))
        assert sum(behaviour.shares) == pytest.approx(1)
    assert [p.calls for p in got.paths] == sorted((p.calls for p in got.paths), reverse=True)


def test_a_rare_path_goes_where_its_edges_put_it() -> None:
    """Too few calls to tell by themselves, but the formula holds for them."""
    rare = path("main x b c z")
    got = explained(history(np.random.default_rng(2), EXAMPLE | {rare: (0.3, 0.0)}))
    (found,) = [p for p in got.paths if p.path == rare]
    assert 0 < found.calls < 10
    assert found.behaviour is not None
    assert got.behaviours[found.behaviour].expression == "b->c"


def test_paths_that_all_behave_alike_explain_nothing() -> None:
    """One behaviour, true, with the reason."""
    mix = {own: (300, 0.4) for own in EXAMPLE}
    got = explained(history(np.random.default_rng(3), mix))
    assert [(b.expression, b.formula) for b in got.behaviours] == [("true", ((),))]
    assert got.why == "one-group"
    assert {p.behaviour for p in got.paths} == {0}


def test_groups_without_a_telling_edge_are_unexplained() -> None:
    """Recursion makes two paths with the same edges."""
    mix = {path("main a b a b z"): (500, 0.1), path("main a b a b a b z"): (500, 0.6)}
    got = explained(history(np.random.default_rng(4), mix))
    assert got.why == "same-edges"
    assert [b.expression for b in got.behaviours] == ["true"]


def test_without_complete_paths_nothing_can_be_said() -> None:
    """The reason says why."""
    got = explained(history(np.random.default_rng(5), {path("a z", complete=False): (800, 0.4)}))
    assert got.why == "no-complete-path"
    only = explained(history(np.random.default_rng(6), {path("main z"): (800, 0.4)}))
    assert only.why == "one-path"


def test_the_result_is_plain_and_the_same_again() -> None:
    """It survives pickling, and neither the order of paths nor a second run changes it."""
    observations = history(np.random.default_rng(7), EXAMPLE)
    got = explained(observations)
    assert pickle.loads(pickle.dumps(got)) == got
    assert explained(observations) == got
    turned = [
        Observation(
            function=o.function,
            lifetime=o.lifetime,
            kind=o.kind,
            start_ns=o.start_ns,
            end_ns=o.end_ns,
            histogram=o.histogram,
            calls=o.calls,
            watched_ns=o.watched_ns,
            paths=o.paths[::-1],
        )
        for o in observations
    ]
    assert explained(turned) == got


def test_every_assigned_path_fulfils_its_expression_alone() -> None:
    """Twelve paths in three behaviours by two edges."""
    rng = np.random.default_rng(8)
    mix = {}
    for first in "abcd":
        for second, slow in (("p", 0.05), ("q", 0.4), ("r", 0.85)):
            mix[path(f"main {first} {second} z")] = (120, slow)
    got = explained(history(rng, mix))
    assert len(got.behaviours) == 3
    assert got.atoms == 2
    shared = shared_names([p.path for p in got.paths])
    for own in got.paths:
        edges = named_edges(own.path, shared)
        assert [i for i, b in enumerate(got.behaviours) if evaluate(b.formula, edges)] == [own.behaviour]


def many_light(rng: np.random.Generator) -> tuple[dict[CallPath, tuple[float, float]], dict[CallPath, float]]:
    """Return 800 paths of five calls in all each, slow by the presence of two edges."""
    mix: dict[CallPath, tuple[float, float]] = {}
    truth: dict[CallPath, float] = {}
    while len(mix) < 800:
        names = [f"{layer}{rng.integers(3)}" for layer in "abcdefgh"]
        own = path(" ".join(["main", *names, "z"]))
        edges = {(one.name, other.name) for one, other in own.edges()}
        truth[own] = 0.9 if ("b1", "c1") in edges else 0.5 if ("e0", "f2") in edges else 0.1
        mix[own] = (0.5, truth[own])
    return mix, truth


@pytest.mark.parametrize("seed", range(3))
def test_hundreds_of_paths_of_five_calls_are_told_apart_by_their_edges(seed: int) -> None:
    """No path shows its shares; the paths over an edge together do, and the expressions are the planted ones."""
    mix, truth = many_light(np.random.default_rng(seed))
    got = explained(history(np.random.default_rng(seed + 10), mix))
    assert {b.expression for b in got.behaviours} == {
        "b1->c1",
        "e0->f2 and not b1->c1",
        "not e0->f2 and not b1->c1",
    }
    right = {own: {0.9: "b1->c1", 0.5: "e0->f2 and not b1->c1"}.get(truth[own], "") for own in truth}
    wrong = sum(
        p.calls
        for p in got.paths
        if p.behaviour is not None and right[p.path] not in ("", got.behaviours[p.behaviour].expression)
    )
    assert wrong == 0


def test_few_calls_are_assigned_with_their_uncertainty() -> None:
    """A path of some three calls is where its edges put it, less certain than one of thousands."""
    mix = {**EXAMPLE, path("main d b z"): (0.3, 0.4)}
    got = explained(history(np.random.default_rng(5), mix))
    light = next(p for p in got.paths if p.path == path("main d b z"))
    assert light.behaviour == 0
    assert 0.01 < light.certainty < 0.9
    assert min(p.certainty for p in got.paths if p.calls > 1_000) > 0.999


def test_groups_that_refining_joins_again_are_not_split_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a split is proposed that no edge bears out."""
    proposed = 0

    def split(present: NDArray[np.bool_], totals: NDArray[np.float64], *_: object, **__: object) -> NDArray[np.int64]:
        nonlocal proposed
        proposed += 1
        assert proposed < 20
        return np.where(np.arange(len(totals)) % 2 == 1, 2, present[:, 0]).astype(np.int64)

    monkeypatch.setattr("specmine.mining.assertions.grouping.pooled_groups", split)
    mix = {path(f"main {a} {b} z"): (60.0, 0.5 if b == "q" else 0.05) for a in "stuvwxy" for b in "pqr"}
    got = explained(history(np.random.default_rng(6), mix))
    assert {b.expression for b in got.behaviours} == {"q->z", "not q->z"}
    assert proposed > 1


@pytest.mark.parametrize("seed", range(5))
def test_mined_again_from_other_calls_the_expressions_stay(seed: int) -> None:
    """Same program, other draws, other counts."""
    mix = {path(f"main {a} {b} {c} z"): (60.0, 0.5 if b == "q" else 0.05) for a in "uvw" for b in "pqr" for c in "xy"}
    first = explained(history(np.random.default_rng(seed), mix))
    second = explained(history(np.random.default_rng(seed + 100), mix, count=14))
    assert [b.expression for b in first.behaviours] == [b.expression for b in second.behaviours]


def with_callees(
    seed: int, slow_of: Callable[[NDArray[np.bool_]], NDArray[np.float64]], busy: float = 1.0
) -> list[Observation]:
    """Draw windows of calls over one path that reach two callees, and are slow with a probability that may depend.

    In every other window all probabilities but that of ``parse`` are ``busy`` times as great.
    """
    rng = np.random.default_rng(seed)
    windows = []
    for number in range(20):
        more = busy if number % 2 else 1.0
        reached = rng.random((800, 2)) < (0.3 * more, 0.5)
        slow = rng.random(800) < slow_of(reached) * more
        whole = rng.lognormal(np.log(2e4), 0.1, 800) * np.where(slow, 5.0, 1.0)
        callees = {Frame("flush", "app"): 100.0 * reached[:, 0], Frame("parse", "app"): 100.0 * reached[:, 1]}
        inside = inside_of_calls(callees, whole - sum(callees.values()))
        window = observation_of(inside, start_ns=10 * number, kind=Kind.PATH)
        windows.append(replace(window, paths=(PathHistogram(path=path("main z"), histogram=inside.calls),)))
    return windows


@pytest.mark.parametrize(
    ("slow_of", "expected"),
    [
        (lambda r: np.where(r[:, 0], 0.7, 0.1), {"calls flush", "not calls flush"}),
        (
            lambda r: np.where(r[:, 0] & ~r[:, 1], 0.7, 0.1),
            {"calls flush and not calls parse", "not calls flush or calls parse"},
        ),
    ],
)
def test_where_paths_do_not_explain_callees_reached_do(
    slow_of: Callable[[NDArray[np.bool_]], NDArray[np.float64]], expected: set[str]
) -> None:
    """The behaviours are of calls, not of paths: no path has one."""
    got = explained(with_callees(1, slow_of))
    assert ({each.expression for each in got.behaviours}, got.why) == (expected, "")
    assert sum(each.calls for each in got.behaviours) == 16_000
    assert [each.behaviour for each in got.paths] == [None]
    assert pickle.loads(pickle.dumps(got)) == got


def test_callees_that_do_not_matter_explain_nothing() -> None:
    """Classes drawn by lot: in none of twenty functions."""
    for seed in range(20):
        got = explained(with_callees(seed, lambda reached: np.full(len(reached), 0.3)))
        assert (got.why, [each.expression for each in got.behaviours]) == ("one-path", ["true"])


def test_a_callee_that_is_reached_in_slow_times_does_not_explain_them() -> None:
    """While the program is busy calls are slower, and reach the callee more often; but not the slow ones."""
    for seed in range(10):
        windows = with_callees(seed, lambda reached: np.full(len(reached), 0.2), busy=3.0)
        got = explain(windows, [350], program={"app"}, settings=S)
        assert (got.why, [each.expression for each in got.behaviours]) == ("one-path", ["true"])


def with_waits(
    seed: int, blocked_ns: Callable[[np.random.Generator, NDArray[np.float64]], NDArray[np.float64]], *, under: bool
) -> list[Observation]:
    """Draw windows of calls over one path that reach one callee each, and are blocked in it or in themselves."""
    rng = np.random.default_rng(seed)
    lock, windows = Frame("lock", "libc"), []
    for number in range(20):
        own = rng.lognormal(np.log(2e4), 0.1, 800) * np.where(rng.random(800) < 0.2, 5.0, 1.0)
        stood = blocked_ns(rng, own)
        if under:
            inside = inside_of_calls({lock: 1e3 + stood}, own, blocked={lock: stood})
        else:
            inside = inside_of_calls({lock: np.full(800, 1e3)}, own + stood, own_blocked=stood)
        window = observation_of(inside, start_ns=10 * number, kind=Kind.PATH)
        windows.append(replace(window, paths=(PathHistogram(path=path("main z"), histogram=inside.calls),)))
    return windows


def waits_of_3_ms(rng: np.random.Generator, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """Block one call of four."""
    return np.where(rng.random(len(own)) < 0.25, 3e6, 0.0)


@pytest.mark.parametrize(("under", "atom"), [(True, "blocked under lock"), (False, "blocked")])
def test_where_all_calls_reach_the_same_what_blocked_explains(under: bool, atom: str) -> None:
    """With the place where it is known; the expressions divide the calls as the truth does."""
    windows = with_waits(1, waits_of_3_ms, under=under)
    got = explain(windows, [500], program={"app"}, settings=S)
    assert ({each.expression for each in got.behaviours}, got.why) == ({atom, f"not {atom}"}, "")
    assert sum(each.calls for each in got.behaviours) == 16_000
    slow = next(each for each in got.behaviours if each.expression == atom)
    assert slow.shares == (0.0, 1.0)
    found = windows_of_formula(windows, slow.formula)
    assert sum(each.histogram.total for each in found) == slow.calls


def test_calls_that_are_blocked_alike_are_not_explained_by_that() -> None:
    """Each call is blocked for 20 us: much of a short one, little of a long one, which is long for another reason."""
    for seed in range(10):
        windows = with_waits(seed, lambda rng, own: np.full(len(own), 2e4), under=True)
        got = explain(windows, [350], program={"app"}, settings=S)
        assert (got.why, [each.expression for each in got.behaviours]) == ("one-path", ["true"])


def test_waits_of_slow_calls_that_are_not_why_they_are_slow_explain_nothing() -> None:
    """Calls that work five times as long are also blocked, for a quarter of that."""
    windows = with_waits(3, lambda rng, own: np.where(own > 5e4, 0.25 * own, 0.0), under=True)
    got = explain(windows, [350], program={"app"}, settings=S)
    assert (got.why, [each.expression for each in got.behaviours]) == ("one-path", ["true"])
