"""What each run of a program had, a dot a run, a row a build: whether builds differ by more than their runs do."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from specmine.analysis.wording.typesetting import typeset
from specmine.model.text import in_markup, plural, shortened, three_digits

from .axis import axis_over
from .drawing import Drawing

_ROW, _TOP, _FOOT = 46, 4, 18
_DOTS = 200
"""Of more runs so many are drawn, evenly chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRuns:
    """The runs of one build."""

    name: str
    seconds: Sequence[float]
    """A summary of each run, s."""
    newest: bool = False
    """Drawn in colour."""


def runs(builds: Sequence[BuildRuns], title: str) -> Drawing:
    """Return the figure, the first build on top; '' without a duration above 0. Strokes are geometric means."""
    shown = [each for each in builds if any(value > 0 for value in each.seconds)]
    if not shown:
        return Drawing()
    axis = axis_over((value for each in shown for value in each.seconds if value > 0), least_ratio=1.6)
    bottom = _TOP + _ROW * len(shown)
    name = "r" + hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:8]
    parts = [
        f'<svg height="{bottom + _FOOT}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{in_markup(title)}</title>'
    ]
    for seconds, text in axis.ticks(6):
        at, place = axis.percent(seconds), axis.place(seconds)
        anchor = "start" if place < 0.05 else "end" if place > 0.95 else "middle"
        parts.append(f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}" class="grid"/>')
        parts.append(f'<text x="{at}" y="{bottom + 14}" text-anchor="{anchor}">{text}</text>')
    for row, each in enumerate(shown):
        values = [value for value in each.seconds if value > 0]
        middle = math.exp(sum(map(math.log, values)) / len(values))
        y = _TOP + _ROW * row
        dots = values[:: max(1, math.ceil(len(values) / _DOTS))]
        parts += [
            f'<circle cx="{axis.percent(value)}" cy="{y + 30}" r="3.5" class="{"run-new" if each.newest else "run"}"/>'
            for value in dots
        ]
        at = axis.percent(middle)
        parts.append(f'<line x1="{at}" x2="{at}" y1="{y + 20}" y2="{y + 40}" class="mark"/>')
        said = f"{shortened(each.name, 30)}, {plural(len(values), 'run')}"
        parts.append(f'<text x="0" y="{y + 13}" class="ink halo">{in_markup(said)}</text>')
        parts.append(
            f'<text x="100%" y="{y + 13}" text-anchor="end" class="ink halo">{typeset(three_digits(middle))}</text>'
        )
    return Drawing("".join(parts) + "</svg>")
