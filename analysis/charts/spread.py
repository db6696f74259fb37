"""The tree of what the spread of a function consists of: a bar a part, as wide as its share, indented by level."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.analysis.wording.spread_tree import Branch, signed
from specmine.model.text import in_markup, shortened

from .drawing import Drawing

ROW, STEP = 22, 3.0
"""Height of a row in px, and what each level is indented by, in percent of the width."""
_NAMES, _BARS = 52.0, 34.0
"""Percent of the width for names, and for a bar of the whole spread."""


def spread_tree_chart(function: str, tree: Sequence[Branch]) -> Drawing:
    """Return the figure; '' for no parts. A negative share, of a part that is shorter in long calls, has no filling."""
    if not tree:
        return Drawing("")
    first = [branch for branch in tree if branch.depth == 1]
    told = ", ".join(f"{branch.row.name} {signed(branch.row.variance)}" for branch in first)
    title = f"What the spread of {function} consists of: {told}"
    rows = "".join(_row(at, branch) for at, branch in enumerate(tree))
    return Drawing(
        f'<svg height="{ROW * len(tree)}" role="img" aria-label="{in_markup(title)}"><title>{in_markup(title)}</title>'
        f"{rows}</svg>"
    )


def _row(at: int, branch: Branch) -> str:
    left, top = STEP * (branch.depth - 1), ROW * at
    width = _BARS * min(1.0, abs(branch.row.variance))
    kind = "band" if branch.row.variance > 0 and branch.row.key is not None else "trough"
    return (
        f'<text x="{left:.1f}%" y="{top + 15}" class="ink">{in_markup(shortened(branch.row.name, 44))}</text>'
        f'<rect x="{_NAMES:.1f}%" y="{top + 3}" width="{width:.2f}%" height="{ROW - 6}" rx="2" class="{kind}"/>'
        f'<text x="100%" y="{top + 15}" text-anchor="end">{signed(branch.row.variance)}'
        f'<tspan class="w"> of {in_markup(branch.row.mean)}</tspan></text>'
    )
