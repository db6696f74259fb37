"""Which slowdowns of a function would be found, and how soon. Computed seldom: it takes 2 ms a function and more."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from specmine.daemon.controller.function import FunctionState
from specmine.mining.detection.detector import DetectorState
from specmine.mining.detection.power import LEAST_KNOWN_WINDOWS, WITHIN_SECONDS, detectable

RENEWED_NS = 600_000_000_000
UNKNOWN_NS = 60_000_000_000
"""Renewed sooner where nothing was known yet."""
DOUBLED = 2.0
"""The slowdown of which people are told within what time it would be found ..."""
SPANS_SECONDS = (WITHIN_SECONDS, 300.0, 900.0)
"""... which is one of these."""
_MOST_KNOWN = 4096
_factors: dict[str, tuple[int, float | None]] = {}
_spans: dict[str, tuple[int, float | None]] = {}
"""When it was computed last, and what, by the key of the function."""


def keep(functions: AbstractSet[str]) -> None:
    """Forget what was computed of all functions but these, by key."""
    for known in (_factors, _spans):
        for key in known.keys() - functions:
            known.pop(key, None)  # several threads ask


def detectable_factor(function: FunctionState, now_ns: int, threshold: float) -> float | None:
    """Return the factor of a slowdown that would be found within a minute.

    None while the detector knows too little, or where no slowdown would be found so soon.
    """
    if not _is_watched(function):
        return None

    def factor() -> float | None:
        found = detectable(function.violations.detector, threshold=threshold)
        return found if math.isfinite(found) else None

    return _renewed(_factors, function.key, now_ns, factor)


def detectable_facts(function: FunctionState, now_ns: int, threshold: float) -> dict[str, Any] | None:
    """Return as JSON values what would be found; None of a function of which nothing is asserted.

    Parameters
    ----------
    function : FunctionState
    now_ns : int
        CLOCK_MONOTONIC.
    threshold : float
        Evidence of a change, at present.

    Returns
    -------
    dict or None
        ``ratio``: the smallest slowdown that would be found within ``within_seconds`` in half of the cases;
        ``doubled_seconds``: within how long twice the time would be; both null where nothing would, or where
        ``windows``, each ``window_seconds`` apart, are still fewer than ``windows_needed``.
    """
    if not _is_watched(function):
        return None
    windows, apart_s = _windows(function.violations.detector)
    known = windows >= LEAST_KNOWN_WINDOWS
    return {
        "ratio": detectable_factor(function, now_ns, threshold) if known else None,
        "within_seconds": WITHIN_SECONDS,
        "doubled_seconds": _doubled_seconds(function, now_ns, threshold) if known else None,
        "windows": int(windows),
        "windows_needed": int(LEAST_KNOWN_WINDOWS),
        "window_seconds": apart_s,
    }


def _doubled_seconds(function: FunctionState, now_ns: int, threshold: float) -> float | None:
    factor = detectable_factor(function, now_ns, threshold)
    if factor is not None and factor <= DOUBLED:
        return WITHIN_SECONDS
    detector = function.violations.detector

    def seconds() -> float | None:
        later = (each for each in SPANS_SECONDS if each > WITHIN_SECONDS)
        return next((each for each in later if detectable(detector, threshold=threshold, within=each) <= DOUBLED), None)

    return _renewed(_spans, function.key, now_ns, seconds, unknown_ns=RENEWED_NS)


def _is_watched(function: FunctionState) -> bool:
    return function.violations.yardstick is not None and bool(function.violations.detector.streams)


def _windows(detector: DetectorState) -> tuple[float, float]:
    """Return how many windows of all calls the detector saw, and the usual seconds between them."""
    every = next((one for one in detector.streams if (one.stream.part, one.stream.expression) == ("all", "true")), None)
    return (every.seen, every.interval) if every is not None else (0.0, 0.0)


def _renewed(
    known: dict[str, tuple[int, float | None]],
    key: str,
    now_ns: int,
    compute: Callable[[], float | None],
    *,
    unknown_ns: int = UNKNOWN_NS,
) -> float | None:
    """Return what was computed lately, or compute it."""
    before = known.get(key)
    if before is not None and 0 <= now_ns - before[0] < (unknown_ns if before[1] is None else RENEWED_NS):
        return before[1]
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[key] = now_ns, compute()
    return known[key][1]
