"""One experiment from the gate to its result: what only checks speak against is tried once more, within its limit."""

from __future__ import annotations

import pytest

from specmine.experiments.load.tasks import Machine
from specmine.experiments.results.journal import Journal
from specmine.experiments.runner import run as engine
from specmine.experiments.runner.run import RunEnvironment, RunRequest, perform
from specmine.experiments.types import Check, Context, Experiment, Finding, Load, LoadRun
from specmine.model.function import Reason


def _experiment(findings: list[Finding]) -> Experiment:
    """Return an experiment without load that finds one thing after the other."""

    def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
        return None if runs else Load(seconds=0.001)

    def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
        return findings.pop(0)

    return Experiment(name="probe", summary="", unit="s", plan=plan, derive=derive, cpus="none", limit=5.0)


def _found(value: float, speed: float, reason: Reason | None = None) -> Finding:
    return Finding(value=value, checks=(Check(name="speed_kept", value=speed, low=1.0, high=1.05),), reason=reason)


@pytest.mark.parametrize(
    ("findings", "used_s", "value", "left"),
    [
        ([_found(1.0, 1.4), _found(2.0, 1.0)], 0.0, 2.0, 0),
        ([_found(1.0, 1.4), _found(2.0, 1.3), _found(3.0, 1.0)], 0.0, None, 1),
        ([_found(1.0, 1.0), _found(2.0, 1.0)], 0.0, 1.0, 1),
        ([_found(1.0, 1.4, Reason(code="no-gaps", text="")), _found(2.0, 1.0)], 0.0, None, 1),
        ([_found(1.0, 1.4), _found(2.0, 1.0)], 3.0, None, 1),
    ],
    ids=["again", "only once", "not when sure", "not for another reason", "not beyond the limit"],
)
def test_a_failed_check_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, findings: list[Finding], used_s: float, value: float | None, left: int
) -> None:
    """A CPU that changed its speed meanwhile gets another chance, one only; what cannot be known does not."""
    findings = list(findings)

    class Used(Machine):
        def run(self, load: Load) -> LoadRun:
            self.load_s += used_s
            return super().run(load)

    monkeypatch.setattr(engine, "Machine", Used)
    result = perform(_experiment(findings), RunRequest(), RunEnvironment(journal=Journal()))
    assert (result["value"], len(findings)) == (value, left)
