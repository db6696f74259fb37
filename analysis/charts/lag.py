"""How calls depend on the call before, and runs on the order of runs: points on two plain axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import count, in_markup, three_digits

from .drawing import Drawing

SHOWN_SHARE = 0.95
_SIDE, _HEIGHT, _TOP, _FOOT = 220, 150, 16, 18


def lag_plot(seconds: Sequence[float], run: str) -> Drawing:
    """Return each call's duration over the one before it; '' for fewer than two. Others are drawn at the edge."""
    if len(seconds) < 2:
        return Drawing()
    low, high = shortest_range(seconds)
    title = f"Each of {count(len(seconds))} calls in a row over the one before it, {run}"
    points = "".join(
        f'<circle cx="{100 * _place(before, low, high):.1f}%" cy="{100 * (1 - _place(after, low, high)):.1f}%" r="2" '
        'class="run-new"/>'
        for before, after in pairwise(seconds)
    )
    return Drawing(
        f'<svg height="{_SIDE + _FOOT}" role="img" aria-label="{in_markup(title)}">'
        f'<svg width="{_SIDE}" height="{_SIDE}"><rect width="100%" height="100%" class="trough"/>'
        f'<line x1="0" y1="100%" x2="100%" y2="0" class="cut"/>{points}</svg>'
        f'<text x="0" y="{_SIDE + 14}">{typeset(f"{three_digits(low)} to {three_digits(high)}")}</text></svg>'
    )


def sequence(seconds: Sequence[float], turns: Sequence[int], title: str) -> Drawing:
    """Return values in the order in which they were measured.

    Parameters
    ----------
    seconds : sequence
        95 % of them fill the height, others are drawn at the edge.
    turns : sequence of int
        Numbers of values before which the build changes.
    title : str
        What the picture says, for those who do not see it.
    """
    if not seconds:
        return Drawing()
    low, high = shortest_range(seconds)
    bottom = _TOP + _HEIGHT
    parts = [
        f'<svg height="{bottom + 6}" role="img" aria-label="{in_markup(title)}">',
        *(
            f'<line x1="{100 * at / len(seconds):.2f}%" x2="{100 * at / len(seconds):.2f}%" y1="{_TOP}" y2="{bottom}" '
            'class="cut"/>'
            for at in turns
        ),
    ]
    for at, value in enumerate(seconds):
        y = bottom - 8 - (_HEIGHT - 16) * _place(value, low, high)
        parts.append(f'<circle cx="{100 * (at + 0.5) / len(seconds):.2f}%" cy="{y:.1f}" r="3" class="run-new"/>')
    for value, y in ((high, _TOP + 4), (low, bottom)) if high > low else ((low, bottom),):
        parts.append(f'<text x="0" y="{y}" class="halo">{typeset(three_digits(value))}</text>')
    return Drawing("".join(parts) + "</svg>")


def shortest_range(values: Sequence[float], share: float = SHOWN_SHARE) -> tuple[float, float]:
    """Return the shortest range that holds a share of the values: rare long ones do not flatten a plot."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    kept = max(1, math.ceil(share * len(ordered)))
    widths = ordered[kept - 1 :] - ordered[: len(ordered) - kept + 1]
    at = int(np.argmin(widths))
    return float(ordered[at]), float(ordered[at + kept - 1])


def _place(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5
