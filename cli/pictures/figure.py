"""One function as a picture: its durations with borders and classes, its behaviours, its call graph."""

from __future__ import annotations

import io
import math
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Way
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from specmine.analysis.documents import Entry, title
from specmine.analysis.histogram_bins import Bin, histogram_bins
from specmine.analysis.wording.assertions import class_names, condition
from specmine.analysis.wording.levels import WORDS, asserted, normal_range, present
from specmine.analysis.wording.states import words
from specmine.cli.text.call_tree import deciding_edges
from specmine.model.text import count, duration, escaped, plural, share, three_digits

from .call_graph import Drawing, drawing

NARROW, WIDE = 9.0, 15.0
"""Inches; only a wide graph makes the picture wider than narrow."""
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
"""Okabe and Ito (2008): distinguishable with any colour vision."""
_DARK = (0, 2, 5)
"""Those of them that white can be read on."""
_DECIDES, _PLAIN, _BORDER, _INK, _NORMAL = "#D55E00", "#9AA5B1", "#B3261E", "#1F2933", "#C9D1DA"
_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names hold dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "specmine",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.edgecolor": _PLAIN,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}
_LETTER, _LINE = 0.078, 0.165
"""Inches of a letter and of a line of text in a box."""
_LEFT = 0.75
"""Inches left of the durations."""
_FLAT = 0.01
_TOP, _HEADING, _AXIS, _BETWEEN = 0.4, 0.42, 0.3, 0.45
"""Inches above all parts, above each, below the durations, and between layers of the graph."""


def picture(entry: Entry, form: str) -> bytes:
    """Return the picture of a function, equal bytes for equal contents.

    Parameters
    ----------
    entry : mapping
        A function of a specification; without ``histogram`` there is no distribution to draw, without ``paths``
        no graph.
    form : str
        svg, png or pdf.
    """
    graph = drawing(entry.get("paths") or [], deciding_edges(entry.get("behaviours") or []))
    layers = _layer_heights(graph)
    behaviours = entry.get("behaviours") or []
    parts: list[tuple[float, Callable[[Axes], None]]] = [(2.5 + _AXIS, lambda axes: _distribution(axes, entry))]
    if len(entry.get("classes") or []) > 1 and behaviours:
        parts.append((0.44 * len(behaviours), lambda axes: _shares(axes, entry)))
    if graph.boxes:
        parts.append((sum(layers) + _BETWEEN * (len(layers) - 1) + 0.1, lambda axes: _graph(axes, graph, layers)))
    # text of a graph that is too wide shrinks to four fifths before the picture grows, and further when it is widest
    broad = min(WIDE, max(NARROW, 0.8 * graph.width * _LETTER / 0.94))
    tall = _TOP + sum(height + _HEADING for height, _ in parts) + 0.15
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(broad, tall))
        FigureCanvasAgg(figure)
        name = textwrap.shorten(escaped(title(entry)), 90, placeholder=" ...")
        figure.text(0.03, 1 - 0.26 / tall, name, fontsize=12, fontweight="bold", va="center")
        facts = _facts(entry)
        figure.text(0.97, 1 - 0.26 / tall, facts, va="center", ha="right")
        top = tall - _TOP
        for number, (height, draw) in enumerate(parts):
            top -= _HEADING + height
            room = height - (_AXIS if number == 0 else 0.0)
            left = _LEFT / broad if number == 0 else 0.03  # the durations have an axis of calls
            draw(figure.add_axes((left, (top + height - room) / tall, 0.97 - left, room / tall)))
        return _saved(figure, form)


def _facts(entry: Entry) -> str:
    """Return what stands beside the name: calls, state, program and build."""
    build = str(entry.get("build") or str(entry.get("build_id") or "")[:12])
    parts = [plural(int(entry.get("calls") or 0), "call"), words(entry)]
    parts += [f"program {entry['program']}"] if entry.get("program") else []
    parts += [f"build {build}"] if build else []
    return textwrap.shorten(escaped(", ".join(parts)), 90, placeholder=" ...")


def _saved(figure: Figure, form: str) -> bytes:
    data = io.BytesIO()
    dated: Mapping[str, Mapping[str, Any]] = {
        "svg": {"Date": None, "Creator": "specmine"},
        "pdf": {"CreationDate": None, "Creator": "specmine"},
        "png": {"Software": "specmine"},
    }
    figure.savefig(data, format=form, dpi=130, metadata=dict(dated[form]), facecolor="white")
    return data.getvalue()


