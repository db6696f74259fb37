"""The factor of a slowdown that would be found within a minute, renewed seldom: it takes 2 ms a function."""

from __future__ import annotations

import math

from specmine.daemon.controller.function import FunctionState
from specmine.mining.detection.power import detectable

RENEWED_NS = 600_000_000_000
UNKNOWN_NS = 60_000_000_000
"""Renewed sooner where nothing was known yet."""
_MOST_KNOWN = 4096
_known: dict[str, tuple[int, float | None]] = {}
"""When it was computed last, and the factor, by the key of the function."""


def detectable_factor(function: FunctionState, now_ns: int, threshold: float) -> float | None:
    """Return the factor; None while the detector knows too little, or where no slowdown would be found so soon."""
    if function.violations.yardstick is None or not function.violations.detector.streams:
        return None
    known = _known.get(function.key)
    if known is not None and 0 <= now_ns - known[0] < (UNKNOWN_NS if known[1] is None else RENEWED_NS):
        return known[1]
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    found = detectable(function.violations.detector, threshold=threshold)
    factor = found if math.isfinite(found) else None
    _known[function.key] = now_ns, factor
    return factor
