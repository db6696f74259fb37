"""Call paths merged into one tree; the edges that decide between behaviours are marked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specmine.model.text import cells, count, escaped, listed, shortened

Edge = tuple[str, str]
_PLAIN, _DECIDING = "->", "=>"
_MODULE = re.compile(r" \([^()]+\)$")
_CERTAIN = 0.9
"""Below this probability by its own calls the behaviour of a path rests on its edges; then it is shown."""


@dataclass(slots=True)
class _Node:
    name: str
    calls: float = 0
    ends: list[str] = field(default_factory=list)
    """Behaviours, or what else there is to say, of the paths that end here."""
    children: dict[str, _Node] = field(default_factory=dict)


def deciding_edges(behaviours: Sequence[Mapping[str, Any]]) -> frozenset[Edge]:
    """Return the edges that stand in any expression, without the modules that only distinguish equal names."""
    return frozenset(
        (_bare(literal.get("caller")), _bare(literal.get("callee")))
        for behaviour in behaviours
        for conjunction in behaviour.get("formula") or []
        for literal in conjunction
    )


def tree(paths: Sequence[Mapping[str, Any]], deciding: frozenset[Edge], columns: int) -> list[str]:
    """Return the tree: outermost frame first, calls at the right, frames without a fork on one line.

    Deciding edges are drawn ``=>``, others ``->``. Where callees decide, calls over any path may have any behaviour.
    """
    lines: list[str] = []
    by_path = any(path.get("behaviour") is not None for path in paths)
    for complete in (True, False):
        root = _Node("")
        for path in paths:
            if bool(path.get("complete", True)) is complete:
                _add(root, path, "no behaviour" if by_path else "any behaviour")
        if not complete and root.children:
            lines.append("  (incomplete: not followed to the thread's start)")
        for node in _ordered(root):
            _Drawing(deciding=deciding, columns=columns, lines=lines).draw(node, "", "  ")
    return lines


def _add(root: _Node, path: Mapping[str, Any], without: str) -> None:
    node = root
    for frame in path.get("frames") or []:
        node = node.children.setdefault(str(frame), _Node(str(frame)))
        node.calls += path.get("calls") or 0
    behaviour, certainty = path.get("behaviour"), path.get("certainty")
    doubt = f" ({100 * certainty:.0f} % sure)" if certainty is not None and certainty < _CERTAIN else ""
    node.ends.append(without if behaviour is None else f"behaviour {behaviour + 1}{doubt}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    deciding: frozenset[Edge]
    columns: int
    lines: list[str]

    def draw(self, node: _Node, caller: str, indent: str) -> None:
        """Write a node and what is below it; frames with one caller and one callee share a line."""
        text, calls = _step(caller, node.name, self.deciding), node.calls
        while len(node.children) == 1 and not node.ends:
            (child,) = node.children.values()
            text += f" {_step(node.name, child.name, self.deciding)}"
            node = child
        note = f"   {count(calls)}" + (f"  {listed(sorted(set(node.ends)))}" if node.ends else "")
        wrapped = textwrap.wrap(
            text,
            self.columns,
            initial_indent=indent,
            subsequent_indent=indent + "     ",
            break_on_hyphens=False,
        )
        if cells(wrapped[-1]) + len(note) > self.columns:
            wrapped.append(indent + "  " + note)
        else:
            wrapped[-1] += note
        self.lines.extend(wrapped)
        # Beyond half the width deeper lines stay in one column: a deep tree must not be a column of letters
        deeper = indent + "  " if len(indent) < self.columns // 2 else indent
        for child in _ordered(node):
            self.draw(child, node.name, deeper)


def _step(caller: str, name: str, deciding: frozenset[Edge]) -> str:
    if not caller:
        return escaped(shortened(name))
    arrow = _DECIDING if (_bare(caller), _bare(name)) in deciding else _PLAIN
    return f"{arrow} {escaped(shortened(name))}"


def _ordered(node: _Node) -> list[_Node]:
    return sorted(node.children.values(), key=lambda each: (-each.calls, each.name))


def _bare(name: Any) -> str:
    return _MODULE.sub("", str(name))
