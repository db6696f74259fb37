"""What many hosts say together: the shape that most of them show, whatever one of them sends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.mining.fleet.pooled_statement import PooledStatement, pooled_statement, scaled_histogram
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

_FAST, _SLOW = 20_000.0, 200_000.0
_SETTINGS = MiningSettings()


def _row(
    rng: np.random.Generator, factor: float = 1.0, *, paths: bool = True, calls: int = 400, bias: float = 400.0
) -> Observation:
    """Return five minutes of the first paper's example: fast over b->c, mixed over a->c."""
    fast = rng.random(calls) < np.where(np.arange(calls) % 2 == 0, 1.0, 0.6)
    durations = np.where(fast, _FAST, _SLOW) * factor * np.exp(0.1 * rng.standard_normal(calls)) + bias
    of_paths = tuple(
        PathHistogram(
            path=CallPath(tuple(Frame(name, "app") for name in ("main", "a", *names, "c", "z"))),
            histogram=Histogram.from_durations(durations[at::2].astype(np.int64)),
        )
        for at, names in enumerate((("b",), ()))
    )
    return Observation(
        function="ab+0x10", lifetime="boot:1:1", kind=Kind.PATH if paths else Kind.TIME, start_ns=1, end_ns=2,
        histogram=Histogram.from_durations(durations.astype(np.int64)), calls=calls, watched_ns=1, bias_ns=bias,
        paths=of_paths if paths else (),
    )  # fmt: skip


def _fleet(number: int = 10, seed: int = 1, spread: float = 0.1, **more: object) -> dict[str, list[Observation]]:
    rng = np.random.default_rng(seed)
    return {
        f"h{at}": [_row(rng, float(np.exp(spread * rng.standard_normal())), **more)]  # type: ignore[arg-type]
        for at in range(number)
    }  # fmt: skip


def _mined(rows: dict[str, list[Observation]]) -> PooledStatement:
    return pooled_statement("ab+0x10", "ab", rows, ("app",), _SETTINGS)


def _expressions(found: PooledStatement) -> list[str]:
    assert found.statement is not None
    assert found.statement.result is not None
    return sorted(each.expression for each in found.statement.result.behaviours)


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.2])
def test_hosts_that_differ_share_a_shape(spread: float) -> None:
    """Borders and expressions as one host would learn them; the scale is that of the hosts' medians."""
    found = _mined(_fleet(spread=spread))
    assert found.state == "stated"
    assert found.statement is not None
    (border,) = found.statement.learned.borders
    assert _FAST * 1.3 < border.duration_ns < _SLOW / 1.3
    assert _expressions(found) == ["a->c", "not a->c"]
    assert found.statement.median_ns == pytest.approx(
        _FAST * 1.03, rel=0.02 + spread
    )  # the median lies above that of the fast calls
    assert found.statement.learned.start_ns is None


def test_paths_are_asked_for_once_classes_are_found() -> None:
    """Rows without call paths bring borders; few rows nothing; one class needs no path."""
    assert _mined(_fleet(paths=False)).state == "paths"
    assert _mined(_fleet(number=3)).state == "few"
    assert _mined(_fleet(calls=15)).state == "few"
    rng = np.random.default_rng(3)
    one = {f"h{at}": [replace(each, histogram=Histogram.from_durations(
        (5e4 * np.exp(0.3 * rng.standard_normal(400))).astype(np.int64)))]
        for at, (each,) in enumerate(_fleet(paths=False).values())}  # fmt: skip
    found = _mined(one)
    assert found.statement is not None
    assert found.statement.learned.borders == ()
    assert found.statement.result is None


