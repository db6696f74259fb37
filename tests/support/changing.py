"""A simulated program that changes while it is watched, and what the daemon makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.events import Acknowledged, Stopping
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.batch import Batch
from specmine.model.violation import Violation
from tests.support.planted import Planted
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

Change = Callable[[Planted], Planted]


def slower(factor: float, *, ways: Sequence[int] | None = None, classes: Sequence[int] | None = None) -> Change:
    """Return the change that makes calls slower: all, those over some ways, or those of some classes."""

    def change(planted: Planted) -> Planted:
        changed = []
        for place, way in enumerate(planted.ways):
            touched = ways is None or place in ways
            parts = tuple(
                (share, median * (factor if touched and (classes is None or at in classes) else 1.0), sigma)
                for at, (share, median, sigma) in enumerate(way.classes)
            )
            changed.append(replace(way, classes=parts))
        return replace(planted, ways=tuple(changed))

    return change


def paused(share: float, factor: float) -> Change:
    """Return the change that makes a share of the calls slower, at random."""

    def change(planted: Planted) -> Planted:
        ways = (
            replace(
                way,
                classes=tuple(
                    (weight * part, median * times, sigma)
                    for weight, median, sigma in way.classes
                    for part, times in ((1 - share, 1.0), (share, factor))
                ),
            )
            for way in planted.ways
        )
        return replace(planted, ways=tuple(ways))

    return change


def called(factor: float) -> Change:
    """Return the change that makes calls more frequent."""
    return lambda planted: replace(planted, rate=planted.rate * factor)


class ChangingSource(SimulatedSource):
    """A source whose functions change at given seconds after the start."""

    def __init__(
        self,
        planted: Sequence[Planted],
        clock: FakeClock,
        changes: Sequence[tuple[float, str, Change]] = (),
        *,
        seed: int = 1,
    ) -> None:
        super().__init__(planted, clock, seed=seed)
        self._changes = sorted(changes, key=lambda each: each[0])

    def poll(self, now_ns: int) -> Batch:
        while self._changes and now_ns - self.began_ns >= self._changes[0][0] * SECOND:
            _, name, change = self._changes.pop(0)
            key = self.keys[name]
            self.planted[key] = change(self.planted[key])
        return super().poll(now_ns)


@dataclass
class Life:
    """What happened in one run."""

    state: ControllerState = field(default_factory=ControllerState)
    steps: list[Step] = field(default_factory=list)
    opened: dict[str, tuple[float, Violation]] = field(default_factory=dict)
    """By id: second after the start, and the violation then."""
    closed: dict[str, tuple[float, Violation]] = field(default_factory=dict)
    began_ns: int = 0

    def listen(self, step: Step) -> None:
        self.steps.append(step)
        self.began_ns = self.began_ns or step.state.began_ns
        second = (step.state.now_ns - self.began_ns) / SECOND
        for function in step.state.functions.values():
            for one in function.violations.open:
                self.opened.setdefault(one.id, (second, one))
            for one in function.violations.closed:
                self.closed.setdefault(one.id, (second, one))

    def named(self, name: str) -> FunctionState:
        """Return a function by its name."""
        return next(each for each in self.state.functions.values() if each.function.name == name)


def lived(
    planted: Sequence[Planted],
    seconds: float,
    changes: Sequence[tuple[float, str, Change]] = (),
    *,
    settings: Settings | None = None,
    seed: int = 1,
    acknowledge_at: float | None = None,
    source: ChangingSource | None = None,
) -> Life:
    """Run the daemon's loop over a program that changes.

    Parameters
    ----------
    planted : sequence of Planted
    seconds : float
    changes : sequence of (float, str, Change)
        Second, name of the function, and what happens to it.
    settings : Settings, optional
    seed : int
    acknowledge_at : float, optional
        When somebody acknowledges all that is open.
    source : ChangingSource, optional
        In place of one over ``planted``.
    """
    life = Life()
    source = source or ChangingSource(planted, FakeClock(), changes, seed=seed)
    said: list[bool] = []

    def inbox(now_ns: int) -> list[Acknowledged | Stopping]:
        due = acknowledge_at is not None and now_ns - source.began_ns >= acknowledge_at * SECOND
        if not due or said or not life.steps:
            return []
        said.append(True)
        functions = life.steps[-1].state.functions.values()
        ids = tuple(one.id for function in functions for one in function.violations.open)
        return [Acknowledged(now_ns=now_ns, ids=ids, by="ann", comment="wanted")]

    life.state = run(
        source,
        settings or Settings(),
        source.clock,
        InlineWorker(),
        listeners=[life.listen],
        inbox=inbox,
        deadline_ns=int(seconds * SECOND),
    )
    return life
