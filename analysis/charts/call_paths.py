"""Who calls a function, drawn as a tree of shares: width is the share of its calls, colour the behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specmine.model.text import count, in_markup, share, shortened

from .drawing import Drawing

_ROW = 26
_MOST_ROWS, _NARROWEST = 14, 0.004
_COLOURS = 4


@dataclass(slots=True)
class _Node:
    name: str
    calls: float = 0.0
    behaviours: set[int | None] = field(default_factory=set)
    children: dict[str, _Node] = field(default_factory=dict)


def call_paths(entry: Mapping[str, Any]) -> Drawing:
    """Return the figure; '' where no complete path is known. Frames that all calls share stand on one line."""
    root = _Node("")
    for path in entry.get("paths") or ():
        if path.get("complete", True):
            _add(root, path)
    if not root.calls:
        return Drawing("")
    prefix = []
    node = root
    while len(node.children) == 1 and next(iter(node.children.values())).children:
        (node,) = node.children.values()
        prefix.append(node.name)
    parts: list[str] = []
    depth = max(_draw(each, parts, left, 1 if prefix else 0, root.calls) for each, left in _placed(node))
    if prefix:
        parts.insert(
            0, _frame(" → ".join(shortened(each, 30) for each in prefix[-6:]), 0.0, 1.0, 0, "trough", root.calls)
        )
    title = f"Call paths to {entry.get('function')}; the width is the share of its {count(root.calls)} calls"
    return Drawing(
        f'<svg height="{_ROW * depth}" role="img" aria-labelledby="paths"><title id="paths">{in_markup(title)}</title>'
        + "".join(parts)
        + "</svg>"
    )


def _add(root: _Node, path: Mapping[str, Any]) -> None:
    calls = float(path.get("calls") or 0)
    node = root
    node.calls += calls
    for frame in path.get("frames") or ():
        node = node.children.setdefault(str(frame), _Node(str(frame)))
        node.calls += calls
        node.behaviours.add(path.get("behaviour"))


def _placed(node: _Node) -> list[tuple[_Node, float]]:
    placed, left = [], 0.0
    for each in sorted(node.children.values(), key=lambda one: (-one.calls, one.name)):
        placed.append((each, left))
        left += each.calls
    return placed


def _draw(node: _Node, parts: list[str], left: float, row: int, total: float) -> int:
    """Draw a node and what is below it; return how many rows are used."""
    width = node.calls / total
    if width < _NARROWEST or row >= _MOST_ROWS:
        return row
    only = next(iter(node.behaviours)) if len(node.behaviours) == 1 else None
    colour = "trough" if only is None else f"behaviour-{int(only) % _COLOURS}"
    parts.append(_frame(node.name, left / total, width, row, colour, node.calls))
    deepest = row + 1
    for child, offset in _placed(node):
        deepest = max(deepest, _draw(child, parts, left + offset, row + 1, total))
    return deepest


def _frame(name: str, left: float, width: float, row: int, colour: str, calls: float) -> str:
    text = in_markup(shortened(name, 40 if width > 0.3 else 20)) if width > 0.08 else ""
    note = f'<tspan class="w"> {share(width)}</tspan>' if 0.2 < width < 0.999 else ""
    y = _ROW * row
    return (
        f'<svg x="{100 * left:.2f}%" y="{y}" width="{100 * width:.2f}%" height="{_ROW - 2}" class="frame">'
        f"<title>{in_markup(name)}: {count(calls)} calls</title>"
        f'<rect width="100%" height="{_ROW - 2}" rx="2" class="{colour}"/>'
        f'<text x="7" y="16" class="{"ink" if colour == "trough" else "paper"}">{text}{note}</text></svg>'
    )
