"""How long the calls of each behaviour take: a strip each over one axis, in the behaviour's colour."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from specmine.analysis.histogram_bins import Bin
from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import in_markup, share, shortened

from .axis import axis_over
from .drawing import Drawing
from .marks import Marks, band, border_line, grid, quantile_marks
from .steps import shares_of, step_path

STEPS, COLOURS = 72, 4
MOST = 8
"""Behaviours drawn, those with most calls."""
_NAME, _HEIGHT, _BETWEEN, _FOOT = 18, 72, 10, 18
_LONGEST = 44
"""Letters of a name: a line on a narrow page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The calls of one behaviour."""

    name: str
    """When it applies: ``if db_get->load``."""
    share: float | None
    """Of the calls of the function; None where it is not known."""
    bins: Sequence[Bin]
    marks: Marks
    before: Sequence[Bin] = ()
    """Its calls of the normal time, or in the build before."""


def behaviour_strips(strips: Sequence[Strip], title: str, *, ticks: int = 9) -> Drawing:
    """Return the figure; '' for fewer than two behaviours with calls. Each side has the height of its own shares."""
    shown = [(number, each) for number, each in enumerate(strips[:MOST]) if each.bins]
    if len(shown) < 2:
        return Drawing("")
    ends = [end for _, each in shown for low, high, _ in (*each.bins, *each.before) for end in (low, high)]
    axis = axis_over([*ends, *(end for _, each in shown for end in each.marks.normal or ())])
    bottom = len(shown) * (_NAME + _HEIGHT + _BETWEEN)
    name = "b" + hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:8]
    parts = [
        f'<svg height="{bottom + _FOOT}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{in_markup(title)}</title>'
    ]
    parts += [part for row, (_, each) in enumerate(shown) for part in band(axis, each.marks, *_field(row))]
    parts += grid(axis, _NAME, bottom, ticks)
    for row, (number, each) in enumerate(shown):
        top, base = _field(row)
        counted, usual = (shares_of(bins, axis, STEPS) for bins in (each.bins, each.before))
        most = max(*counted, *usual)
        parts.append(
            f'<svg x="0" y="{top}" width="100%" height="{_HEIGHT}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
            f'<path class="usual" d="{step_path(usual, most=most)}"/>'
            f'<path class="steps steps-{number % COLOURS}" d="{step_path(counted, most=most)}"/></svg>'
        )
        parts.append(f'<line x1="0" x2="100%" y1="{base}" y2="{base}" class="base"/>')
        parts += [part for border in each.marks.borders for part in border_line(axis, border, top, base)]
        parts += quantile_marks(axis, each.marks, top, base)
        part = f": {share(each.share)} of the calls" if each.share is not None else ""
        parts.append(
            f'<rect x="0" y="{top - 13}" width="10" height="10" rx="2" class="behaviour-{number % COLOURS}"/>'
            f'<text x="16" y="{top - 4}" class="ink halo">{in_markup(shortened(each.name, _LONGEST))}'
            f"{typeset(part)}</text>"
        )
    return Drawing("".join(parts) + "</svg>")


def _field(row: int) -> tuple[int, int]:
    """Return where the steps of a strip begin and end."""
    top = row * (_NAME + _HEIGHT + _BETWEEN) + _NAME
    return top, top + _HEIGHT
