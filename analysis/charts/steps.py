"""A distribution as steps: heights of a histogram on a logarithmic axis, as counted, never smoothed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specmine.analysis.histogram_bins import Bin

from .axis import LogAxis


def heights(bins: Sequence[Bin], axis: LogAxis, steps: int) -> list[float]:
    """Return the calls in each of ``steps`` equal parts of the axis; a bin that lies over several is divided."""
    found = [0.0] * steps
    for low, high, calls in bins:
        first, last = axis.place(low) * steps, axis.place(high) * steps
        width = last - first
        if width <= 0:
            found[min(steps - 1, int(first))] += calls
            continue
        at = first
        while at < last - 1e-12:
            end = min(last, math.floor(at + 1e-12) + 1.0)
            found[min(steps - 1, int(at + 1e-12))] += calls * (end - at) / width
            at = end
    return found


def shares_of(bins: Sequence[Bin], axis: LogAxis, steps: int) -> list[float]:
    """Return the share of all calls in each step."""
    total = sum(calls for _, _, calls in bins) or 1.0
    return [each / total for each in heights(bins, axis, steps)]


def step_path(values: Sequence[float], *, most: float | None = None) -> str:
    """Return the path of steps in a box of 1000 by 100, closed at the bottom; empty steps leave gaps."""
    top = most if most is not None else max(values, default=0.0)
    if top <= 0:
        return ""
    width = 1000 / len(values)
    parts: list[str] = []
    inside = False
    for at, value in enumerate(values):
        x, y = f"{at * width:.4g}", f"{100 - 98 * value / top:.4g}"
        if value <= 0:
            if inside:
                parts.append("V100")
            inside = False
            continue
        parts.append(f"V{y}" if inside else f"M{x} 100V{y}")
        parts.append(f"H{(at + 1) * width:.4g}")
        inside = True
    if inside:
        parts.append("V100")
    return "".join(parts)
