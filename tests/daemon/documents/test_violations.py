"""Violations as JSON values: their order, and what samples find more of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specmine.daemon.documents.violations import Context, Named, cause_facts, listed
from specmine.model.violation import Cause, CauseKind, Direction, MoreSamples, Violation, ViolationState, What

SECOND = 1_000_000_000
NAMES = {key: Named(function=f"function_{key}", module="shop") for key in "abcdef"}


def violation(function: str, since_s: int, lost: float = 0.0, **more: Any) -> Violation:
    """Return an open violation of slower calls."""
    one = Violation(
        function=function, what=What.LEVEL, direction=Direction.SLOWER, factor=2.0, factor_low=1.9, factor_high=2.1,
        time_share=lost, since_ns=since_s * SECOND, found_ns=since_s * SECOND, id=f"{since_s:012x}",
    )  # fmt: skip
    return replace(one, **more)


def test_those_first_that_cost_most_time() -> None:
    """Then those that stand only through others, then what is no problem, then what has closed, the newest first."""
    closed: dict[str, Any] = {"state": ViolationState.RECOVERED, "closed_ns": 900 * SECOND}
    found = [
        violation("a", 50, lost=0.5, **closed),
        violation("b", 40, lost=0.9, direction=Direction.FASTER, factor=0.5),
        violation("c", 30, lost=0.8, because="d"),
        violation("d", 20, lost=0.02),
        violation("e", 10, lost=0.3),
        violation("f", 60, **closed),
    ]
    ordered = [each["key"] for each in listed(found, Context(names=NAMES))]
    assert ordered == ["e", "d", "c", "b", "f", "a"]


def test_what_samples_find_more_of_is_told_with_its_numbers() -> None:
    """And null where they tell nothing."""
    more = MoreSamples(function="qsort_r", module="libc.so.6", cpus=0.41, usual_cpus=0.02)
    assert cause_facts(Cause(kind=CauseKind.LOAD, more_samples=more))["more_samples"] == {
        "function": "qsort_r",
        "module": "libc.so.6",
        "is_caller": False,
        "cpus": 0.41,
        "usual_cpus": 0.02,
        "text": "Samples find more CPU time in qsort_r: 0.41 CPUs, usually 0.02.",
    }
    assert cause_facts(Cause())["more_samples"] is None
