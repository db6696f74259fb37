"""The last hours: what was wrong when, a bar each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from specmine.model.text import in_markup

from .drawing import Drawing

_ROW, _TOP = 24, 8
_MOST_ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One thing that lasted."""

    begin: datetime
    end: datetime
    text: str
    kind: str
    """Class of the bar: slow, fast or past."""


def timeline(spans: Sequence[Span], now: datetime, hours: int) -> Drawing:
    """Return a figure of the newest spans within the last ``hours`` before ``now``; '' if there are none."""
    start = now - timedelta(hours=hours)
    shown = [each for each in spans if each.end >= start][:_MOST_ROWS]
    if not shown:
        return Drawing("")
    bottom = _TOP + _ROW * len(shown) + 4
    title = f"Last {hours} hours: {len(shown)} {'change' if len(shown) == 1 else 'changes'}"
    parts = [f'<svg height="{bottom + 18}" role="img" aria-labelledby="timeline"><title id="timeline">{title}</title>']
    step = 6 if hours > 12 else 1
    tick = start.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    while tick < now:
        place = _percent(tick, start, now)
        if tick.hour % step == 0 and place < 88:
            anchor = "start" if place < 4 else "middle"
            parts.append(f'<line x1="{place:.2f}%" x2="{place:.2f}%" y1="{_TOP}" y2="{bottom}" class="grid"/>')
            parts.append(
                f'<text x="{place:.2f}%" y="{bottom + 14}" text-anchor="{anchor}">{tick.strftime("%H:%M")}</text>'
            )
        tick += timedelta(hours=1)
    parts.append(f'<text x="100%" y="{bottom + 14}" text-anchor="end" class="ink">now</text>')
    for row, each in enumerate(shown):
        parts += _bar(each, _TOP + _ROW * row, start, now)
    return Drawing("".join(parts) + "</svg>")


def _bar(span: Span, y: int, start: datetime, now: datetime) -> list[str]:
    begin, end = _percent(span.begin, start, now), _percent(span.end, start, now)
    left = begin > 50
    at, anchor, shift = (begin, "end", -8) if left else (end, "start", 8)
    return [
        f'<line x1="0" x2="100%" y1="{y + 11}" y2="{y + 11}" class="grid"/>',
        f'<rect x="{begin:.2f}%" width="{max(0.5, end - begin):.2f}%" y="{y + 4}" height="14" rx="2" '
        f'class="bar-{span.kind}"/>',
        f'<text x="{at:.2f}%" dx="{shift}" y="{y + 15}" text-anchor="{anchor}" class="on-{span.kind}">'
        f"{in_markup(span.text)}</text>",
    ]


def _percent(moment: datetime, start: datetime, now: datetime) -> float:
    return 100 * min(1.0, max(0.0, (moment - start) / (now - start)))
