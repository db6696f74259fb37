"""How soon are rare pauses found, by which stream, and are calls that always had them a change?

    .venv/bin/python -m bench.detection.pauses [--draws 24] [--calls 120] [--windows 500]

Windows of few calls, each 10 s. The calls take 200 us, by a lognormal law. After 40 windows a share of them takes many
times as long, as under a CPU limit. Then histories of heavy tails that never change. Needs no root.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bench.lib.driver import table
from specmine.daemon.controller.violations.detection import detected
from specmine.mining.detection.detector import DetectorState, adopted
from specmine.mining.detection.values import Subject, values_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.pooling import pooled

SECOND, EVERY_S, MEDIAN_NS = 10**9, 10, 200_000
LEARNED, AFTER = 40, 40
"""Windows before the change, and after it."""
STREAMS = ("mean", "upper", "all")
CHANGES = (
    (0.02, 300, 0.0), (0.01, 300, 0.0), (0.05, 20, 0.0), (0.02, 300, 0.002), (0.05, 20, 0.005),
)  # fmt: skip
"""Share of the calls that are paused, how many times as long they take, and their share before."""
LOCKED, LOCKED_FACTOR = ((1 / 2, 0.0), (1 / 3, 0.0), (1 / 5, 0.0), (1 / 3, 0.01), (1 / 3, 0.05)), 4000
"""Share of the windows in which one call waits for a lock that is held now and then, and that share before."""
WANDERS, KEPT = 0.05, 0.8
"""Standard deviation of the level of a window in log units, and its correlation with the next."""
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def paused(share: float, factor: float) -> Draw:
    """Return how calls are drawn of which a share is paused."""
    return lambda rng, calls: rng.lognormal(0, 0.4, calls) * np.where(rng.random(calls) < share, factor, 1.0)


def locked(share: float) -> Draw:
    """Return how calls are drawn of which one is paused in a share of the windows."""

    def draw(rng: np.random.Generator, calls: int) -> NDArray[np.float64]:
        durations = rng.lognormal(0, 0.4, calls)
        durations[0] *= LOCKED_FACTOR if rng.random() < share else 1.0
        return durations

    return draw


UNCHANGED: dict[str, Draw] = {
    **{f"{share:.1%} take {factor} times as long": paused(share, factor)
       for share in (0.001, 0.005, 0.02, 0.1) for factor in (10, 100, 1000)},
    **{f"one call of {share:.0%} of the windows": locked(share) for share in (0.01, 0.03, 0.1, 0.3)},
    "lognormal, sigma 1.5": lambda rng, calls: rng.lognormal(0, 1.5, calls),
    "lognormal, sigma 2.5": lambda rng, calls: rng.lognormal(0, 2.5, calls),
    "Pareto, index 1.1": lambda rng, calls: 1 + rng.pareto(1.1, calls),
    "Pareto, index 2": lambda rng, calls: 1 + rng.pareto(2, calls),
}  # fmt: skip


def watched(seed: int, calls: int, draws: Iterator[Draw]) -> Iterator[tuple[int, set[str], set[str]]]:
    """Yield of each window its number, and the streams that are suspected and that open; what opens is adopted.

    As in the daemon, two windows together have the streams that neither has.
    """
    rng, state, level, before = np.random.default_rng(seed), DetectorState(), 0.0, None
    for at, draw in enumerate(draws):
        level = KEPT * level + float(np.sqrt(1 - KEPT**2)) * WANDERS * float(rng.normal())
        end_ns = (at + 1) * EVERY_S * SECOND
        one = Observation(
            function="f", lifetime="l", kind=Kind.TIME, start_ns=end_ns - SECOND, end_ns=end_ns, calls=calls,
            histogram=Histogram.from_durations(MEDIAN_NS * np.exp(level) * draw(rng, calls)), watched_ns=SECOND,
        )  # fmt: skip
        whole = None if before is None else pooled((before, one))
        before = one if before is None else None
        state, alarms = detected(state, one, values_of(one, Subject()), Subject(), whole=whole)
        opened = [each.stream for each in alarms if each.opened]
        for stream in opened:
            state = adopted(state, stream)
        yield at, {each.stream.part for each in alarms}, {stream.part for stream in opened}


def found_after(seed: int, calls: int, before: Draw, after: Draw) -> dict[str, int]:
    """Return of each stream after how many windows since the change it opens first; 0 or less: before it."""
    first: dict[str, int] = {}
    for at, _, opened in watched(seed, calls, iter([before] * LEARNED + [after] * AFTER)):
        for part in opened:
            first.setdefault(part, at + 1 - LEARNED)
    return first


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--calls", type=int, default=120)
    parser.add_argument("--windows", type=int, default=500)
    given = parser.parse_args()
    rows = []
    changes = {
        f"{share:.0%} (before: {usual:.1%}) take {factor} times as long": (paused(usual, factor), paused(share, factor))
        for share, factor, usual in CHANGES
    } | {
        f"one call of {share:.0%} (before: {usual:.0%}) of the windows takes {LOCKED_FACTOR:,} times as long":
            (locked(usual), locked(share)) for share, usual in LOCKED
    }  # fmt: skip
    for name, (before, after) in changes.items():
        found = [found_after(seed, given.calls, before, after) for seed in range(given.draws)]
        cells = []
        for part in STREAMS:
            windows = [one[part] for one in found if one.get(part, 0) > 0]
            cells.append(f"{len(windows)}; {np.median(windows):.0f} windows" if windows else "0")
        early = sum(any(one <= 0 for one in each.values()) for each in found)
        rows.append([name, *cells, str(early)])
    table([f"change; opened of {given.draws}, median", *STREAMS, "opened before"], rows)
    print()
    rows, total = [], 0
    for name, draw in UNCHANGED.items():
        opened, suspected = Counter[str](), Counter[str]()
        for seed in range(3):
            for _, parts, news in watched(seed, given.calls, iter([draw] * given.windows)):
                opened.update(news)
                suspected.update(parts)
        total += 3 * given.windows
        shares = [f"{100 * suspected[part] / (3 * given.windows):.1f} %" for part in STREAMS]
        rows.append([name, str(opened.total()), *shares])
    table(["unchanged", "opened", *(f"suspected: {part}" for part in STREAMS)], rows)
    print(f"\n{total} windows")


if __name__ == "__main__":
    main()
