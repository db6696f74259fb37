"""How durations went: a strip for each quantile, its normal range as a field, what changed when as lines across all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from specmine.analysis.wording.typesetting import moment_of, typeset
from specmine.model.text import in_markup, three_digits

from .axis import LogAxis, axis_over
from .drawing import Drawing

_TOP, _HEAD, _BODY, _APART, _FOOT = 22, 20, 62, 12, 20
_MOST_TICKS = 3
_LABEL = 11
"""Height of the text at a tick."""
_BREAK = 5
"""A line ends where so many parts of the time hold no window."""
_PARTS = 120
_STEPS_MIN = (1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 10080)
_MOST_TIMES = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The windows of one part of the time."""

    at: datetime
    seconds: Mapping[str, float]
    """By the name of the quantile; those are left out for which there were too few calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One quantile."""

    key: str
    name: str
    normal: tuple[float, float] | None = None
    """Its normal range, s."""
    normal_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A process of which build was first seen when."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A violation: the time that it lasted."""

    begin: datetime
    end: datetime
    kind: str
    """Class of its field: slow, fast or past."""


def trend(
    points: Sequence[Point],
    strips: Sequence[Strip],
    starts: Sequence[Start],
    changes: Sequence[Change],
    span: tuple[datetime, datetime],
    title: str,
) -> Drawing:
    """Return the figure, '' without points.

    Parameters
    ----------
    points : sequence
        In the order of time.
    strips : sequence
        From top to bottom; one without a value is left out.
    starts, changes : sequence
    span : tuple of datetime
        From when to when, UTC.
    title : str
        What the picture says, for those who do not see it.
    """
    strips = [each for each in strips if any(each.key in point.seconds for point in points)]
    if not strips:
        return Drawing("")
    begin, end = span
    bottom = _TOP + len(strips) * (_HEAD + _BODY + _APART) - _APART
    parts = [f'<svg height="{bottom + _FOOT}" role="img" aria-labelledby="trend">']
    parts.append(f'<title id="trend">{in_markup(title)}</title>')
    for change in changes:
        left, right = _percent(change.begin, span), _percent(change.end, span)
        parts.append(
            f'<rect x="{left:.2f}%" width="{max(0.3, right - left):.2f}%" y="{_TOP}" height="{bottom - _TOP}" '
            f'class="wash-{change.kind}"/>'
        )
    for at in _times(begin, end):
        place = _percent(at, span)
        parts.append(f'<line x1="{place:.2f}%" x2="{place:.2f}%" y1="{_TOP}" y2="{bottom}" class="grid"/>')
        if 3 < place < 86:
            parts.append(
                f'<text x="{place:.2f}%" y="{bottom + 15}" text-anchor="middle">{_clock(at, end - begin)}</text>'
            )
    parts.append(f'<text x="100%" y="{bottom + 15}" text-anchor="end" class="ink">{moment_of(end)}</text>')
    for number, strip in enumerate(strips):
        parts += _strip(points, strip, _TOP + number * (_HEAD + _BODY + _APART), span)
    parts += _started(starts, bottom, span)
    return Drawing("".join(parts) + "</svg>")


def spark(
    values: Sequence[tuple[float, float]], axis: LogAxis, band: tuple[float, float] | None, kind: str = ""
) -> Drawing:
    """Return a small trend for a row of a table; hidden from screen readers.

    Parameters
    ----------
    values : sequence
        Place in time in [0, 1], s.
    axis : LogAxis
    band : (float, float), optional
        The normal range, s.
    kind : str
        Its colour: slow, fast, or '' for what is as usual.
    """
    if not values:
        return Drawing("")
    places = [f"{1000 * at:.0f} {_y(axis, seconds):.4g}" for at, seconds in values]
    drawn = f"M{'L'.join(places)}"
    colour = f" trend-{kind}" if kind else ""
    return Drawing(
        '<svg height="24" aria-hidden="true"><svg y="3" width="100%" height="18" viewBox="0 0 1000 100" '
        f'preserveAspectRatio="none">{_band(axis, band)}<path class="trend{colour}" d="{drawn}h1"/>'
        "</svg></svg>"
    )


