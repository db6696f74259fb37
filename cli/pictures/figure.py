"""One function as a picture: its durations with borders and classes, its behaviours, its call graph."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Way

from specmine import __version__
from specmine.analysis.documents import Entry, title
from specmine.analysis.wording.assertions import class_names, condition
from specmine.analysis.wording.levels import present, sentence, uncertainty_of
from specmine.analysis.wording.spread_tree import Branch, branches, signed
from specmine.analysis.wording.states import open_violations, words, worst_change
from specmine.cli.text.call_tree import deciding_edges
from specmine.model.text import count, escaped, plural, share, shortened

from .call_graph import Drawing, drawing
from .durations import draw_durations
from .palette import COLOURS, DARK, DECIDES, INK, PLAIN, SOFT

NARROW, WIDE = 9.0, 15.0
"""Inches; only a wide graph makes the picture wider than narrow."""
_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names hold dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "specmine",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.edgecolor": PLAIN,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
_LETTER, _LINE = 0.078, 0.165
"""Inches of a letter and of a line of text in a box."""
_LEFT = 0.75
"""Inches left of the durations."""
_TOP, _HEADING, _AXIS, _BETWEEN, _FOOT = 0.6, 0.42, 0.3, 0.45, 0.3
"""Inches above all parts, above each, below the durations, between layers of the graph, and below all."""


def picture(
    entry: Entry,
    form: str,
    *,
    place: str = "",
    known: Mapping[str, Any] = MappingProxyType({}),
    entries: Sequence[Entry] = (),
) -> bytes:
    """Return the picture of a function, equal bytes for equal contents.

    Parameters
    ----------
    entry : mapping
        A function of a specification; without ``histogram`` there is no distribution to draw, without ``paths``
        no graph.
    form : str
        svg, png or pdf.
    place : str
        Host and date.
    known : mapping
        ``specmine.trend/1``: the normal time is drawn behind now.
    entries : sequence
        All functions: what the spread of its callees consists of.
    """
    graph = drawing(entry.get("paths") or [], deciding_edges(entry.get("behaviours") or []))
    layers = _layer_heights(graph)
    behaviours = entry.get("behaviours") or []
    parts: list[tuple[float, Callable[[Axes], None]]] = [(2.5 + _AXIS, lambda axes: draw_durations(axes, entry, known))]
    if len(entry.get("classes") or []) > 1 and behaviours:
        parts.append((0.44 * len(behaviours), lambda axes: _shares(axes, entry)))
    tree = branches(entry, entries)
    if tree:
        parts.append((0.24 * len(tree), lambda axes: _spread(axes, tree)))
    if graph.boxes:
        parts.append((sum(layers) + _BETWEEN * (len(layers) - 1) + 0.1, lambda axes: _graph(axes, graph, layers)))
    # text of a graph that is too wide shrinks to four fifths before the picture grows, and further when it is widest
    broad = min(WIDE, max(NARROW, 0.8 * graph.width * _LETTER / 0.94))
    tall = _TOP + sum(height + _HEADING for height, _ in parts) + _FOOT
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(broad, tall))
        FigureCanvasAgg(figure)
        figure.text(0.03, 1 - 0.26 / tall, headline(entry), fontsize=12, fontweight="bold", va="center")
        figure.text(0.03, 1 - 0.48 / tall, _facts(entry, place), va="center", color=SOFT)
        figure.text(0.97, 0.13 / tall, f"specmine {__version__}", va="center", ha="right", fontsize=8, color=SOFT)
        top = tall - _TOP
        for number, (height, draw) in enumerate(parts):
            top -= _HEADING + height
            room = height - (_AXIS if number == 0 else 0.0)
            left = _LEFT / broad if number == 0 else 0.03  # the durations have an axis of calls
            draw(figure.add_axes((left, (top + height - room) / tall, 0.97 - left, room / tall)))
        return _saved(figure, form)


def headline(entry: Entry) -> str:
    """Return what the picture shows, in a sentence: what became slower, else how long calls take."""
    told = sentence(present(entry), uncertainty_of(entry))
    if open_violations(entry):
        changed = worst_change(entry)
        told = f"{changed}; {told}" if told else changed
    name = shortened(escaped(title(entry)), 50)
    return textwrap.shorten(f"{name}: {told}" if told else name, 100, placeholder=" ...")


def _facts(entry: Entry, place: str) -> str:
    """Return what stands below: calls, state, program, build, host and date."""
    build = str(entry.get("build") or str(entry.get("build_id") or "")[:12])
    parts = [plural(int(entry.get("calls") or 0), "call"), words(entry)]
    parts += [f"program {entry['program']}"] if entry.get("program") else []
    parts += [f"build {build}"] if build else []
    parts += [place] if place else []
    return textwrap.shorten(escaped(", ".join(parts)), 130, placeholder=" ...")


def _saved(figure: Figure, form: str) -> bytes:
    data = io.BytesIO()
    dated: Mapping[str, Mapping[str, Any]] = {
        "svg": {"Date": None, "Creator": "specmine"},
        "pdf": {"CreationDate": None, "Creator": "specmine"},
        "png": {"Software": "specmine"},
    }
    figure.savefig(data, format=form, dpi=130, metadata=dict(dated[form]), facecolor="white")
    return data.getvalue()


def _spread(axes: Axes, tree: Sequence[Branch]) -> None:
    """Draw a bar for each part of the spread, indented below the function that it is a part of."""
    axes.set_title("Spread: share of the variance of the durations, down its callees", loc="left", fontsize=10)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(tree) - 0.4, -0.6)
    axes.axis("off")
    for at, branch in enumerate(tree):
        share_of = branch.row.variance
        filled = share_of > 0 and branch.row.key is not None
        axes.barh(at, 0.45 * min(1.0, abs(share_of)), left=0.42, height=0.6,
                  color=COLOURS[0] if filled else "none", edgecolor=COLOURS[0], linewidth=0.8)  # fmt: skip
        name = textwrap.shorten(branch.row.name, 44, placeholder=" ...")
        axes.text(0.025 * (branch.depth - 1), at, name, ha="left", va="center", fontsize=9)
        axes.text(1, at, f"{signed(share_of)} of {branch.row.mean}", ha="right", va="center", fontsize=8, color=SOFT)


def _shares(axes: Axes, entry: Entry) -> None:
    """Draw a bar for each behaviour, cut by the shares of its classes."""
    behaviours, names = entry.get("behaviours") or [], class_names(entry.get("classes") or [])
    axes.set_title("Behaviours: share of the calls in each class", loc="left", fontsize=10)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(behaviours) - 0.6, -0.6)
    axes.axis("off")
    for at, behaviour in enumerate(behaviours):
        left = 0.0
        for number, part in enumerate(map(float, behaviour.get("shares") or [])):
            strength = 0.9 - 0.7 * number / max(1, len(names) - 1)
            axes.barh(at + 0.18, part, left=left, height=0.36, color=COLOURS[at % len(COLOURS)], alpha=strength,
                      edgecolor="white", linewidth=1)  # fmt: skip
            if part > 0.09:
                text = f"{share(part)}  {names[number] if number < len(names) else ''}"
                axes.text(left + part / 2, at + 0.18, text, ha="center", va="center", fontsize=8,
                          color="white" if strength > 0.5 and at % len(COLOURS) in DARK else INK)  # fmt: skip
            left += part
        text = f"{condition(behaviour.get('expression'))}   ({plural(int(behaviour.get('calls') or 0), 'call')})"
        axes.text(0, at - 0.08, textwrap.shorten(text, 120, placeholder=" ..."), ha="left", va="bottom", fontsize=9)


def _layer_heights(graph: Drawing) -> list[float]:
    """Return the height of each layer in inches."""
    lines = [1] * graph.layers
    for box in graph.boxes:
        lines[box.layer] = max(lines[box.layer], len(box.lines))
    return [_LINE * number + 0.14 for number in lines]


def _graph(axes: Axes, graph: Drawing, layers: Sequence[float]) -> None:
    """Draw boxes and edges in inches; deciding edges are highlighted."""
    few = "" if graph.shown == graph.paths else f"; {graph.shown} of {count(graph.paths)} call paths, the busiest"
    axes.set_title(f"Call paths: numbers are calls, thick orange edges decide{few}", loc="left", fontsize=10)
    axes.axis("off")
    wide = graph.width * _LETTER
    figure = axes.figure
    room = figure.get_figwidth() * 0.94 if isinstance(figure, Figure) else NARROW
    scale = min(1.0, room / max(wide, 0.1))
    middle, at = [], 0.0
    for height in layers:
        middle.append(at + height / 2)
        at += height + _BETWEEN
    axes.set_xlim((wide - room / scale) / 2 - 0.03, (wide + room / scale) / 2 + 0.03)
    axes.set_ylim(at - _BETWEEN + 0.05, -0.05)
    most = max((line.calls for line in graph.lines), default=1) or 1
    half = {(box.x, box.layer): (_LINE * len(box.lines) + 0.08) / 2 for box in graph.boxes}
    for line in sorted(graph.lines, key=lambda each: each.decides):
        points = [(x * _LETTER, middle[layer]) for x, layer in line.points]
        down = line.points[-1][1] > line.points[0][1]
        begin, end = half[line.points[0]] * (1 if down else -1), half[line.points[-1]] * (-1 if down else 1)
        points[0] = (points[0][0], points[0][1] + begin)
        points[-1] = (points[-1][0], points[-1][1] + end)
        width = 1.0 + 2.5 * math.sqrt(line.calls / most) + (1.2 if line.decides else 0.0)
        axes.add_patch(
            PathPatch(_curve(points), facecolor="none", linewidth=width * max(scale, 0.5), capstyle="round",
                      edgecolor=DECIDES if line.decides else PLAIN, zorder=2 if line.decides else 1)
        )  # fmt: skip
        if line.decides:
            small = 8 * max(scale, 0.5)
            x, y = (points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2
            if len(points) > 2:
                x, y = points[len(points) // 2]
            axes.text(x + 0.05, y, count(line.calls), color=DECIDES, fontsize=small, va="center", zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85})  # fmt: skip
    for box in graph.boxes:
        width, height = box.width * _LETTER, _LINE * len(box.lines) + 0.08
        left, top = box.x * _LETTER - width / 2, middle[box.layer] - height / 2
        axes.add_patch(
            FancyBboxPatch((left, top), width, height, boxstyle="round,pad=0,rounding_size=0.06", zorder=3,
                           facecolor="white", edgecolor=INK, linewidth=0.9 * max(scale, 0.5))
        )  # fmt: skip
        for number, text in enumerate(box.lines):
            last = number == len(box.lines) - 1
            axes.text(box.x * _LETTER, top + 0.04 + _LINE * (number + 0.5), text, ha="center", va="center", zorder=4,
                      fontsize=(7.5 if last else 9) * scale, color="#616E7C" if last else INK)  # fmt: skip


def _curve(points: Sequence[tuple[float, float]]) -> Way:
    """Return a line through the points that leaves and enters boxes upright."""
    vertices, codes = [points[0]], [Way.MOVETO]
    for (x, y), (to_x, to_y) in pairwise(points):
        half = (to_y - y) / 2
        vertices += [(x, y + half), (to_x, to_y - half), (to_x, to_y)]
        codes += [Way.CURVE4] * 3
    return Way(vertices, codes)
