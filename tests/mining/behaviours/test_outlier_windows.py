"""Windows in which something else slowed the calls make no behaviours; functions that vary keep all of theirs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.assertions.explain import explain
from specmine.mining.behaviours.outlier_windows import typical_windows
from specmine.mining.settings import MiningSettings
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

S = MiningSettings()
SHARES = (0.02, 0.4, 0.45, 0.9, 0.02)


def drawn(
    rng: np.random.Generator, windows: int, *, spread: float | None = None, calls: int = 150, common: bool = False
) -> NDArray[np.int64]:
    """Draw windows of two classes whose shares vary: each by a beta of size ``spread``, or all alike."""
    table = np.zeros((windows, len(SHARES), 2), dtype=np.int64)
    for window in range(windows):
        shift = rng.normal(0.0, 0.1) if common else 0.0
        for path, share in enumerate(SHARES):
            own = rng.beta(share * spread, (1 - share) * spread) if spread else min(max(share + shift, 0.0), 1.0)
            slow = rng.binomial(calls, own)
            table[window, path] = calls - slow, slow
    return table


def test_an_episode_stands_out() -> None:
    """Two windows of twelve in which the fast paths are slow, beside shares that vary."""
    for seed in range(20):
        table = drawn(np.random.default_rng(seed), 12, spread=200.0)
        table[[3, 4], 0] = table[[3, 4], 4] = 10, 140
        assert np.flatnonzero(~typical_windows(table, settings=S)).tolist() == [3, 4]


@pytest.mark.parametrize(("spread", "common"), [(None, False), (200.0, False), (20.0, False), (None, True)], ids=str)
def test_windows_that_merely_vary_all_count(spread: float | None, common: bool) -> None:
    """In 300 draws of any kind of variation at most one in a hundred loses a window."""
    lost = 0
    for seed in range(300):
        table = drawn(np.random.default_rng(seed), 5 + seed % 11, spread=spread, common=common)
        lost += not typical_windows(table, settings=S).all()
    assert lost <= 3


def test_two_modes_of_operation_are_both_usual() -> None:
    """Where half of the windows differ from the other half none stands out; a quarter at most is ever left out."""
    table = drawn(np.random.default_rng(1), 12)
    table[::2, 0] = 0, 150
    assert typical_windows(table, settings=S).all()
    table = drawn(np.random.default_rng(1), 12)
    for window in range(5):
        table[window, 0] = 150 - 30 * window, 30 * window
    assert (~typical_windows(table, settings=S)).sum() <= 3


def test_what_tells_nothing_is_usual() -> None:
    """Few windows, few calls, one class, no path."""
    rng = np.random.default_rng(2)
    odd = drawn(rng, 4)
    odd[0, 0] = 0, 150
    for table in (odd, drawn(rng, 9, calls=3), drawn(rng, 9)[..., :1], drawn(rng, 9)[:, :0], drawn(rng, 9)[:0]):
        assert typical_windows(table, settings=S).all()


def observed(table: NDArray[np.int64]) -> list[Observation]:
    """Return windows with the call paths main > p<i> > z, the classes cut at bucket 350."""
    made = []
    for number, rows in enumerate(table):
        seen = []
        for path, row in enumerate(rows):
            own = CallPath(tuple(Frame(name, "app") for name in ("main", f"p{path}", "z")))
            seen.append(PathHistogram(path=own, histogram=Histogram.from_pairs([300, 400], row)))
        made.append(
            Observation(
                function="b1+0x10", lifetime="boot:1", kind=Kind.PATH, start_ns=number, end_ns=number + 1,
                histogram=Histogram.sum(each.histogram for each in seen), calls=int(rows.sum()),
                watched_ns=1, paths=tuple(seen),
            )
        )  # fmt: skip
    return made


def test_an_episode_makes_no_behaviour() -> None:
    """Behaviours are those of the other windows, the shares those of all calls."""
    table = drawn(np.random.default_rng(3), 12)
    calm = explain(observed(table), [350], program={"app"}, settings=S)
    table[0, 0] = 0, 150
    got = explain(observed(table), [350], program={"app"}, settings=S)
    assert {each.expression for each in got.behaviours} == {each.expression for each in calm.behaviours}
    assert {path.path: path.behaviour for path in got.paths} == {path.path: path.behaviour for path in calm.paths}
    assert sum(each.calls for each in got.behaviours) == int(table.sum())
    (first,) = (path for path in got.paths if path.path.frames[1].name == "p0")
    assert first.shares[1] == pytest.approx((table[:, 0, 1] / 150).mean())
    assert first.independent_calls is not None
    assert 0 < first.independent_calls <= first.calls
