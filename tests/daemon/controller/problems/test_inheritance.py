"""A new build is measured by the one before; what is open moves with the program."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from specmine.daemon.documents.violation_context import violations_document
from specmine.model.batch import Batch, Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.model.violation import CauseKind, Direction, ViolationState
from tests.support.changing import Change, ChangingSource, Life, lived, slower
from tests.support.planted import Planted, unimodal
from tests.support.simulated import SECOND, FakeClock, Window


class Rebuilt(Planted):
    """The same function in another build, elsewhere in the file, with other machine code."""

    @property
    def function(self) -> Function:
        """Return it under another build-id."""
        before = super().function
        return replace(before, build_id="b2e", offset=before.offset + 16, code="v:2:i")


def rebuilt(planted: Planted) -> Planted:
    """Return a function as another build has it."""
    return Rebuilt(**{each.name: getattr(planted, each.name) for each in fields(planted)})


class RedeployedSource(ChangingSource):
    """A program that is replaced by another build at a given second, and back if asked."""

    def __init__(self, planted: Planted, new: Planted, *, at: float, back: float | None = None) -> None:
        super().__init__((planted,), FakeClock())
        self._aside: dict[str, Window] = {}
        self._old, self._new, self._at, self._back = planted, new, at, back
        self._number = 0

    def poll(self, now_ns: int) -> Batch:
        second = (now_ns - self.began_ns) / SECOND
        turns = (self._at, self._back)
        due = turns[self._number] if self._number < len(turns) else None
        if due is None or second < due:
            return self._told(super().poll(now_ns))
        ended = self._life(now_ns, processes=0)
        self._number += 1
        planted = self._new if self._number == 1 else self._old
        self._aside |= self.windows  # probes wait until their file is mapped again
        self.windows = {key: each for key, each in self._aside.items() if key == planted.function.key}
        for window in self.windows.values():
            window.start_ns, window.next_on_ns = self.last_ns, self.last_ns + 1
        self.planted = {planted.function.key: planted}
        self.keys = {planted.name: planted.function.key}
        batch = super().poll(now_ns)
        described = (planted.function,)
        return self._told(replace(batch, functions=described, lifetimes=(ended, self._life(now_ns))))

    def _life(self, now_ns: int, processes: int = 1) -> Lifetime:
        build = "b2e" if self._number == 1 else "b1d"
        pid = 42 + self._number
        return Lifetime(
            id=f"boot:{pid}:7", pid=pid, executable="/opt/app", build_id=build, start_ns=now_ns, processes=processes
        )

    def _told(self, batch: Batch) -> Batch:
        def owned(one: Observation) -> Observation:
            return replace(one, lifetime=self._life(0).id)

        return replace(batch, observations=tuple(map(owned, batch.observations)))


def redeployed(change: Change, *, seconds: float = 400.0, back: float | None = None) -> Life:
    """Run over a redeploy of ``smooth`` at second 200."""
    planted = unimodal()
    source = RedeployedSource(planted, rebuilt(change(planted)), at=200.0, back=back)
    return lived((), seconds, source=source)


def test_a_slower_build_is_violated_by_the_yardstick_of_the_one_before() -> None:
    """Within a minute of the first windows; the cause is the new code, one run each."""
    life = redeployed(slower(2.0))
    ((second, one),) = life.opened.values()
    assert (one.direction, one.function) == (Direction.SLOWER, rebuilt(unimodal()).function.key)
    assert one.factor == pytest.approx(2.0, rel=0.1)
    assert 200 < second < 280
    last = life.state.functions[one.function].violations.open[0]
    assert last.cause.kind is CauseKind.CODE
    (entry,) = [each for each in violations_document(life.state)["violations"] if each["state"] == "open"]
    assert (
        entry["build_started"]["build_id"] == "b2e"
        and "after a run of build b2e started" in entry["build_started"]["text"]
    )
    assert any("one run each" in fact.text or "not compared" in fact.text for fact in last.cause.evidence)


def test_a_rebuild_without_a_change_opens_nothing() -> None:
    """Another build-id alone is no news."""
    assert redeployed(lambda planted: planted).opened == {}


def test_a_rollback_closes_what_the_new_build_opened() -> None:
    """The violation moves back to the build that runs, and holds there again."""
    life = redeployed(slower(3.0), seconds=900.0, back=400.0)
    assert len(life.opened) == 1
    ((second, one),) = life.closed.values()
    assert one.state is ViolationState.RECOVERED
    assert one.function == unimodal().function.key
    assert 680 < second < 800
