"""What is marked on a distribution: the axis, the normal range, borders between classes, median and p99."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import duration, share, three_digits

from .axis import LogAxis


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is marked on a distribution, in s."""

    median: float | None = None
    tail: float | None = None
    """The 99 % quantile."""
    normal: tuple[float, float] | None = None
    """The range in which the median is normal."""
    borders: tuple[float, ...] = ()


def band(axis: LogAxis, marks: Marks, top: int, bottom: int) -> list[str]:
    """Return the field of the normal range of the median."""
    if not marks.normal:
        return []
    low, high = axis.place(marks.normal[0]), axis.place(marks.normal[1])
    return [
        f'<rect x="{100 * low:.2f}%" width="{max(0.3, 100 * (high - low)):.2f}%" y="{top}" '
        f'height="{bottom - top}" class="band"/>'
    ]


def grid(axis: LogAxis, top: int, bottom: int, ticks: int) -> list[str]:
    """Return lines at round durations, with their labels below."""
    parts = []
    for number, (value, text) in enumerate(axis.ticks(ticks)):
        at = axis.percent(value)
        anchor = "start" if axis.place(value) < 0.03 else "end" if axis.place(value) > 0.97 else "middle"
        wide = ' class="w"' if number % 2 else ""
        parts.append(f'<line x1="{at}" x2="{at}" y1="{top}" y2="{bottom}" class="grid"/>')
        parts.append(f'<text x="{at}" y="{bottom + 14}" text-anchor="{anchor}"{wide}>{text}</text>')
    return parts


def border_line(axis: LogAxis, border: float, top: int, bottom: int, below: float | None = None) -> list[str]:
    """Return a border between classes, with the share of the calls below it where that is given."""
    at, anchor = axis.percent(border), "end" if axis.place(border) > 0.5 else "start"
    if below is None:
        return [f'<line x1="{at}" x2="{at}" y1="{top}" y2="{bottom}" class="cut"/>']
    return [
        f'<line x1="{at}" x2="{at}" y1="{top - 14}" y2="{bottom}" class="cut"/>',
        f'<text x="{at}" dx="{-5 if anchor == "end" else 5}" y="{top - 6}" text-anchor="{anchor}" class="halo">'
        f"{typeset(f'{share(below)} up to {duration(border)}')}</text>",
    ]


def quantile_marks(axis: LogAxis, marks: Marks, top: int, bottom: int) -> list[str]:
    """Return strokes at median and p99; their words stand on two lines, since both may lie close."""
    parts = []
    for name, value, height in (("median", marks.median, 12), ("p99", marks.tail, 27)):
        if value:
            at, anchor = axis.percent(value), "end" if axis.place(value) > 0.5 else "start"
            parts.append(f'<line x1="{at}" x2="{at}" y1="{top}" y2="{bottom}" class="mark"/>')
            parts.append(
                f'<text x="{at}" dx="{-5 if anchor == "end" else 5}" y="{top + height}" text-anchor="{anchor}" '
                f'class="ink halo">{typeset(f"{name} {three_digits(value)}")}</text>'
            )
    return parts
