"""How durations went, as the windows of a store tell it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from specmine.daemon.documents.trend import POINTS, stated_formulas, trend_of, trends_of
from specmine.mining.assertions.expression import parse
from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.violation import ViolationState
from specmine.store import Build, Host, Store, Writes, open_store, stored
from tests.support.violations import SECOND, violation

MINUTE = 60 * SECOND
BOOTED = 1_790_000_000 * SECOND
"""When the boot began, UTC ns."""
OLD, NEW = "old:16", "new:16"
LENGTH = POINTS * MINUTE


def durations(minute: int, calls: int = 400) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return what a window of a minute holds: from the 60th minute on twice as long."""
    spread = np.random.default_rng(minute).lognormal(10.0, 0.3, calls)
    return (spread * (2 if minute >= 60 else 1)).astype(np.int64)


def window(minute: int, key: str = OLD, pid: int = 1, calls: int = 400) -> Observation:
    """Return a window of a minute."""
    return Observation(
        function=key,
        lifetime=f"boot:{pid}:1",
        kind=Kind.TIME,
        start_ns=minute * MINUTE,
        end_ns=(minute + 1) * MINUTE,
        histogram=Histogram.from_durations(durations(minute, calls)),
        calls=calls,
        watched_ns=MINUTE,
        bias_ns=100.0,
    )


def lifetime(pid: int, build: str, minute: int) -> Lifetime:
    """Return a lifetime that was first seen at a minute."""
    return Lifetime(
        id=f"boot:{pid}:1", pid=pid, executable="/bin/app", build_id=build, start_ns=minute * MINUTE, processes=1
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of a function that was built anew, and became slower, in the 60th of 120 minutes."""
    store = open_store(tmp_path / "s.db")
    store.write(Writes((
        Host(boot_id="boot", hostname="here", utc_offset_ns=BOOTED),
        lifetime(1, "old", -5), lifetime(2, "new", 60), Build(build_id="new", label="v2"), lifetime(3, "else", 70),
        *(window(minute) for minute in range(60)),
        *(window(minute, NEW, 2) for minute in range(60, 120)),
    )), BOOTED)  # fmt: skip
    yield store
    store.close()


def test_points_are_the_quantiles_of_their_calls_in_all_builds(store: Store) -> None:
    """Each is what numpy says of the durations, less the probes' part, within a bucket of 3.2 %."""
    found = trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)["points"]
    assert len(found) == POINTS
    for minute, point in enumerate(found):
        assert datetime.fromisoformat(point["begin"]).timestamp() == (BOOTED + minute * MINUTE) // SECOND
        assert point["calls"] == 400
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
            assert point[name] * 1e9 == pytest.approx(np.quantile(durations(minute), share) - 100, rel=0.05)


def test_a_point_states_no_quantile_that_few_calls_cannot_show(tmp_path: Path) -> None:
    store = open_store(tmp_path / "few.db")
    store.write(Writes((lifetime(1, "old", 0), window(1, calls=50))), BOOTED)
    (point,) = trend_of(store, [OLD], None, LENGTH)["points"]
    assert point["p50"]
    assert point["p90"] is point["p99"] is None


def test_only_the_time_asked_for_is_shown(store: Store) -> None:
    found = trend_of(store, [OLD, NEW], BOOTED + 120 * MINUTE, 30 * MINUTE)
    assert len(found["points"]) == 30
    assert found["starts"] == []


def test_starts_are_those_of_the_processes_that_were_watched(store: Store) -> None:
    """The first is before the time shown, the third has no window of the function."""
    (start,) = trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)["starts"]
    assert (start["build_id"], start["label"]) == ("new", "v2")
    assert datetime.fromisoformat(start["at"]).timestamp() == BOOTED // SECOND + 3600


def test_without_a_change_the_last_ten_minutes_are_now(store: Store) -> None:
    found = trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)
    assert found["now"]["calls"] == 10 * 400
    assert found["normal"]["calls"] == 110 * 400


def test_now_begins_with_the_change_that_stands_open(store: Store) -> None:
    """Both histograms hold exactly the calls of their side."""
    store.write(Writes((stored(violation(NEW, since_ns=60 * MINUTE, id="1" * 12), BOOTED),)), BOOTED)
    found = trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)
    for side, minutes in (("normal", range(60)), ("now", range(60, 120))):
        calls = Histogram.sum(Histogram.from_durations(durations(minute)) for minute in minutes)
        assert found[side]["histogram"] == calls.pairs
        assert found[side]["bias_seconds"] == pytest.approx(100e-9)
    assert found["now"]["quantiles"]["p50"]["seconds"] > 1.9 * found["normal"]["quantiles"]["p50"]["seconds"]


