"""Violations made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation, identified
from specmine.model.level import Level, Quantile
from specmine.model.violation import Cause, CauseKind, Direction, Evidence, Violation, What

SECOND = 1_000_000_000


def level(p50_us: float, *, times: float = 1.0) -> Level:
    """Return a level whose p90 and p99 are fixed multiples of the median, with ranges of 5 % to each side."""
    values = (p50_us * times, 1.6 * p50_us * times, 2.2 * p50_us * times)
    quantiles = [Quantile(ns=us * 1e3, low_ns=us * 950, high_ns=us * 1050) for us in values]
    return Level(p50=quantiles[0], p90=quantiles[1], p99=quantiles[2], calls=5000, windows=12, lifetimes=1)


def violation(function: str, **more: Any) -> Violation:
    """Return an open violation: calls take 2.1 times as long since second 100, found at second 154."""
    made = Violation(
        function=function,
        what=What.LEVEL,
        direction=Direction.SLOWER,
        factor=2.1,
        factor_low=2.0,
        factor_high=2.2,
        expected=level(76.0),
        observed=level(76.0, times=2.1),
        cause=Cause(
            kind=CauseKind.LOAD,
            text="It works longer in each call.",
            evidence=(
                Evidence(kind=CauseKind.CODE, changed=False, text="the same build"),
                Evidence(kind=CauseKind.LOAD, changed=True, text="702 calls/s, usually 351"),
            ),
        ),
        since_ns=100 * SECOND,
        found_ns=154 * SECOND,
    )
    return identified(replace(made, **more), 0)


def standing(*violations: Violation) -> FunctionViolations:
    """Return the violations of a function as its state has them."""
    return FunctionViolations(standing=tuple(OpenViolation(violation=one) for one in violations))
