"""Functions whose calls wait: how often being blocked is stated, where it is why calls are slow and where it is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from specmine.mining.assertions.explain import explain
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import ANYWHERE, BLOCKED_PART, CalleeSet, CalleeTime, Inside
from specmine.model.observation import Kind, Observation, PathHistogram

HEAD = ["why calls are slow", "functions", "explained", "as planted"]
WINDOWS = 20
S = MiningSettings()
_BORDER_NS, _USUAL_NS = 50_000, 2e4
_PATH = CallPath((Frame("main", "app"), Frame("f", "app")))
_LOCK = Frame("lock", "libc")
_OWN, _UNDER = {"blocked", "not blocked"}, {"blocked under lock", "not blocked under lock"}
Times = NDArray[np.float64]


def table(cases: int) -> Iterator[list[object]]:
    """Yield a row for each way in which calls may be slow, all of which reach the same callee."""
    for why, planted in (
        ("a wait of their own", _OWN),
        ("a wait in the callee", _UNDER),
        ("the lot; the callee waits by another lot, in a part of each call", None),
        ("the lot; the callee waits by another lot, always as long", None),
        ("the lot; in busy windows calls are slow and the callee waits more often", None),
        ("work; such calls also wait, for a quarter of their time", None),
    ):
        found = [_explained(why, seed) for seed in range(cases)]
        stated = [each for each in found if not each.why]
        right = sum({one.expression for one in each.behaviours} == planted for each in stated)
        yield [why, cases, len(stated), right if planted else "–"]


def _explained(why: str, seed: int) -> Explanation:
    rng = np.random.default_rng(seed)
    chance, waits = float(rng.uniform(0.05, 0.5)), float(rng.uniform(0.05, 0.95))
    windows = []
    for number in range(WINDOWS):
        busy = 2.0 if "busy" in why and number % 7 < 2 else 1.0
        size = int(rng.integers(210, 1000))
        slow = rng.random(size) < min(0.9, busy * chance)
        is_blocked = rng.random(size) < min(0.97, busy * waits)
        own = rng.lognormal(np.log(_USUAL_NS), 0.1, size)
        if "lot" in why or "work" in why:
            own *= np.where(slow, 5.0, 1.0)
        if planted := why.startswith("a wait"):
            stood = np.where(slow, 4 * own, 0.0)
        elif "work" in why:
            stood = np.where(slow, 0.25 * own, 0.0)
        else:
            stood = np.where(is_blocked, 0.3 * (_USUAL_NS if "always" in why else own), 0.0)
        within = not (planted and "own" in why)
        windows.append(_window(number, own, stood, within=within))
    border = int(bucket_of(np.array([_BORDER_NS]))[0])
    return explain(windows, [border], program={"app"}, settings=S)


def _window(number: int, own: Times, stood: Times, *, within: bool) -> Observation:
    """Return a window of calls that work and are blocked for so long, within the callee or not."""
    durations = own + stood
    buckets = bucket_of(durations.round())
    much = (stood > 0) & (stood >= BLOCKED_PART * durations)
    sets = []
    for flag in (False, True):
        these = much == flag
        if not these.any():
            continue
        calls = Histogram.from_durations(durations[these])
        callee = CalleeTime(callee=_LOCK, calls=calls, time_ns=calls)
        places = (ANYWHERE, _LOCK) if within else (ANYWHERE,)
        blocked_ns = Histogram.from_pairs(buckets[these], stood[these].round().astype(np.uint64))
        told = (places, blocked_ns) if flag else ((), Histogram.from_pairs([], []))
        sets.append(CalleeSet(calls=calls, callees=(callee,), blocked=told[0], blocked_ns=told[1]))
    whole = Histogram.from_durations(durations)
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
        inside=(Inside(calls=whole, timed=(_LOCK,), sets=tuple(sets), split=True),),
    )