def _distribution(axes: Axes, entry: Entry) -> None:
    """Draw the histogram over log duration, stacked by behaviour where it is known, with borders and classes."""
    bias = float(entry.get("bias_seconds") or 0.0)
    bins = histogram_bins(entry.get("histogram"), bias)
    borders = [float(each) for each in entry.get("borders_seconds") or []]
    axes.set_title("Durations of calls", loc="left", fontsize=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    flat = False
    if not bins:
        axes.set_yticks([])
        _only_borders(axes, borders)
    else:
        flat = _bars(axes, bins, entry, bias)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    steps = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0) if high < 12 * low else (1.0, 2.0, 5.0) if high < 500 * low else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    bottom, most = axes.get_ylim()
    top = most * (most / bottom) ** 0.2 if flat else most * 1.2
    axes.set_ylim(bottom, top)
    axes.tick_params(axis="y", length=0)
    above = axes.get_xaxis_transform()
    edges = [low, *borders, high]
    classes = entry.get("classes") or []
    for at, (left, right) in enumerate(pairwise(edges)):
        if at % 2:
            axes.axvspan(left, right, color="#F1F4F8", zorder=0, linewidth=0)
        if at < len(classes):
            text = share(float(classes[at].get("share") or 0.0))
            axes.text(math.sqrt(left * right), 0.98, text, ha="center", va="top", fontsize=10, transform=above)
    for border in borders:
        axes.axvline(border, color=_BORDER, linestyle="--", linewidth=1.2)
        label = f" {duration(border)}"
        axes.text(border, 0.87, label, color=_BORDER, ha="left", va="top", fontsize=8, transform=above)
    if bins:
        _marks(axes, entry)
    axes.set_xlim(low, high)


def _marks(axes: Axes, entry: Entry) -> None:
    """Mark median and 99 % quantile, and the range in which the median is normal."""
    above = axes.get_xaxis_transform()
    span = asserted(entry).get("p50") or {}
    if normal_range(asserted(entry), "p50"):
        axes.axvspan(float(span["low"]), float(span["high"]), color=_NORMAL, alpha=0.5, zorder=0.5, linewidth=0)
    for name, height in (("p50", 0.76), ("p99", 0.66)):
        each = present(entry).get(name)
        if each and each["seconds"] > 0:
            axes.axvline(float(each["seconds"]), color=_INK, linewidth=1.2, zorder=3)
            text, seconds = f" {WORDS[name]} {three_digits(float(each['seconds']))} ", float(each["seconds"])
            low, high = axes.get_xlim()
            side = "right" if math.log(seconds / low) > 0.8 * math.log(high / low) else "left"
            axes.text(seconds, height, text, ha=side, va="top", fontsize=8, transform=above, zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.75})  # fmt: skip


