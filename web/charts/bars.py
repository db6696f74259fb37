"""Bars: how much of a limit is used, and a ratio with its interval beside the strip that counts as the same."""

from __future__ import annotations

import math

from markupsafe import Markup

from specmine.model.text import share


def limit_bar(ratio: float, limit: float) -> Markup:
    """Return how much of a limit is spent; the stroke is the limit."""
    most = max(1.2 * limit, ratio, 1e-9)
    kind = "slow" if ratio > limit else "past"
    return Markup(
        f'<svg height="16" role="img" aria-label="{share(ratio)} of at most {share(limit)}">'
        '<rect width="100%" y="4" height="8" rx="2" class="trough"/>'
        f'<rect width="{100 * ratio / most:.1f}%" y="4" height="8" rx="2" class="bar-{kind}"/>'
        f'<line x1="{100 * limit / most:.1f}%" x2="{100 * limit / most:.1f}%" y1="0" y2="16" class="mark"/></svg>'
    )


def ratio_bar(ratio: float, interval: tuple[float, float] | None, tolerance: float, kind: str) -> Markup:
    """Return a ratio between a quarter and four on a log axis; beyond that the dot stands at the end."""

    def at(value: float) -> float:
        return 100 * (0.5 + 0.5 * max(-1.0, min(1.0, math.log(max(value, 1e-9)) / math.log(4))))

    same = (at(1 / (1 + tolerance)), at(1 + tolerance))
    line = ""
    if interval is not None:
        line = f'<line x1="{at(interval[0]):.2f}%" x2="{at(interval[1]):.2f}%" y1="10" y2="10" class="line-{kind}"/>'
    return Markup(
        '<svg height="20" aria-hidden="true">'
        f'<rect x="{same[0]:.2f}%" width="{same[1] - same[0]:.2f}%" height="20" class="same"/>{line}'
        f'<circle cx="{at(ratio):.2f}%" cy="10" r="4" class="bar-{kind}"/></svg>'
    )
