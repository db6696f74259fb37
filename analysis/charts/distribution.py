"""How long the calls of a function take, drawn: steps, borders between classes, median and p99, the normal range."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from specmine.analysis.histogram_bins import Bin
from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import in_markup, share

from .axis import LogAxis, axis_over
from .drawing import Drawing
from .marks import Marks, band, border_line, grid, quantile_marks
from .steps import heights, shares_of, step_path

STEPS, SMALL_STEPS = 72, 40
_TOP, _HEIGHT, _FOOT = 30, 130, 18


def distribution(
    bins: Sequence[Bin], marks: Marks, title: str, before: Sequence[Bin] = (), *, ticks: int = 9
) -> Drawing:
    """Return the figure, '' without calls.

    Parameters
    ----------
    bins : sequence
        Ascending.
    marks : Marks
    title : str
        What the picture says, for those who do not see it.
    before : sequence
        The calls of the normal time, drawn behind the others; each side has the height of its own shares.
    ticks : int
        How many labels the axis has at most.
    """
    if not bins:
        return Drawing("")
    both = [*bins, *before]
    axis = axis_over([*(low for low, _, _ in both), *(high for _, high, _ in both), *(marks.normal or ())])
    total = sum(calls for _, _, calls in bins)
    counted, usual = shares_of(bins, axis, STEPS), shares_of(before, axis, STEPS)
    most = max(*counted, *usual)
    bottom = _TOP + _HEIGHT
    name = "t" + hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:8]
    parts = [
        f'<svg height="{bottom + _FOOT}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{in_markup(title)}</title>'
    ]
    parts += band(axis, marks, _TOP - 6, bottom)
    parts += grid(axis, _TOP, bottom, ticks)
    parts.append(
        f'<svg x="0" y="{_TOP}" width="100%" height="{_HEIGHT}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
        f'<path class="usual" d="{step_path(usual, most=most)}"/>'
        f'<path class="steps" d="{step_path(counted, most=most)}"/></svg>'
    )
    parts.append(f'<line x1="0" x2="100%" y1="{bottom}" y2="{bottom}" class="base"/>')
    for border in marks.borders:
        below = sum(calls for low, high, calls in bins if (low + high) / 2 <= border)
        parts += border_line(axis, border, _TOP, bottom, below / total)
    parts += quantile_marks(axis, marks, _TOP, bottom)
    parts.append(f'<text x="0" y="10" class="ink">{typeset(share(most))} of the calls in the highest step</text>')
    return Drawing("".join(parts) + "</svg>")


def small_distribution(bins: Sequence[Bin], axis: LogAxis, median: float | None, tail: float | None) -> Drawing:
    """Return a picture for a row of a table, on an axis that all rows share; hidden from screen readers."""
    if not bins:
        return Drawing("")
    lines = "".join(
        f'<line x1="{axis.percent(each)}" x2="{axis.percent(each)}" y1="15" y2="23" class="mark"/>'
        for each in (median, tail)
        if each
    )
    return Drawing(
        '<svg height="24" aria-hidden="true"><svg y="1" width="100%" height="18" viewBox="0 0 1000 100" '
        f'preserveAspectRatio="none"><path class="plain" d="{step_path(heights(bins, axis, SMALL_STEPS))}"/></svg>'
        f'<line x1="0" x2="100%" y1="19.5" y2="19.5" class="base"/>{lines}</svg>'
    )


def axis_head(axis: LogAxis) -> Drawing:
    """Return the labels of the axis that the rows of a table share."""
    ticks = axis.ticks()
    chosen = ticks[:: max(1, -(-len(ticks) // 3))]
    labels = "".join(
        f'<text x="{axis.percent(value)}" y="12" text-anchor="middle">{text}</text>'
        for value, text in chosen
        if 0.08 < axis.place(value) < 0.92
    )
    return Drawing(f'<svg height="15" aria-hidden="true">{labels}</svg>')
