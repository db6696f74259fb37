"""One verdict on a function, whoever asks: violations, shares, levels and time on CPU together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation
from specmine.daemon.documents.verdicts import verdict_of, verdict_of_behaviour, verdict_on
from specmine.mining.assertions.checks import Check, Verification
from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.window import Window
from specmine.mining.off_cpu.on_cpu import OnCpu
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.verdict import Verdict
from specmine.model.violation import Direction, Violation, What

HOLDS, VIOLATED, UNKNOWN = Verdict.HOLDS, Verdict.VIOLATED, Verdict.UNKNOWN


def function(
    checks: dict[str, Verdict], on_cpu: Verdict | None = None, open_on: Sequence[str] = (), running: int = 2
) -> FunctionState:
    """Return a function with the last checks of its class shares and its time on CPU, and open violations."""
    state = FunctionState(
        identity=Identity(function=Function(build_id="ab", offset=16, name="f", module="app", in_program=True)),
        verification=Verification(
            checks=tuple(Check(subject=name, verdict=each.value) for name, each in checks.items()), violations=running
        ),
    )
    if on_cpu is not None:
        inference = replace(state.inference, on_cpu=OnCpu(check=Check(subject="time on CPU", verdict=on_cpu.value)))
        state = replace(state, inference=inference)
    standing = tuple(
        OpenViolation(
            violation=Violation(function="f", what=What.LEVEL, direction=Direction.SLOWER, factor=2.0, factor_low=1.9,
                                factor_high=2.1, expression=expression),
        )
        for expression in open_on
    )  # fmt: skip
    return replace(state, violations=FunctionViolations(standing=standing))


@pytest.mark.parametrize(
    ("state", "level", "expected"),
    [
        (function({"true": HOLDS}), HOLDS, HOLDS),
        (function({"true": HOLDS}), UNKNOWN, UNKNOWN),
        (function({"true": HOLDS}), VIOLATED, UNKNOWN),
        (function({"true": HOLDS}), None, HOLDS),
        (function({"true": UNKNOWN}), HOLDS, HOLDS),
        (function({"true": HOLDS, "a->f": VIOLATED}), HOLDS, UNKNOWN),
        (function({"true": HOLDS, "a->f": VIOLATED}, running=1), HOLDS, UNKNOWN),
        (function({"true": HOLDS, "a->f": VIOLATED}, running=1), None, UNKNOWN),
        (function({"true": HOLDS}, on_cpu=VIOLATED, running=0), HOLDS, UNKNOWN),
        (function({"true": HOLDS}, open_on=["true"]), HOLDS, VIOLATED),
        (function({}), None, UNKNOWN),
    ],
)
def test_the_worst_that_is_known_decides(state: FunctionState, level: Verdict | None, expected: Verdict) -> None:
    """Only an open violation violates, whatever windows look like; what speaks against a function leaves it unknown."""
    assert verdict_of(state, level) is expected


def test_a_violated_behaviour_leaves_the_others_alone() -> None:
    """A violation of all calls is one of each behaviour, that of one behaviour only its own."""
    one = function({"true": HOLDS, "a->f": HOLDS, "b->f": HOLDS}, open_on=["a->f"])
    assert [verdict_of_behaviour(one, name, HOLDS) for name in ("a->f", "b->f")] == [VIOLATED, HOLDS]
    whole = function({"a->f": HOLDS}, open_on=["true"])
    assert verdict_of_behaviour(whole, "a->f", HOLDS) is VIOLATED
    assert verdict_of_behaviour(function({"a->f": HOLDS}), "a->f", UNKNOWN) is UNKNOWN


def test_a_level_is_judged_by_its_newest_windows() -> None:
    """Five windows of an unchanged program hold, five that are twice as slow are a violation."""
    rng = np.random.default_rng(4)

    def windows(factor: float, count: int) -> list[Window]:
        return [
            Window(
                histogram=Histogram.from_durations(factor * rng.lognormal(10, 0.3, 1000)), start_ns=at, end_ns=at + 1
            )
            for at in range(count)
        ]

    level = level_of(windows(1.0, 20))
    assert verdict_on(level, windows(1.0, 5)) is HOLDS
    assert verdict_on(level, windows(2.0, 5)) is VIOLATED
    assert verdict_on(level, []) is UNKNOWN
