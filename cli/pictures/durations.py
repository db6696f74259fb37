"""How long the calls of one function take, drawn: steps with borders and classes, the normal time behind them."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from specmine.analysis.documents import Entry
from specmine.analysis.histogram_bins import Bin, histogram_bins
from specmine.analysis.normal_and_now import BehaviourCalls, behaviour_calls, normal_and_now
from specmine.analysis.wording.assertions import condition
from specmine.analysis.wording.levels import WORDS, asserted, normal_range, present
from specmine.model.text import duration, share, three_digits

from .palette import BORDER, COLOURS, INK, NORMAL, PLAIN

_FLAT = 0.01
"""Steps lower than this part of the highest are not seen."""


def draw_durations(axes: Axes, entry: Entry, known: Mapping[str, Any]) -> None:
    """Draw the histogram over log duration, stacked by behaviour where it is known, with borders and classes."""
    bias = float(entry.get("bias_seconds") or 0.0)
    before, now = normal_and_now(known, entry)
    bins = now if before else histogram_bins(entry.get("histogram"), bias)
    parts = behaviour_calls(known, entry)
    if before and sum(bool(each.now) for each in parts) > 1:  # of both times only some windows tell behaviours apart
        bins = sorted(one for each in parts for one in each.now)
        before = sorted(one for each in parts for one in each.before) or before
    borders = [float(each) for each in entry.get("borders_seconds") or []]
    now_in = "colour" if sum(bool(each.now) for each in parts) > 1 else "blue"
    axes.set_title(f"Durations of calls: normal in grey, now in {now_in}" if before else "Durations of calls",
                   loc="left", fontsize=10)  # fmt: skip
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    flat = False
    if not bins:
        axes.set_yticks([])
        _only_borders(axes, borders)
    else:
        flat = _bars(axes, bins, parts, before)
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
        if at < len(classes) > 1:
            text = share(float(classes[at].get("share") or 0.0))
            axes.text(math.sqrt(left * right), 0.98, text, ha="center", va="top", fontsize=10, transform=above)
    for border in borders:
        axes.axvline(border, color=BORDER, linestyle="--", linewidth=1.2)
        label = f" {duration(border)}"
        axes.text(border, 0.87, label, color=BORDER, ha="left", va="top", fontsize=8, transform=above)
    if bins:
        _marks(axes, entry)
    axes.set_xlim(low, high)


def _marks(axes: Axes, entry: Entry) -> None:
    """Mark median and 99 % quantile, and the range in which the median is normal."""
    above = axes.get_xaxis_transform()
    span = asserted(entry).get("p50") or {}
    if normal_range(asserted(entry), "p50"):
        axes.axvspan(float(span["low"]), float(span["high"]), color=NORMAL, alpha=0.5, zorder=0.5, linewidth=0)
    for name, height in (("p50", 0.76), ("p99", 0.66)):
        each = present(entry).get(name)
        if each and each["seconds"] > 0:
            axes.axvline(float(each["seconds"]), color=INK, linewidth=1.2, zorder=3)
            text, seconds = f" {WORDS[name]} {three_digits(float(each['seconds']))} ", float(each["seconds"])
            low, high = axes.get_xlim()
            side = "right" if math.log(seconds / low) > 0.8 * math.log(high / low) else "left"
            axes.text(seconds, height, text, ha=side, va="top", fontsize=8, transform=above, zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.75})  # fmt: skip


def _bars(axes: Axes, bins: Sequence[Bin], parts: Sequence[BehaviourCalls], before: Sequence[Bin]) -> bool:
    """Draw the share of calls per equal step of log time; what no behaviour owns is grey; ``before`` is behind.

    Returns
    -------
    bool
        Whether the axis of calls is logarithmic: where one step would flatten all others.
    """
    total = sum(calls for _, _, calls in bins) or 1.0
    bins = [(left, right, calls / total) for left, right, calls in bins]
    groups = [[(left, right, calls / total) for left, right, calls in each.now] for each in parts]
    earlier = sum(calls for _, _, calls in before) or 1.0
    before = [(left, right, calls / earlier) for left, right, calls in before]
    both = sorted([*bins, *before])
    low, high = both[0][0], max(right for _, right, _ in both)
    visible = _visible(both)
    step = max(math.log(visible[1] / visible[0]) / 90, math.log(1.033))
    number = max(1, math.ceil(math.log(high / low) / step))
    edges = [low * math.exp(step * at) for at in range(number + 1)]
    stacks = [(COLOURS[at % len(COLOURS)], own) for at, own in enumerate(groups) if own]
    names = [condition(each.behaviour["expression"]) for each, own in zip(parts, groups, strict=True) if own]
    whole = _regrouped(bins, low, step, number)
    base = [0.0] * number
    for (colour, own), name in zip(stacks, names, strict=True) if len(stacks) > 1 else []:
        calls = _regrouped(own, low, step, number)
        label = textwrap.shorten(name, 60, placeholder=" ...")
        tops = [a + b for a, b in zip(base, calls, strict=True)]
        axes.stairs(tops, edges, baseline=base, fill=True, color=colour, label=label)
        base = [a + b for a, b in zip(base, calls, strict=True)]
    rest = [max(a, b) for a, b in zip(base, whole, strict=True)]
    plain = PLAIN if len(stacks) > 1 else COLOURS[0]
    usual = _regrouped(before, low, step, number)
    if before:
        axes.stairs(usual, edges, fill=True, color=PLAIN, alpha=0.6, zorder=0.8)
        axes.stairs(usual, edges, color=NORMAL if len(stacks) > 1 else PLAIN, linewidth=1.2, zorder=1.1)
        axes.stairs(rest, edges, color=plain, linewidth=1.4, zorder=1.2)
    axes.stairs(rest, edges, baseline=base, fill=True, color=plain, alpha=0.2 if before else 1.0)
    axes.set_xlim(visible[0] / 1.05, visible[1] * 1.05)
    flat = is_flattened(rest)
    if flat:
        axes.set_yscale("log")
    axes.set_ylim(0.5 * min(each for each in rest if each > 0) if flat else 0, max(*rest, *usual))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
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
    axes.text(0.5, 0.4, "this specification holds no histogram", transform=axes.transAxes, ha="center", color=PLAIN)
