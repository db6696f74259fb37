"""Whether the durations of later windows are as a mined level says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specmine.mining.levels.estimate import COVERED, LEAST_CALLS
from specmine.mining.levels.verdict import CONFIDENCE, Factor, factor_of, usual_factors, verdict_of
from specmine.mining.levels.window import Window, class_of
from specmine.mining.statistics.student_t import normal_quantile
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.level import Level, Quantile
from specmine.model.verdict import Verdict

from .data import StatedQuantile
from .mined import MinedLevel
from .query import Answer, unknown

_FROM_ZERO = "its normal range begins at 0: calls are too short to time, or windows differ too much"


def between(window: Window, above: float | None, upto: float | None) -> Window:
    """Return the calls of a window that take longer than one bound and at most the other, both in s."""
    if above is None and upto is None:
        return window
    edges = [_edge(bound, window.bias_ns) for bound in (above, upto) if bound is not None]
    part = class_of(window.histogram, edges, 0 if above is None else 1)
    return Window(
        histogram=part,
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        lifetime=window.lifetime,
        bias_ns=window.bias_ns,
        uncertainty_ns=window.uncertainty_ns,
    )


def stated_answer(formula: MinedLevel, stated: Mapping[str, StatedQuantile]) -> Answer:
    """Decide by the quantiles that a document states; their ranges say how far windows vary."""
    level = level_stated(formula)
    return _decided([_stated_part(each.name, level, stated.get(each.name)) for each in formula.quantiles])


def level_answer(formula: MinedLevel, windows: Sequence[Window]) -> Answer:
    """Decide by each quantile: violated if one is, holds if all do, else unknown.

    Parameters
    ----------
    formula : MinedLevel
    windows : sequence of Window
        Of its subject, whatever the bounds of the formula; in the order of time within each lifetime.

    Returns
    -------
    Answer
        With one entry for each quantile in ``quantiles``: seconds, ratio to the asserted value with its interval, the
        normal range for so many lifetimes, lifetimes, calls, verdict.
    """
    kept = [between(window, formula.above, formula.upto) for window in windows]
    kept = [window for window in kept if window.histogram.total]
    level = level_stated(formula)
    return _decided([_part(each.name, level, kept) for each in formula.quantiles])


def _decided(parts: Sequence[Mapping[str, Any]]) -> Answer:
    evidence: dict[str, Any] = {"quantiles": list(parts)}
    if all("ratio" not in part for part in parts):
        return unknown("; ".join(dict.fromkeys(str(part["reason"]) for part in parts)), **evidence)
    verdicts = {part["verdict"] for part in parts}
    order = (Verdict.VIOLATED, Verdict.UNKNOWN)
    verdict = next((each for each in order if each.value in verdicts), Verdict.HOLDS)
    return Answer(verdict=verdict, evidence=evidence)


def level_stated(formula: MinedLevel) -> Level:
    """Return the level that a formula states."""
    stated = {
        each.name: Quantile(ns=1e9 * each.seconds, low_ns=1e9 * each.low, high_ns=1e9 * each.high)
        for each in formula.quantiles
    }
    return Level(**stated, calls=formula.calls, windows=formula.windows, lifetimes=formula.lifetimes)


def _part(name: str, level: Level, windows: Sequence[Window]) -> dict[str, Any]:
    calls = sum(window.histogram.total for window in windows)
    if calls < LEAST_CALLS[name]:
        return _open(name, level, calls, f"{calls} calls, {LEAST_CALLS[name]} are needed")
    factor = factor_of(level, windows, name)
    return _judged(name, level, factor, len({window.lifetime for window in windows}), calls)


def _stated_part(name: str, level: Level, stated: StatedQuantile | None) -> dict[str, Any]:
    asserted = level.quantile(name)
    assert asserted is not None
    if stated is None:
        return _open(name, level, 0, "the data state no normal range for it")
    if not stated.low > 0:
        return _open(name, level, stated.calls, _FROM_ZERO)
    if not asserted.ns > 0:
        return _judged(name, level, None, 1, stated.calls)
    spread = 0.5 * math.log(stated.high / stated.low) / normal_quantile(0.5 + COVERED / 2)
    half = normal_quantile(0.5 + CONFIDENCE / 2) * spread / math.sqrt(max(1, stated.windows))
    value = 1e9 * stated.seconds / asserted.ns
    factor = Factor(value=value, low=value * math.exp(-half), high=value * math.exp(half))
    return _judged(name, level, factor, 1, stated.calls)


def _judged(name: str, level: Level, factor: Factor | None, known: int, calls: int) -> dict[str, Any]:
    """Return the entry of one quantile; ``known`` is the number of lifetimes that the factor rests on."""
    asserted = level.quantile(name)
    assert asserted is not None
    seconds, usual = 1e-9 * asserted.ns, usual_factors(asserted)
    if factor is None or usual is None:
        return _open(name, level, calls, "the duration asserted is 0")
    # the range is of one window of one more lifetime; the mean of several lifetimes stays closer
    scale = math.sqrt((1 / level.lifetimes + 1 / known) / (1 / level.lifetimes + 1))
    usual = max(usual[0], 1e-9) ** scale, usual[1] ** scale
    return {
        "name": name,
        "expected_seconds": seconds,
        "seconds": seconds * factor.value,
        "ratio": factor.value,
        "interval": [factor.low, factor.high],
        "normal": [seconds * end for end in usual],
        "lifetimes": known,
        "calls": calls,
        "verdict": verdict_of(factor, usual).value,
    }


def _open(name: str, level: Level, calls: int, reason: str) -> dict[str, Any]:
    """Return the entry of a quantile that cannot be judged, with the reason."""
    asserted = level.quantile(name)
    assert asserted is not None
    return {
        "name": name,
        "expected_seconds": 1e-9 * asserted.ns,
        "calls": calls,
        "verdict": Verdict.UNKNOWN.value,
        "reason": reason,
    }


def _edge(seconds: float, bias_ns: float) -> int:
    """Return the first bucket above a duration: borders lie between buckets."""
    return int(np.argmin(np.abs(BUCKET_EDGES - (1e9 * seconds + bias_ns))))
