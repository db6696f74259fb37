"""Functions whose calls reach one to five callees: how often what they reach is stated, where it decides or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from specmine.mining.assertions.explain import explain
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import CalleeSet, CalleeTime, Inside
from specmine.model.observation import Kind, Observation, PathHistogram

HEAD = ["what decides whether a call is slow", "callees", "functions", "explained", "as planted"]
WINDOWS = 20
S = MiningSettings()
_BORDER_NS = 50_000
_PATH = CallPath((Frame("main", "app"), Frame("f", "app")))
_SLOW, _FAST = 0.6, 0.15
Calls = NDArray[np.bool_]
"""Which call reached which callee, shape (calls, callees)."""


def table(cases: int) -> Iterator[list[object]]:
    """Yield a row for each way in which calls may be slow."""
    for what, callees, planted in (
        ("one callee", (1, 5), {"calls g0", "not calls g0"}),
        ("two callees together", (2, 5), {"calls g0 and not calls g1", "not calls g0 or calls g1"}),
        ("the lot", (1, 5), None),
        ("the lot; its chance, and what is reached, drift", (1, 5), None),
        ("the lot, twice as often in busy windows, where callees are reached more often", (1, 5), None),
        ("the lot; its chance differs by 3 points between kinds of calls", (1, 5), None),
        ("the lot for each kind of calls", (4, 5), None),
    ):
        found = [_explained(what, callees, seed) for seed in range(cases)]
        stated = [each for each in found if not each.why]
        right = sum({one.expression for one in each.behaviours} == planted for each in stated)
        yield [what, "{} to {}".format(*callees), cases, len(stated), right if planted else "–"]


def _explained(what: str, callees: tuple[int, int], seed: int) -> Explanation:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(callees[0], callees[1] + 1))
    reach, chance = rng.uniform(0.05, 0.95, number), float(rng.uniform(0.05, 0.5))
    slow_kinds = rng.random(2**number) < 0.5
    own = np.clip(chance + rng.normal(0, 0.03, 2**number), 0.01, 0.99)
    windows = []
    for window in range(WINDOWS):
        now, reached = chance, reach
        if "drift" in what:
            now = float(np.clip(chance * np.exp(rng.normal(0, 0.4)), 0.01, 0.9))
            reached = np.clip(reach * np.exp(rng.normal(0, 0.4, number)), 0.01, 0.99)
        elif "busy" in what and window % 7 < 2:
            now, reached = min(0.9, 2 * chance), np.clip(1.5 * reach, 0.01, 0.97)
        windows.append(_window(rng, window, reached, partial(_chances, what, now, slow_kinds, own)))
    border = int(bucket_of(np.array([_BORDER_NS]))[0])
    return explain(windows, [border], program={"app"}, settings=S)


def _chances(
    what: str, chance: float, slow_kinds: NDArray[np.bool_], own: NDArray[np.float64], calls: Calls
) -> NDArray[np.float64]:
    """Return the probability of each call to be slow."""
    kinds = calls @ (1 << np.arange(calls.shape[1]))
    if what == "one callee":
        return np.where(calls[:, 0], _SLOW, _FAST)
    if what == "two callees together":
        return np.where(calls[:, 0] & ~calls[:, 1], _SLOW, _FAST)
    if what == "the lot for each kind of calls":
        return np.where(slow_kinds[kinds], _SLOW, _FAST)
    if "between kinds" in what:
        return np.asarray(own[kinds])
    return np.full(len(calls), chance)


def _window(
    rng: np.random.Generator,
    number: int,
    reach: NDArray[np.float64],
    slow: Callable[[Calls], NDArray[np.float64]],
) -> Observation:
    size = int(rng.integers(210, 1000))
    calls = rng.random((size, len(reach))) < reach
    durations = rng.lognormal(np.log(2e4), 0.1, size) * np.where(rng.random(size) < slow(calls), 5.0, 1.0)
    sets = []
    for row in np.unique(calls, axis=0):
        these = Histogram.from_durations(durations[(calls == row).all(axis=1)])
        frames = [Frame(f"g{callee}", "app") for callee in np.flatnonzero(row)]
        if frames:
            times = tuple(CalleeTime(callee=frame, calls=these, time_ns=these) for frame in frames)
            sets.append(CalleeSet(calls=these, callees=times))
    whole = Histogram.from_durations(durations)
    timed = tuple(Frame(f"g{callee}", "app") for callee in range(len(reach)))
    return Observation(
        function="f",
        lifetime="l",
        kind=Kind.PATH,
        start_ns=10 * number,
        end_ns=10 * number + 10,
        histogram=whole,
        calls=whole.total,
        watched_ns=10,
        paths=(PathHistogram(path=_PATH, histogram=whole),),
        inside=(Inside(calls=whole, timed=timed, sets=tuple(sets), split=True),),
    )
