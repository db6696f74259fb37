"""Bars: how much of a limit is used, and a ratio with its interval beside the strip that counts as the same."""

from __future__ import annotations

import math

from specmine.model.text import share

from .drawing import Drawing


def limit_bar(ratio: float, limit: float) -> Drawing:
    """Return how much of a limit is spent; the stroke is the limit."""
    most = max(1.2 * limit, ratio, 1e-9)
    kind = "slow" if ratio > limit else "past"
    return Drawing(
        f'<svg height="16" role="img" aria-label="{share(ratio)} of at most {share(limit)}">'
        '<rect width="100%" y="4" height="8" rx="2" class="trough"/>'
        f'<rect width="{100 * ratio / most:.1f}%" y="4" height="8" rx="2" class="bar-{kind}"/>'
        f'<line x1="{100 * limit / most:.1f}%" x2="{100 * limit / most:.1f}%" y1="0" y2="16" class="mark"/></svg>'
    )


def ratio_bar(ratio: float, interval: tuple[float, float] | None, tolerance: float, kind: str) -> Drawing:
    """Return a ratio between a quarter and four on a log axis; beyond that the dot stands at the end."""
    same = (_at(1 / (1 + tolerance)), _at(1 + tolerance))
    line = ""
    if interval is not None:
        line = f'<line x1="{_at(interval[0]):.2f}%" x2="{_at(interval[1]):.2f}%" y1="10" y2="10" class="line-{kind}"/>'
    return Drawing(
        '<svg height="20" aria-hidden="true">'
        f'<rect x="{same[0]:.2f}%" width="{same[1] - same[0]:.2f}%" height="20" class="same"/>{line}'
        f'<circle cx="{_at(ratio):.2f}%" cy="10" r="4" class="bar-{kind}"/></svg>'
    )


def ratio_axis() -> Drawing:
    """Return the labels of the axis of ratios, for the head of a table; narrow pages have fewer."""
    labels = (
        (0.25, "start", "", "¼×"),
        (0.5, "middle", "w", "½×"),
        (1.0, "middle", "", "same"),
        (2.0, "middle", "w", "2×"),
        (4.0, "end", "", "4×"),
    )
    told = "".join(
        f'<text x="{_at(ratio):.2f}%" y="12" text-anchor="{anchor}" class="{kind}">{text}</text>'
        for ratio, anchor, kind, text in labels
    )
    return Drawing(f'<svg height="15" aria-hidden="true">{told}</svg>')


def _at(ratio: float) -> float:
    return 100 * (0.5 + 0.5 * max(-1.0, min(1.0, math.log(max(ratio, 1e-9)) / math.log(4))))
