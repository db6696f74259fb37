"""How a median went, in a few letters: a line of blocks, one a part of the time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

WIDTH = 12
_BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_USUAL = 3
"""The block of the middle value."""
_FULL = math.log(2.0)
"""A value twice as large as the middle one has the highest block; where values lie further apart, the largest has."""


def sparkline(points: Sequence[Sequence[float]], span_s: float, width: int = WIDTH) -> str:
    """Return the blocks; parts of the time without a value are blank.

    Parameters
    ----------
    points : sequence
        ``[seconds after the beginning, value]``.
    span_s : float
        Length of the whole time, s.
    width : int
        Letters.
    """
    parts: list[list[float]] = [[] for _ in range(width)]
    for at, value in points:
        if value > 0 and span_s > 0:
            parts[min(width - 1, max(0, int(at / span_s * width)))].append(math.log(value))
    known = [statistics.fmean(each) for each in parts if each]
    if not known:
        return ""
    middle = statistics.median(known)
    scale = max(_FULL, *(abs(each - middle) for each in known))
    top = len(_BLOCKS) - 1
    return "".join(
        _BLOCKS[min(top, max(0, round(_USUAL + (top - _USUAL) * (statistics.fmean(each) - middle) / scale)))]
        if each
        else " "
        for each in parts
    )
