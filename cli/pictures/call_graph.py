"""The call paths of a function as one graph, laid out in layers from the callers down to the function.

After Sugiyama, Tagawa and Toda (1981): layers by the longest way, edges over several layers through bends, the
order within layers by barycentres. Pure: texts and numbers in, coordinates out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from specmine.model.text import count, escaped

Edge = tuple[str, str]
MOST_FUNCTIONS, MOST_EDGES = 26, 40
LONGEST_NAME = 34
_SWEEPS = 12
_GAP, _NARROW = 3.0, 1.0
"""Letters between boxes, and next to bends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One function, or several with nothing between them, as a box."""

    lines: tuple[str, ...]
    x: float
    """Middle, in letters."""
    layer: int
    width: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A call edge, or several that go the same way."""

    points: tuple[tuple[float, int], ...]
    """x and layer of both ends and of the bends between them."""
    calls: int
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A laid out graph; x in letters from 0, layers from 0 downwards."""

    boxes: tuple[Box, ...] = ()
    lines: tuple[Line, ...] = ()
    width: float = 0.0
    layers: int = 0
    shown: int = 0
    """Call paths that are drawn."""
    paths: int = 0
    """Complete call paths there are."""


def drawing(paths: Sequence[Mapping[str, Any]], deciding: Collection[Edge]) -> Drawing:
    """Lay out the complete call paths of a function.

    Parameters
    ----------
    paths : sequence
        ``frames``, outermost first, and ``calls``, as in a specification.
    deciding : collection of (caller, callee)
        Edges that stand in an expression; chains are not drawn as one box over them.
    """
    complete = [each for each in paths if each.get("complete", True) and each.get("frames")]
    chosen = _chosen(complete, deciding)
    calls: dict[Edge, int] = {}
    inside: dict[str, int] = {}
    for path in chosen:
        names = [str(frame) for frame in path["frames"]]
        number = int(path.get("calls") or 0)
        for name in set(names):
            inside[name] = inside.get(name, 0) + number
        for edge in set(pairwise(names)):
            calls[edge] = calls.get(edge, 0) + number
    if not inside:
        return Drawing(paths=len(complete))
    groups = _chains(inside, calls, deciding)
    graph = _Graph(inside, calls, deciding, groups)
    return graph.placed(shown=len(chosen), paths=len(complete))


def _chosen(paths: Sequence[Mapping[str, Any]], deciding: Collection[Edge]) -> list[Mapping[str, Any]]:
    """Return the paths with most calls, as far as their functions fit; one with each deciding edge comes first."""
    ordered = sorted(paths, key=lambda each: -int(each.get("calls") or 0))
    first = [
        next((at for at, each in enumerate(ordered) if edge in set(pairwise(map(str, each["frames"])))), None)
        for edge in sorted(deciding)
    ]
    order = dict.fromkeys([*(at for at in first if at is not None), *range(len(ordered))])
    names: set[str] = set()
    edges: set[Edge] = set()
    chosen: list[Mapping[str, Any]] = []
    for at in order:
        frames = [str(frame) for frame in ordered[at]["frames"]]
        more, ways = names | set(frames), edges | set(pairwise(frames))
        if not chosen or (len(more) <= MOST_FUNCTIONS and len(ways) <= MOST_EDGES):
            names, edges = more, ways
            chosen.append(ordered[at])
    return chosen


def _chains(inside: Iterable[str], calls: Mapping[Edge, int], deciding: Collection[Edge]) -> dict[str, str]:
    """Return for each function the first of its chain: caller and callee that know only each other are one box."""
    callees: dict[str, set[str]] = {}
    callers: dict[str, set[str]] = {}
    for caller, callee in calls:
        callees.setdefault(caller, set()).add(callee)
        callers.setdefault(callee, set()).add(caller)
    above = {
        callee: caller
        for caller, callee in calls
        if len(callees[caller]) == len(callers[callee]) == 1 and (caller, callee) not in deciding and caller != callee
    }
    first = {}
    for name in inside:
        top, seen = name, {name}
        while top in above and above[top] not in seen:
            top = above[top]
            seen.add(top)
        first[name] = top
    return first


@dataclass(slots=True)
class _Node:
    lines: list[str]
    calls: int
    layer: int = 0
    x: float = 0.0
    up: list[str] = field(default_factory=list)
    down: list[str] = field(default_factory=list)
    bend: bool = False

    @property
    def width(self) -> float:
        return 1.0 if self.bend else max(map(len, self.lines)) + 2.0


class _Graph:
    def __init__(
        self,
        inside: Mapping[str, int],
        calls: Mapping[Edge, int],
        deciding: Collection[Edge],
        groups: Mapping[str, str],
    ) -> None:
        self.nodes: dict[str, _Node] = {}
        within = {callee: caller for caller, callee in calls if groups[caller] == groups[callee] and caller != callee}
        below = {caller: callee for callee, caller in within.items()}
        for top in dict.fromkeys(groups.values()):
            chain = [top]
            while chain[-1] in below and below[chain[-1]] not in chain:
                chain.append(below[chain[-1]])
            lines = [_short(name) for name in chain]
            if len(lines) > 6:  # a deep chain says most at its ends
                lines = [*lines[:2], f"... {len(lines) - 5} more ...", *lines[-3:]]
            self.nodes[top] = _Node([*lines, count(inside[chain[-1]])], inside[chain[-1]])
        self.edges: dict[Edge, tuple[int, bool]] = {}
        for (caller, callee), number in calls.items():
            edge = (groups[caller], groups[callee])
            if edge[0] != edge[1]:
                before = self.edges.get(edge, (0, False))
                self.edges[edge] = (before[0] + number, before[1] or (caller, callee) in deciding)

    def placed(self, *, shown: int, paths: int) -> Drawing:
        """Return the drawing."""
        self._layers()
        ways = self._bends()
        rows = self._ordered()
        self._spread(rows)
        left = min(node.x - node.width / 2 for node in self.nodes.values())
        boxes = tuple(
            Box(lines=tuple(each.lines), x=each.x - left, layer=each.layer, width=each.width, calls=each.calls)
            for each in self.nodes.values()
            if not each.bend
        )
        lines = tuple(
            Line(
                points=tuple((self.nodes[name].x - left, self.nodes[name].layer) for name in way),
                calls=self.edges[edge][0],
                decides=self.edges[edge][1],
            )
            for edge, way in ways.items()
        )
        width = max(node.x + node.width / 2 for node in self.nodes.values()) - left
        return Drawing(boxes=boxes, lines=lines, width=width, layers=len(rows), shown=shown, paths=paths)

    def _layers(self) -> None:
        """Put every function below its callers; edges that close a circle count the other way round."""
        order: dict[Edge, None] = {}
        state: dict[str, int] = {}
        called = {callee for _, callee in self.edges}
        callees: dict[str, list[str]] = {}
        for caller, callee in sorted(self.edges):
            callees.setdefault(caller, []).append(callee)

        def visit(name: str) -> None:
            state[name] = 1
            for callee in callees.get(name, []):
                if state.get(callee) == 1:
                    continue  # back up the way: drawn, but it moves nothing
                order[name, callee] = None
                if callee not in state:
                    visit(callee)
            state[name] = 2

        for name in sorted(self.nodes, key=lambda each: (each in called, each)):
            if name not in state:
                visit(name)
        for _ in self.nodes:
            for caller, callee in order:
                self.nodes[callee].layer = max(self.nodes[callee].layer, self.nodes[caller].layer + 1)

    def _bends(self) -> dict[Edge, list[str]]:
        """Let edges over several layers go through a bend on each; return the way of each edge."""
        ways = {}
        for caller, callee in sorted(self.edges):
            start, end = self.nodes[caller].layer, self.nodes[callee].layer
            step = 1 if end > start else -1
            names = [f"\0{caller}\0{callee}\0{layer}" for layer in range(start + step, end, step)]
            for name, layer in zip(names, range(start + step, end, step), strict=True):
                self.nodes[name] = _Node([""], 0, layer=layer, bend=True)
            way = [caller, *names, callee]
            for a, b in pairwise(way if step > 0 else way[::-1]):
                self.nodes[a].down.append(b)
                self.nodes[b].up.append(a)
            ways[caller, callee] = way
        return ways

    def _ordered(self) -> list[list[str]]:
        """Return the nodes of each layer in the order that leaves few crossings."""
        rows: list[list[str]] = [[] for _ in range(max(node.layer for node in self.nodes.values()) + 1)]
        for name in sorted(self.nodes, key=lambda each: (-self.nodes[each].calls, each)):
            rows[self.nodes[name].layer].append(name)
        place = {name: float(at) for row in rows for at, name in enumerate(row)}
        for sweep in range(_SWEEPS):
            for row in rows if sweep % 2 == 0 else reversed(rows):

                def barycentre(name: str, down: bool = sweep % 2 == 1) -> float:
                    near = self.nodes[name].down if down else self.nodes[name].up
                    return sum(place[each] for each in near) / len(near) if near else place[name]

                row.sort(key=barycentre)
                place.update({name: float(at) for at, name in enumerate(row)})
        return rows

    def _spread(self, rows: Sequence[Sequence[str]]) -> None:
        """Give each node a place near its neighbours' without touching the next."""
        for row in rows:
            x = 0.0
            for name in row:
                x += self.nodes[name].width / 2
                self.nodes[name].x = x
                x += self.nodes[name].width / 2 + (_NARROW if self.nodes[name].bend else _GAP)
            for name in row:
                self.nodes[name].x -= x / 2
        for sweep in range(_SWEEPS):
            for row in rows if sweep % 2 else reversed(rows):
                wanted = []
                for name in row:
                    near = [*self.nodes[name].up, *self.nodes[name].down]
                    own = self.nodes[name].x
                    wanted.append(sum(self.nodes[each].x for each in near) / len(near) if near else own)
                self._settle(row, wanted)

    def _settle(self, row: Sequence[str], wanted: Sequence[float]) -> None:
        nodes = [self.nodes[name] for name in row]
        apart = [
            (a.width + b.width) / 2 + (_NARROW if a.bend or b.bend else _GAP)  # between the middles of neighbours
            for a, b in pairwise(nodes)
        ]
        right, left = list(wanted), list(wanted)
        for at in range(1, len(row)):
            right[at] = max(right[at], right[at - 1] + apart[at - 1])
        for at in range(len(row) - 2, -1, -1):
            left[at] = min(left[at], left[at + 1] - apart[at])
        for name, a, b in zip(row, left, right, strict=True):
            self.nodes[name].x = (a + b) / 2


def _short(name: str) -> str:
    text = escaped(name)
    half = LONGEST_NAME // 2
    return text if len(text) <= LONGEST_NAME else f"{text[: half - 1]}...{text[-half + 2 :]}"
