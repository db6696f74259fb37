"""Time on CPU is learned from windows together, and each later window is checked by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specmine.mining.off_cpu.on_cpu import OnCpu, observed
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.split import Split

SECOND = 1_000_000_000
SETTINGS = MiningSettings()


def window(at: int, running_ns: float = 50_000.0) -> Observation:
    """Return a second of 400 calls, a tenth of which also waited for a CPU for 4 ms."""
    rng = np.random.default_rng(at)
    running = running_ns * rng.lognormal(0, 0.1, 400)
    waited = np.where(rng.random(400) < 0.1, 4e6, 0.0)
    split = Split(
        waiting_ns=Histogram.from_durations(np.maximum(waited, 1).round()),
        blocked_ns=Histogram.from_durations(np.ones(400)),
        on_cpu=Histogram.from_durations(running.round()),
    )
    return Observation(
        function="f", lifetime="l", kind=Kind.TIME, start_ns=at * SECOND, end_ns=(at + 1) * SECOND,
        histogram=Histogram.from_durations((running + waited).round()), calls=400, watched_ns=SECOND, split=split,
    )  # fmt: skip


def learned(windows: list[Observation]) -> OnCpu:
    """Return what is known after these windows, one by one."""
    known = None
    for number in range(1, len(windows) + 1):
        known = observed(known, windows[max(0, number - SETTINGS.recent) : number], SETTINGS)
    assert known is not None
    return known


def test_it_is_learned_from_windows_together() -> None:
    """A chain of five windows is enough; what was found in each of them is needed no more."""
    windows = [window(at) for at in range(SETTINGS.chain_observations)]
    before = learned(windows[:-1])
    assert before.learned is None
    known = observed(before, windows, SETTINGS)
    assert known is not None
    assert known.learned is not None
    assert known.found == ()


def test_each_later_window_is_checked_by_itself() -> None:
    """Calls that run twice as long violate it at once; windows before that do not, and nothing is inferred anew."""
    windows = [window(at) for at in range(12)]
    known = learned(windows)
    assert known.check is not None
    assert known.check.verdict == "holds"
    later = observed(known, [*windows[-4:], window(12, 100_000.0)], SETTINGS)
    assert later is not None
    assert later.check is not None
    assert later.check.verdict == "violated"
    assert replace(later, check=None) == replace(known, check=None)


def test_a_window_without_its_split_says_nothing() -> None:
    """The check of the window before stays."""
    known = learned([window(at) for at in range(8)])
    assert observed(known, [replace(window(9), split=None)], SETTINGS) is known