def _strip(points: Sequence[Point], strip: Strip, top: int, span: tuple[datetime, datetime]) -> list[str]:
    known = [(_percent(each.at, span), each.seconds[strip.key]) for each in points if strip.key in each.seconds]
    axis = axis_over([*(seconds for _, seconds in known), *(strip.normal or ())], least_ratio=1.6)
    normal = f'<tspan class="w"> normal {strip.normal_text}</tspan>' if strip.normal_text else ""
    body = top + _HEAD
    parts = [
        f'<text x="0" y="{top + 13}"><tspan class="ink">{strip.name}</tspan>{typeset(normal)}</text>'
        f'<text x="100%" y="{top + 13}" text-anchor="end" class="ink">{typeset(three_digits(known[-1][1]))}</text>'
    ]
    ticks, labels = axis.ticks(), list[str]()
    ticks = ticks[:: max(1, -(-len(ticks) // _MOST_TICKS))]
    for seconds, text in ticks:
        y = body + _BODY * _y(axis, seconds) / 100
        parts.append(f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        if y - body < _LABEL:  # it would meet the words above
            continue
        labels.append(f'<text x="0" y="{y - 2:.1f}" class="tick halo">{text}</text>')
    parts.append(
        f'<svg x="0" y="{body}" width="100%" height="{_BODY}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
        f'{_band(axis, strip.normal)}<path class="trend" d="{_path(known, axis)}"/>{_dots(known, axis)}</svg>'
    )
    return parts + labels


def _path(known: Sequence[tuple[float, float]], axis: LogAxis) -> str:
    """Return a line that ends where nothing was seen for long; a point alone is a dot."""
    parts, before = [], -1e9
    for at, seconds in known:
        apart = at - before > 100 * _BREAK / _PARTS
        parts.append(f"{'M' if apart else 'L'}{10 * at:.4g} {_y(axis, seconds):.4g}{'h1' if apart else ''}")
        before = at
    return "".join(parts)


def _dots(known: Sequence[tuple[float, float]], axis: LogAxis) -> str:
    """Return the points that no line reaches, as dots that can be seen."""
    wide = 100 * _BREAK / _PARTS
    places = [-1e9, *(at for at, _ in known), 1e9]
    alone = [
        f"M{10 * at:.4g} {_y(axis, seconds):.4g}h0"
        for number, (at, seconds) in enumerate(known, 1)
        if at - places[number - 1] > wide and places[number + 1] - at > wide
    ]
    return f'<path class="trend dot" d="{"".join(alone)}"/>' if alone else ""


def _band(axis: LogAxis, band: tuple[float, float] | None) -> str:
    if band is None:
        return ""
    high, low = _y(axis, band[1]), _y(axis, band[0])
    return f'<rect class="band" width="1000" y="{high:.4g}" height="{max(1.0, low - high):.4g}"/>'


def _y(axis: LogAxis, seconds: float) -> float:
    """Return the height of a duration in a box of 100, the longest on top."""
    return 100 * (1 - axis.place(seconds))


def _started(starts: Sequence[Start], bottom: int, span: tuple[datetime, datetime]) -> list[str]:
    """Return a line for each start; of those whose words would meet, the newest has them."""
    parts, free = [], 101.0
    for each in sorted(starts, key=lambda start: start.at, reverse=True):
        place = _percent(each.at, span)
        parts.append(f'<line x1="{place:.2f}%" x2="{place:.2f}%" y1="{_TOP - 4}" y2="{bottom}" class="cut"/>')
        room = 0.75 * len(each.text)  # percent of a wide page; narrow ones show the words of the newest alone
        if place + (room if place < 50 else 0) <= free and (place >= 50 or free > 100):
            anchor = "end" if place >= 50 else "start"
            narrow = "" if free > 100 else ' class="w"'
            parts.append(f'<text x="{place:.2f}%" y="12" text-anchor="{anchor}"{narrow}>{in_markup(each.text)}</text>')
            free = place - (room if place >= 50 else 0)
    return parts


def _times(begin: datetime, end: datetime) -> list[datetime]:
    """Return round times within a span, at most seven."""
    length = (end - begin) / timedelta(minutes=1)
    step = next((each for each in _STEPS_MIN if length / each <= _MOST_TIMES), _STEPS_MIN[-1])
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    first = -(-((begin - epoch) // timedelta(minutes=1)) // step) * step
    found = [epoch + timedelta(minutes=first + step * number) for number in range(_MOST_TIMES + 1)]
    return [each for each in found if begin < each < end]


def _clock(at: datetime, length: timedelta) -> str:
    return f"{at.day} {at.strftime('%b')}" if length > timedelta(days=2) else at.strftime("%H:%M")


def _percent(moment: datetime, span: tuple[datetime, datetime]) -> float:
    return 100 * min(1.0, max(0.0, (moment - span[0]) / (span[1] - span[0])))
