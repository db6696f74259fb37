"""What a call consists of, drawn as one bar a class: a part's width is its share of the time."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.analysis.wording.inside import OWN, Row
from specmine.model.text import in_markup, share, shortened

from .drawing import Drawing

_NARROWEST, _LABELLED = 0.004, 0.08


def inside_bar(name: str, rows: Sequence[Row]) -> Drawing:
    """Return the figure of one class; '' for no parts. Own code has no filling."""
    if not rows:
        return Drawing("")
    parts, left = [], 0.0
    for row in rows:
        if row.share >= _NARROWEST:
            parts.append(_part(row, left))
        left += row.share
    title = f"Inside a call that takes {name}: {', '.join(f'{row.name} {share(row.share)}' for row in rows)}"
    return Drawing(
        f'<svg height="28" role="img" aria-label="{in_markup(title)}"><title>{in_markup(title)}</title>'
        + "".join(parts)
        + "</svg>"
    )


def _part(row: Row, left: float) -> str:
    text = in_markup(shortened(row.name, 40 if row.share > 0.3 else 20)) if row.share > _LABELLED else ""
    note = f'<tspan class="w"> {share(row.share)}</tspan>' if row.share > 0.2 else ""
    return (
        f'<svg x="{100 * left:.2f}%" width="{100 * row.share:.2f}%" height="28" class="frame">'
        f'<rect width="100%" height="28" rx="2" class="{"trough" if row.name == OWN else "band"}"/>'
        f'<text x="7" y="18" class="ink">{text}{note}</text></svg>'
    )