def _lies() -> dict[str, list[Observation]]:
    rng = np.random.default_rng(9)
    honest = _row(rng)
    slow = replace(honest, histogram=scaled_histogram(honest.histogram, 3.0, 400.0, 400.0, 1 << 30))
    third = honest.histogram + Histogram.from_durations(np.full(400, 3_000_000))
    alien = CallPath((Frame("main", "app"), Frame("evil", "x"), Frame("z", "app")))
    made_up = PathHistogram(path=alien, histogram=Histogram.from_durations(np.full(10**5, 3_000_000)))
    third_class = Histogram.from_durations(np.full(400, 3_000_000))
    its_own = PathHistogram(path=alien, histogram=third_class)
    loud = Histogram.from_pairs(honest.histogram.buckets, honest.histogram.counts.astype(np.uint64) * 10**9)
    return {
        "threefold durations": [slow],
        "a third class": [replace(honest, histogram=third)],
        "a path of its own": [replace(honest, paths=(*honest.paths, made_up))],
        "a path of its own with its calls": [replace(honest, histogram=third, paths=(*honest.paths, its_own))],
        "a billion calls": [replace(honest, histogram=loud)],
        "many rows": [replace(slow, lifetime=f"boot:{number}:1") for number in range(50)],
        "no duration": [replace(honest, histogram=Histogram.from_durations(np.zeros(400)), paths=())],
        "the longest durations": [replace(honest, histogram=Histogram.from_durations(np.full(400, 1 << 41)), paths=())],
    }


@pytest.mark.parametrize("lie", list(_lies()))
def test_one_host_that_lies_changes_nothing_that_others_do_not_show(lie: str) -> None:
    """Borders, expressions and scale stay what they are without it."""
    fleet = _fleet(number=11, seed=2)
    without = _mined({host: rows for host, rows in fleet.items() if host != "h4"})
    found = _mined({**fleet, "h4": _lies()[lie]})
    assert found.statement is not None
    assert without.statement is not None
    assert _expressions(found) == _expressions(without)
    assert len(found.statement.learned.borders) == len(without.statement.learned.borders) == 1
    assert found.statement.learned.borders[0].duration_ns == pytest.approx(
        without.statement.learned.borders[0].duration_ns, rel=0.35
    )
    assert found.statement.median_ns == pytest.approx(without.statement.median_ns, rel=0.05)
    assert found.statement.result is not None
    assert all("evil" not in str(one.path) for one in found.statement.result.paths)


def test_who_lies_threefold_is_named() -> None:
    """It is left out, and said to be."""
    assert _mined({**_fleet(seed=2), "h4": _lies()["threefold durations"]}).left_out == ("h4",)


def test_equal_input_gives_equal_output() -> None:
    """In whatever order hosts come."""
    fleet = _fleet()
    one, other = (_mined(each).statement for each in (fleet, dict(reversed(list(fleet.items())))))
    assert one is not None
    assert other is not None
    assert (one.learned.edges, one.median_ns, one.calls) == (other.learned.edges, other.median_ns, other.calls)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.3, 3.0), st.integers(0, 2**31), st.integers(300, 3000))
def test_scaling_keeps_calls_and_quantiles(factor: float, seed: int, calls: int) -> None:
    """Against numpy's own scaling of the durations: no call is lost, and no quantile moves by more than a bucket."""
    durations = np.exp(np.random.default_rng(seed).normal(11, 0.5, calls))
    histogram = Histogram.from_durations(durations.astype(np.int64))
    found = scaled_histogram(histogram, factor, 100.0, 50.0, 1 << 30)
    expected = np.quantile((durations - 100.0) * factor + 50.0, (0.1, 0.5, 0.9))
    assert found.total == calls
    np.testing.assert_allclose(found.quantiles((0.1, 0.5, 0.9)), expected, rtol=0.05)
    assert scaled_histogram(histogram, factor, 100.0, 50.0, 100).total == 100
    assert BUCKET_EDGES[found.buckets[0]] < found.quantile(0.5)


@pytest.mark.parametrize("calls", [40, 150])
def test_a_little_of_many_hosts_is_enough(calls: int) -> None:
    """What no host sent enough of to be judged, hosts show together: the same borders and expressions."""
    found = _mined(_fleet(number=60, calls=calls, seed=7))
    assert found.state == "stated"
    assert found.statement is not None
    assert len(found.statement.learned.borders) == 1
    assert _expressions(found) == ["a->c", "not a->c"]