def test_what_recovered_is_not_normal_and_what_was_accepted_is(store: Store) -> None:
    over = violation(OLD, since_ns=20 * MINUTE, closed_ns=30 * MINUTE, state=ViolationState.RECOVERED, id="2" * 12)
    store.write(Writes((stored(over, BOOTED),)), BOOTED)
    assert trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)["normal"]["calls"] == 100 * 400
    known = violation(NEW, since_ns=60 * MINUTE, closed_ns=70 * MINUTE, state=ViolationState.ACKNOWLEDGED, id="3" * 12)
    store.write(Writes((stored(known, BOOTED),)), BOOTED)
    assert trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)["normal"]["calls"] == 50 * 400


def test_a_store_without_windows_has_no_point(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "empty.db")) as empty:
        found = trend_of(empty, [OLD], None, LENGTH)
    assert found["points"] == []
    assert found["now"]["calls"] == 0


def test_the_medians_of_many_functions_are_read_at_once(store: Store) -> None:
    """Each key has its own points, in the order of time, and the time begins with the oldest window that is shown."""
    found = trends_of(store, [OLD, NEW, "nobody"], BOOTED + LENGTH, LENGTH)
    assert found["schema"] == "specmine.trends/1"
    assert set(found["functions"]) == {OLD, NEW, "nobody"}
    assert found["functions"]["nobody"] == []
    whole_s = (datetime.fromisoformat(found["end"]) - datetime.fromisoformat(found["begin"])).total_seconds()
    assert 0 < whole_s <= LENGTH * 1e-9
    for key in (OLD, NEW):
        points = found["functions"][key]
        assert points == sorted(points)
        assert all(0 <= at <= whole_s and seconds > 0 for at, seconds in points)
    alone = trend_of(store, [OLD], BOOTED + LENGTH, LENGTH)["points"]
    assert found["functions"][OLD][0][1] == pytest.approx(alone[-1]["p50"], rel=0.2)


def test_the_calls_of_behaviours_are_those_over_their_paths(store: Store) -> None:
    """Of the normal time and of now; windows without paths tell nothing of them."""
    rng = np.random.default_rng(5)
    said: dict[str, list[int]] = {"fast": [], "slow": []}
    windows = []
    for minute in range(30, 50):
        parts = []
        for caller, centre in (("fast", 2e4), ("slow", 8e4)):
            held = (centre * rng.lognormal(0, 0.1, 30)).astype(np.int64)
            said[caller] += held.tolist()
            path = CallPath(tuple(Frame(name, "app") for name in ("main", caller, "f")))
            parts.append(PathHistogram(path=path, histogram=Histogram.from_durations(held)))
        whole = Histogram.sum(each.histogram for each in parts)
        windows.append(
            replace(window(minute), kind=Kind.PATH, histogram=whole, calls=60, paths=tuple(parts), bias_ns=0.0)
        )
    store.write(Writes(tuple(windows)), BOOTED)
    formulas = {"fast->f": parse("fast->f"), "not fast->f": parse("not fast->f")}
    found = trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH, formulas)
    for (expression, caller), each in zip(
        (("fast->f", "fast"), ("not fast->f", "slow")), found["normal"]["behaviours"], strict=True
    ):
        assert (each["expression"], each["calls"]) == (expression, 20 * 30)
        assert sum(calls for _, calls in each["histogram"]) == 20 * 30
        assert each["quantiles"]["p50"]["seconds"] * 1e9 == pytest.approx(np.quantile(said[caller], 0.5), rel=0.05)
    assert [each["calls"] for each in found["now"]["behaviours"]] == [0, 0]
    assert trend_of(store, [OLD, NEW], BOOTED + LENGTH, LENGTH)["normal"]["behaviours"] == []


def test_a_single_behaviour_has_no_formula() -> None:
    """Only functions with several behaviours are told apart; other functions are left out."""
    several = [{"expression": "a->f", "formula": [[{"caller": "a", "callee": "f", "present": True}]]},
               {"expression": "not a->f", "formula": [[{"caller": "a", "callee": "f", "present": False}]]}]  # fmt: skip
    single = [{"expression": "true", "formula": [[]]}]
    document = {"functions": [{"key": OLD, "behaviours": several}, {"key": NEW, "behaviours": single}]}
    assert list(stated_formulas(document, [OLD, NEW])) == ["a->f", "not a->f"]
    assert stated_formulas(document, [NEW]) == {}
    assert stated_formulas(None, [OLD]) == {}
