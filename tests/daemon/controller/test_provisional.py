"""A new build is checked against what the one before stated, from its first observation until it has its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.config.tree import StoreSettings
from specmine.daemon.controller.checkpoint import function_record
from specmine.daemon.controller.events import Arrived, Restored
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.provisional import Provisional, ProvisionalAssertions
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.specification import specification
from specmine.daemon.loop import Listener, Step, run
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.daemon.worker.process import InlineWorker
from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.store import Verdict, open_store
from tests.support.planted import FAST, MIXED, Planted, paper_program, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)
Past = tuple[ControllerState, list[Observation]]


class Rebuilt(Planted):
    """The same function in another build, elsewhere in the file."""

    @property
    def function(self) -> Function:
        """Return it under another build-id."""
        return replace(super().function, build_id="b2e", offset=super().function.offset + 16)


def rebuilt(planted: Sequence[Planted]) -> tuple[Planted, ...]:
    """Return a program as another build of it."""
    return tuple(Rebuilt(**{each.name: getattr(one, each.name) for each in fields(one)}) for one in planted)


def run_of(
    planted: Sequence[Planted], seconds: float, before: Past | None = None, listeners: Sequence[Listener] = ()
) -> tuple[Past, list[Step]]:
    """Run the daemon over a program, from what the one before left in its store."""
    clock = FakeClock((100 if before is None else 500) * SECOND)
    source = SimulatedSource(tuple(planted), clock, seed=1 if before is None else 2)
    kept: list[Observation] = []
    steps: list[Step] = []

    def listen(step: Step) -> None:
        steps.append(step)
        if isinstance(step.event, Arrived):
            kept.extend(step.event.batch.observations)

    def restored(now_ns: int) -> Restored:
        assert before is not None
        records = {key: function_record(each, before[0].now_ns) for key, each in before[0].functions.items()}
        return Restored(
            now_ns=now_ns,
            functions=tuple(each.function for each in before[0].functions.values()),
            records=json.loads(json.dumps(records)),
            observations=tuple(before[1]),
        )

    state = run(source, SHORT, clock, InlineWorker(), listeners=[listen, *listeners],
                restored=restored if before else None, deadline_ns=int(seconds * SECOND))  # fmt: skip
    return (state, kept), steps


@pytest.fixture(scope="module")
def old() -> Past:
    """The paper's program, explained."""
    past, _ = run_of(paper_program(), 15.0)
    assert next(each.state for each in past[0].functions.values() if each.function.name == "z") is State.EXPLAINED
    return past


def provisional_of(steps: Sequence[Step], name: str) -> list[Provisional]:
    """Return the provisional assertion of the new build at each step before it was finished."""
    return [
        each.provisional
        for step in steps
        for each in step.state.functions.values()
        if (each.function.name, each.function.build_id) == (name, "b2e")
        and each.provisional is not None
        and each.state not in FINISHED
    ]


def test_an_unchanged_build_keeps_the_old_statement_until_it_has_its_own(old: Past) -> None:
    """The first observation that is long enough is checked, and holds; in the end the build states the same itself."""
    (state, _), steps = run_of(rebuilt(paper_program()), 15.0, old)
    provisional = provisional_of(steps, "z")
    checked = [each for each in provisional if each.observations]
    assert provisional[0].build_id == "b1d"
    assert {each.verdict for each in checked} == {"holds"}
    first = next(seen for step in steps if isinstance(step.event, Arrived)
                 for seen in step.event.batch.observations if seen.function.startswith("b2e"))  # fmt: skip
    assert checked[0].observations == 1
    assert checked[0].checked_ns is not None and checked[0].checked_ns <= first.end_ns + SECOND
    z = next(each for each in specification(state)["functions"] if (each["function"], each["build_id"]) == ("z", "b2e"))
    assert (z["state"], z["provisional"]) == ("explained", None)
    assert sorted(each["expression"] for each in z["behaviours"]) == ["b->c", "not b->c"]


def test_a_changed_build_violates_before_it_has_learned_anything(old: Path | Past, tmp_path: Path) -> None:
    """The fast path became mixed: violated while the function is still being timed, and the store says so."""
    z, *others = paper_program()
    slow = replace(z, ways=tuple(replace(way, classes=((0.05, *FAST[1:]), (0.95, *MIXED[-1][1:]))) for way in z.ways))
    stored = StoreRecorder(tmp_path / "s.db", StoreSettings(), print)
    _, steps = run_of(rebuilt((slow, *others)), 4.0, old, [stored.listen])  # type: ignore[arg-type]
    stored.close()
    provisional = provisional_of(steps, "z")
    assert provisional[-1].verdict == "violated"
    assert provisional[-1].violations == provisional[-1].observations >= 2
    with open_store(tmp_path / "s.db", read_only=True) as store:
        verdicts = store.read(Verdict, function=f"b2e+0x{rebuilt((z,))[0].function.offset:x}")
    assert ("true, as in build b1d", "violated") in {(each.subject, each.verdict) for each in verdicts}


def test_a_single_class_that_became_two_violates() -> None:
    """What had no border has one in the new build."""
    past, _ = run_of([unimodal()], 15.0)
    assert next(iter(past[0].functions.values())).state is State.SINGLE
    two = replace(
        unimodal(), ways=(replace(unimodal().ways[0], classes=((0.5, 50_000.0, 0.2), (0.5, 900_000.0, 0.2))),)
    )
    same = provisional_of(run_of(rebuilt([unimodal()]), 6.0, past)[1], "smooth")
    split = provisional_of(run_of(rebuilt([two]), 6.0, past)[1], "smooth")
    assert [each[-1].verdict for each in (same, split)] == ["holds", "violated"]


def test_edges_that_the_new_build_does_not_show_leave_their_claims_unknown(old: Past) -> None:
    """b was inlined: nothing is said over its edge, and what all calls together do is judged as before."""
    z, *others = paper_program()
    without = tuple(replace(way, callers=way.callers.replace(";b", "")) for way in z.ways)
    _, steps = run_of(rebuilt((replace(z, ways=without), *others)), 12.0, old)
    by_path = [each for each in provisional_of(steps, "z") if len(each.checks) > 1]
    claims = {(check.subject == "true", check.verdict) for each in by_path for check in each.checks}
    assert claims <= {(True, "holds"), (False, "unknown")}
    assert (False, "unknown") in claims


def test_a_version_in_the_programs_name_does_not_hide_it() -> None:
    """``app-1`` left to ``app-2``; a library's function of the same name got nothing, nor did the same build."""
    left = Provisional(build_id="one", learned=None)  # type: ignore[arg-type]
    old = Function(build_id="one", offset=1, name="f", module="app-1", in_program=True)
    statements = ProvisionalAssertions([(old, left)])
    assert statements.of(Function(build_id="two", offset=9, name="f", module="app-2", in_program=True)) is left
    assert statements.of(Function(build_id="two", offset=9, name="f", module="libf.so")) is None
    assert statements.of(replace(old, offset=5)) is None
