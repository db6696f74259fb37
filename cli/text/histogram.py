"""A distribution of durations drawn in text: time runs down on a log axis, borders are drawn between the bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specmine.analysis.histogram_bins import Bin
from specmine.model.text import count, duration, share

MOST_ROWS = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def distribution(bins: Sequence[Bin], borders: Sequence[float], columns: int, *, ascii_only: bool) -> list[str]:
    """Return the drawing.

    Parameters
    ----------
    bins : sequence
        From ``histogram_bins``.
    borders : sequence of float
        In s; each becomes a line of its own, with the class that ends there above it.
    columns : int
        Width to fill.
    ascii_only : bool
        Draw bars of ``#`` instead of block characters.
    """
    if not bins:
        return []
    total = sum(calls for _, _, calls in bins)
    rows = _rows(bins, sorted(borders))
    most = max(calls for _, _, calls in rows)
    labels = [f"{duration(low)} .." for low, _, _ in rows]
    left, right = max(map(len, labels)) + 2, max(len(count(calls)) for _, _, calls in rows)
    room = max(10, columns - left - right - 10)
    lines = []
    waiting = sorted(borders)
    below = 0.0
    for label, (low, _, calls) in zip(labels, rows, strict=True):
        while waiting and low >= waiting[0] * (1 - 1e-9):
            lines.append(_border(waiting.pop(0), below / total, left, columns, ascii_only))
        below += calls
        bar = _bar(calls / most * room, ascii_only)
        numbers = f"{count(calls).rjust(right)} {share(calls / total):>7}" if calls else ""
        lines.append(f"{label.rjust(left)} {bar.ljust(room)} {numbers}")
    return [line.rstrip() for line in [*lines, f"{duration(rows[-1][1]).rjust(left - 3)}"]]


def _rows(bins: Sequence[Bin], borders: Sequence[float]) -> list[Bin]:
    """Gather bins into rows of equal width in log time; no row lies across a border."""
    low, high = bins[0][0], bins[-1][1]
    step = max(math.log(high / low) / MOST_ROWS, math.log(1.04))
    edges = {low * math.exp(step * at) for at in range(math.ceil(math.log(high / low) / step - 1e-9))}
    for border in borders:
        if low < border < high:
            # An edge close to a border gives way, so that no narrow row is left next to it
            edges = {edge for edge in edges if edge == low or abs(math.log(edge / border)) > step / 2}
            edges.add(border)
    ordered = [*sorted(edges), high]
    calls = [0.0] * (len(ordered) - 1)
    at = 0
    for lower, upper, number in bins:
        middle = math.sqrt(lower * upper)
        while at + 1 < len(calls) and middle >= ordered[at + 1]:
            at += 1
        calls[at] += number
    return list(zip(ordered[:-1], ordered[1:], calls, strict=True))


def _border(border: float, below: float, left: int, columns: int, ascii_only: bool) -> str:
    dash = "-" if ascii_only else "─"
    text = f"{dash * 3} border {duration(border)}, {share(below)} shorter "
    return " " * (left + 1) + text + dash * max(0, columns - left - 1 - len(text))


def _bar(length: float, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * max(round(length), 1 if length > 0 else 0)
    eighths = max(round(length * 8), 1 if length > 0 else 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
