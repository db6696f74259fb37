"""How long the calls of a function take, drawn: steps, borders between classes, median and p99, the normal range."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from specmine.analysis.histogram_bins import Bin
from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import duration, in_markup, share, three_digits

from .axis import LogAxis, axis_over
from .drawing import Drawing
from .steps import heights, step_path

STEPS, SMALL_STEPS = 72, 40
_TOP, _HEIGHT, _FOOT = 30, 130, 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is marked on a distribution, in s."""

    median: float | None = None
    tail: float | None = None
    """The 99 % quantile."""
    normal: tuple[float, float] | None = None
    """The range in which the median is normal."""
    borders: tuple[float, ...] = ()


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
    counted, usual = _shares(bins, axis), _shares(before, axis)
    most = max(*counted, *usual)
    bottom = _TOP + _HEIGHT
    name = "t" + hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:8]
    parts = [
        f'<svg height="{bottom + _FOOT}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{in_markup(title)}</title>'
    ]
    if marks.normal:
        low, high = axis.place(marks.normal[0]), axis.place(marks.normal[1])
        parts.append(
            f'<rect x="{100 * low:.2f}%" width="{max(0.3, 100 * (high - low)):.2f}%" y="{_TOP - 6}" '
            f'height="{_HEIGHT + 6}" class="band"/>'
        )
    parts += _grid(axis, bottom, ticks)
    parts.append(
        f'<svg x="0" y="{_TOP}" width="100%" height="{_HEIGHT}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
        f'<path class="usual" d="{step_path(usual, most=most)}"/>'
        f'<path class="steps" d="{step_path(counted, most=most)}"/></svg>'
    )
    parts.append(f'<line x1="0" x2="100%" y1="{bottom}" y2="{bottom}" class="base"/>')
    parts += [_border(axis, border, bins, total, bottom) for border in marks.borders]
    parts += _quantile_marks(axis, marks, bottom)
    parts.append(f'<text x="0" y="10" class="ink">{typeset(share(most))} of the calls in the highest step</text>')
    return Drawing("".join(parts) + "</svg>")


def _shares(bins: Sequence[Bin], axis: LogAxis) -> list[float]:
    """Return the share of the calls in each step."""
    total = sum(calls for _, _, calls in bins) or 1.0
    return [each / total for each in heights(bins, axis, STEPS)]


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


def _grid(axis: LogAxis, bottom: int, ticks: int) -> list[str]:
    parts = []
    for number, (value, text) in enumerate(axis.ticks(ticks)):
        at = axis.percent(value)
        anchor = "start" if axis.place(value) < 0.03 else "end" if axis.place(value) > 0.97 else "middle"
        wide = ' class="w"' if number % 2 else ""
        parts.append(f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}" class="grid"/>')
        parts.append(f'<text x="{at}" y="{bottom + 14}" text-anchor="{anchor}"{wide}>{text}</text>')
    return parts


def _border(axis: LogAxis, border: float, bins: Sequence[Bin], total: float, bottom: int) -> str:
    below = sum(calls for low, high, calls in bins if (low + high) / 2 <= border)
    at, anchor = axis.percent(border), "end" if axis.place(border) > 0.5 else "start"
    return (
        f'<line x1="{at}" x2="{at}" y1="{_TOP - 14}" y2="{bottom}" class="cut"/>'
        f'<text x="{at}" dx="{-5 if anchor == "end" else 5}" y="{_TOP - 6}" text-anchor="{anchor}" class="halo">'
        f"{typeset(f'{share(below / total)} up to {duration(border)}')}</text>"
    )


def _quantile_marks(axis: LogAxis, marks: Marks, bottom: int) -> list[str]:
    parts = []
    for name, value, height in (("median", marks.median, 12), ("p99", marks.tail, 27)):  # their words may lie close
        if value:
            at, anchor = axis.percent(value), "end" if axis.place(value) > 0.5 else "start"
            parts.append(f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}" class="mark"/>')
            parts.append(
                f'<text x="{at}" dx="{-5 if anchor == "end" else 5}" y="{_TOP + height}" text-anchor="{anchor}" '
                f'class="ink halo">{typeset(f"{name} {three_digits(value)}")}</text>'
            )
    return parts
