"""A simulated stream that a detector watches window by window."""

from __future__ import annotations

import numpy as np

from specmine.mining.detection.alarm import Alarm, Stream
from specmine.mining.detection.detector import FAST_SECONDS, DetectorState, advance, is_suspicious
from specmine.mining.detection.values import Value
from specmine.model.violation import What
from tests.support.autoregression import autoregressive

ALL = Stream(what=What.LEVEL, part="all")
EVERY = 10 * 10**9
"""ns between windows."""


class Watched:
    """A stream that is watched window by window."""

    def __init__(
        self, seed: int, *, sd: float = 0.07, correlation: float = 0.6, stream: Stream = ALL, learned: int = 100
    ) -> None:
        """Learn windows of an unchanged program."""
        self.rng, self.stream = np.random.default_rng(seed), stream
        self.now_ns, self.fast = 0, False
        self.wander = iter(autoregressive(self.rng, 20_000, correlation, sd))
        self.state, self.alarms = DetectorState(), ()
        self.run(learned)

    def run(self, windows: int, factor: float = 1.0, *, lifetime: str = "a", base: float = 11.0) -> tuple[Alarm, ...]:
        """Observe windows; return the last alarms, or the first that are open."""
        alarms: tuple[Alarm, ...] = ()
        for _ in range(windows):
            self.now_ns += round((FAST_SECONDS if self.fast and is_suspicious(self.state) else EVERY * 1e-9) * 1e9)
            place = base + next(self.wander) + np.log(factor) + self.rng.normal(0, 0.03)
            self.state, alarms = advance(
                self.state,
                [Value(stream=self.stream, place=float(place), variance=0.03**2)],
                self.now_ns,
                began_ns=self.now_ns - round(FAST_SECONDS * 1e9),
                lifetime=lifetime,
            )
            if any(alarm.opened for alarm in alarms):
                break
        return alarms

    def is_found(self, factor: float, seconds: float) -> bool:
        """Return whether a change by a factor, at a random moment, is open in time; suspected windows come faster."""
        self.fast = True
        ends_ns = self.now_ns + self.rng.uniform(0, EVERY) + seconds * 1e9
        while self.now_ns + FAST_SECONDS * 1e9 <= ends_ns:
            alarms = self.run(1, factor)
            if self.now_ns > ends_ns:
                return False
            if any(alarm.opened for alarm in alarms):
                return True
        return False
