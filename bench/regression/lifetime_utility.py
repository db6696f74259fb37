"""What is gained if utility takes lifetimes into account?

    .venv/bin/python -m bench.regression.lifetime_utility [SECONDS]

The controller watches a simulated program that restarts again and again. Each restart shifts each function by a factor
of its own. The simulation runs twice: with the rule of ``mining/regression/lifetime_utility.py``, and with the age of
observations alone. Every draw is seeded. Needs no root and no kernel.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation import utility
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.mining.regression.lifetime_utility import utility_over_lifetimes
from specmine.model.batch import Batch, Lifetime
from tests.support.planted import Planted, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

FUNCTIONS, RATE = 6, 30_000.0


class Restarting(SimulatedSource):
    """A program that is started anew again and again."""

    def __init__(self, planted: tuple[Planted, ...], clock: FakeClock, deviation: float, life_s: float) -> None:
        super().__init__(planted, clock)
        self._first, self._deviation, self._life_ns = dict(self.planted), deviation, int(life_s * SECOND)
        self._chance = np.random.default_rng(7)
        self.life = Lifetime(id="boot:42:7", pid=42, executable="/opt/app", build_id="b1d", start_ns=0, processes=1)
        self._restarts = 0

    def poll(self, now_ns: int) -> Batch:
        batch = super().poll(now_ns)
        batch = replace(batch, observations=tuple(replace(each, lifetime=self.life.id) for each in batch.observations))
        if now_ns - self.began_ns < (self._restarts + 1) * self._life_ns:
            return batch
        self._restarts += 1
        ended = replace(self.life, processes=0)
        self.life = replace(self.life, id=f"boot:42:{7 + self._restarts}", start_ns=now_ns)
        for key, each in self._first.items():
            factor = float(np.exp(self._chance.normal(0, self._deviation)))
            ways = tuple(
                replace(way, classes=tuple((share, factor * ns, sigma) for share, ns, sigma in way.classes))
                for way in each.ways
            )
            self.planted[key] = replace(each, ways=ways)
        for window in self.windows.values():
            window.durations, window.by_way, window.timed, window.calls = [], {}, 0, 0
            window.start_ns = now_ns
        return replace(batch, lifetimes=(ended, self.life))


def simulated(deviation: float, life_s: float, seconds: float) -> tuple[float, float, float]:
    """Return lifetimes seen of each function, ns of cost a second, and the error of a build's log median."""
    clock = FakeClock()
    planted = tuple(unimodal(f"f{number}", rate=RATE, own=0.1) for number in range(FUNCTIONS))
    source = Restarting(planted, clock, deviation, life_s)
    medians: dict[str, dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))

    def listen(step: Step) -> None:
        batch = getattr(step.event, "batch", None)
        for seen in batch.observations if batch is not None else ():
            medians[seen.function][seen.lifetime].append((seen.timed, seen.histogram.quantile(0.5)))

    run(source, Settings(), clock, InlineWorker(), listeners=[listen], deadline_ns=int(seconds * SECOND))
    lifetimes, errors = [], []
    for by_lifetime in medians.values():
        logs = [
            float(np.average([np.log(ns) for _, ns in each], weights=[calls for calls, _ in each]))
            for each in by_lifetime.values()
        ]
        lifetimes.append(len(logs))
        errors.append(float(np.std(logs, ddof=1)) / np.sqrt(len(logs)))
    return float(np.mean(lifetimes)), source.overhead_ns / seconds, float(np.mean(errors))


def main() -> None:
    """Print one row per deviation between lifetimes and length of one."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
    known = utility_over_lifetimes
    print(f"{FUNCTIONS} functions of {RATE:,.0f} calls/s for {seconds:g} s; by age alone -> knowing of lifetimes")
    print(f"{'life, s':>7} {'deviation':>9} {'lifetimes seen':>16} {'cost, us/s':>14} {'error of a build':>18}")
    for life_s in (10, 30, 300):
        for deviation in (0.005, 0.05):
            rows = []
            for rule in (lambda found, *_: found, known):
                with patch.object(utility, "utility_over_lifetimes", rule):
                    rows.append(simulated(deviation, life_s, seconds))
            (seen, cost, error), (more, other, smaller) = rows
            print(f"{life_s:7} {deviation:9.1%} {seen:7.0f} -> {more:5.0f} {cost / 1e3:6,.0f} -> {other / 1e3:4,.0f}"
                  f" {error:8.3%} -> {smaller:6.3%}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