def _bars(axes: Axes, bins: Sequence[Bin], entry: Entry, bias: float) -> bool:
    """Draw the share of calls per equal step of log time; what no behaviour owns is grey.

    Returns
    -------
    bool
        Whether the axis of calls is logarithmic: where one step would flatten all others.
    """
    behaviours = entry.get("behaviours") or []
    groups = [histogram_bins(each.get("histogram"), bias) for each in behaviours]
    total = sum(calls for _, _, calls in bins) or 1.0
    bins = [(left, right, calls / total) for left, right, calls in bins]
    groups = [[(left, right, calls / total) for left, right, calls in each] for each in groups]
    low, high = bins[0][0], bins[-1][1]
    visible = _visible(bins)
    step = max(math.log(visible[1] / visible[0]) / 90, math.log(1.033))
    number = max(1, math.ceil(math.log(high / low) / step))
    edges = [low * math.exp(step * at) for at in range(number + 1)]
    stacks = [(COLOURS[at % len(COLOURS)], own) for at, own in enumerate(groups) if own]
    names = [condition(each.get("expression")) for each, own in zip(behaviours, groups, strict=True) if own]
    whole = _regrouped(bins, low, step, number)
    base = [0.0] * number
    for (colour, own), name in zip(stacks, names, strict=True) if len(stacks) > 1 else []:
        calls = _regrouped(own, low, step, number)
        label = textwrap.shorten(name, 60, placeholder=" ...")
        tops = [a + b for a, b in zip(base, calls, strict=True)]
        axes.stairs(tops, edges, baseline=base, fill=True, color=colour, label=label)
        base = [a + b for a, b in zip(base, calls, strict=True)]
    rest = [max(a, b) for a, b in zip(base, whole, strict=True)]
    plain = _PLAIN if len(stacks) > 1 else COLOURS[0]
    axes.stairs(rest, edges, baseline=base, fill=True, color=plain)
    axes.set_xlim(visible[0] / 1.05, visible[1] * 1.05)
    flat = is_flattened(rest)
    if flat:
        axes.set_yscale("log")
    axes.set_ylim(0.5 * min(each for each in rest if each > 0) if flat else 0, max(rest))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: share(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(f"calls, in steps of {100 * (math.exp(step) - 1):.0f} %", fontsize=8)
    if len(stacks) > 1:
        axes.legend(loc="upper right", fontsize=8, frameon=False, bbox_to_anchor=(1.0, 1.13), ncols=2)
    return flat


def is_flattened(steps: Sequence[float]) -> bool:
    """Return whether most steps of a distribution would be lower than a hundredth of the highest."""
    held = [each for each in steps if each > 0]
    return bool(held) and statistics.median(held) < _FLAT * max(held)


def _visible(bins: Sequence[Bin]) -> tuple[float, float]:
    """Return the range that holds all but a thousandth of the calls at either end."""
    total = sum(calls for _, _, calls in bins)
    below, low, high = 0.0, bins[0][0], bins[-1][1]
    for left, right, calls in bins:
        if below <= 0.0005 * total:
            low = left
        below += calls
        if below >= 0.9995 * total:
            high = right
            break
    return low, max(high, low * 1.5)


def _regrouped(bins: Sequence[Bin], low: float, step: float, number: int) -> list[float]:
    calls = [0.0] * number
    for left, right, held in bins:
        first, last = math.log(left / low) / step, math.log(right / low) / step
        for at in range(max(0, int(first)), min(number - 1, int(last)) + 1):
            part = min(last, at + 1) - max(first, at)
            calls[at] += held * max(0.0, part) / (last - first)
    return calls


def _only_borders(axes: Axes, borders: Sequence[float]) -> None:
    low, high = (borders[0], borders[-1]) if borders else (1e-6, 1e-3)
    axes.set_xlim(low / 4, high * 4)
    axes.set_ylim(0, 1)
    axes.text(0.5, 0.4, "this specification holds no histogram", transform=axes.transAxes, ha="center", color=_PLAIN)


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
                          color="white" if strength > 0.5 and at % len(COLOURS) in _DARK else _INK)  # fmt: skip
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
                      edgecolor=_DECIDES if line.decides else _PLAIN, zorder=2 if line.decides else 1)
        )  # fmt: skip
        if line.decides:
            small = 8 * max(scale, 0.5)
            x, y = (points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2
            if len(points) > 2:
                x, y = points[len(points) // 2]
            axes.text(x + 0.05, y, count(line.calls), color=_DECIDES, fontsize=small, va="center", zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85})  # fmt: skip
    for box in graph.boxes:
        width, height = box.width * _LETTER, _LINE * len(box.lines) + 0.08
        left, top = box.x * _LETTER - width / 2, middle[box.layer] - height / 2
        axes.add_patch(
            FancyBboxPatch((left, top), width, height, boxstyle="round,pad=0,rounding_size=0.06", zorder=3,
                           facecolor="white", edgecolor=_INK, linewidth=0.9 * max(scale, 0.5))
        )  # fmt: skip
        for number, text in enumerate(box.lines):
            last = number == len(box.lines) - 1
            axes.text(box.x * _LETTER, top + 0.04 + _LINE * (number + 0.5), text, ha="center", va="center", zorder=4,
                      fontsize=(7.5 if last else 9) * scale, color="#616E7C" if last else _INK)  # fmt: skip


def _curve(points: Sequence[tuple[float, float]]) -> Way:
    """Return a line through the points that leaves and enters boxes upright."""
    vertices, codes = [points[0]], [Way.MOVETO]
    for (x, y), (to_x, to_y) in pairwise(points):
        half = (to_y - y) / 2
        vertices += [(x, y + half), (to_x, to_y - half), (to_x, to_y)]
        codes += [Way.CURVE4] * 3
    return Way(vertices, codes)
