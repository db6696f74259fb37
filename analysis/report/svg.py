"""The drawings of a report, as SVG inside the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.comparison import Change, Rule
from specmine.mining.regression.sample import SUMMARIES
from specmine.mining.regression.within_lifetime import FEWEST_IN_A_ROW
from specmine.model.text import in_markup

_WIDTH, _HEIGHT, _MARGIN = 640, 180, 46
_SHOWN_SHARE = 0.95
COLOURS = {Change.WORSE: "#b3261e", Change.BETTER: "#1b7f3b"}


def intervals_svg(entry: Mapping[str, Any]) -> str:
    """Draw the interval of each build, in colour where it changed; nothing where no build has one."""
    builds = entry["builds"]
    if not builds:  # a summary of 0 has no logarithm: no build has an interval
        return ""
    ends = [each for build in builds for each in (build["interval_seconds"] or [build["seconds"]])]
    changed = {step["new"]: Change(step["verdict"]) for step in entry["steps"]}
    scale = _Scale(min(ends), max(ends), len(builds))
    marks = []
    for at, build in enumerate(builds):
        x, y = scale.across(at), scale.down(build["seconds"])
        colour = COLOURS.get(changed.get(build["build"], Change.UNDECIDED), "#444")
        if build["interval_seconds"]:
            low, high = (scale.down(each) for each in build["interval_seconds"])
            marks.append(f"<path d='M{x:.1f} {low:.1f}V{high:.1f}' stroke='{colour}' stroke-width='3'/>")
        marks.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'/>")
        marks.append(
            f"<text x='{x:.1f}' y='{_HEIGHT - 6}' text-anchor='middle'>{in_markup(build['label'][:14])}</text>"
        )
    return _svg("builds with their intervals", scale, marks)


def sequence_svg(group: Sequence[FunctionLifetime], document: Mapping[str, Any], rule: Rule) -> str:
    """Draw the summary of every lifetime in the order of time; 95 % of them fill the height."""
    order = [each["build"] for each in document["builds"]]
    ordered = sorted(group, key=lambda each: (order.index(each.build), each.start_ns))
    values = [1e-9 * SUMMARIES[rule.summary](each.sample) for each in ordered]
    scale = _Scale(*shortest_range(values), len(ordered))
    marks = []
    for at, (each, value) in enumerate(zip(ordered, values, strict=True)):
        if at and each.build != ordered[at - 1].build:
            x = 0.5 * (scale.across(at) + scale.across(at - 1))
            marks.append(f"<path d='M{x:.1f} 10V{_HEIGHT - 24}' stroke='#bbb' stroke-dasharray='3 3'/>")
        label = f"{each.shown} {each.host} {each.lifetime}: {_duration(value)}"
        y = min(max(scale.down(value), 8.0), _HEIGHT - 22.0)
        marks.append(f"<circle cx='{scale.across(at):.1f}' cy='{y:.1f}' r='3' fill='#345'>"
                     f"<title>{in_markup(label)}</title></circle>")  # fmt: skip
    return _svg("lifetimes in their order", scale, marks)


def ratios_svg(step: Mapping[str, Any], names: Sequence[str], tolerance: float) -> str:
    """Draw the ratio of each part of a function with its interval, on a logarithmic axis around no change.

    Parameters
    ----------
    step : mapping
        One build against another; its parts are all calls, classes and behaviours.
    names : sequence of str
        What the parts are called: all calls first, then ``behaviours``.
    tolerance : float
        The field in which a change does not matter.
    """
    parts = [{**step, "verdict": step["verdict_of_summary"]}, *step["behaviours"]]
    drawn = [(name, part) for name, part in zip(names, parts, strict=True) if part["ratio"] and part["interval"]]
    if not drawn:
        return ""
    ends = [end for _, part in drawn for end in part["interval"]]
    low, high = min(*ends, 0.9), max(*ends, 1.1)
    left, height = 190, 22 * len(drawn) + 30

    def across(ratio: float) -> float:
        return left + (_WIDTH - left - 20) * math.log(ratio / low) / math.log(high / low)

    field = across(1 / (1 + tolerance)), across(1 + tolerance)
    marks = [
        f"<rect x='{field[0]:.1f}' width='{field[1] - field[0]:.1f}' y='4' height='{height - 26}' fill='#bbb'"
        " fill-opacity='.5'/>",
        *(f"<text x='{across(tick):.1f}' y='{height - 6}' text-anchor='middle'>{tick:g}×</text>"
          for tick in _ratio_ticks(low, high)),
    ]  # fmt: skip
    for row, (name, part) in enumerate(drawn):
        y, colour = 18 + 22 * row, COLOURS.get(Change(part["verdict"]), "#444")
        start, end = (across(each) for each in part["interval"])
        marks += [
            f"<text x='2' y='{y + 4}'>{in_markup(name[:34])}</text>",
            f"<path d='M{start:.1f} {y}H{end:.1f}' stroke='{colour}' stroke-width='3'/>",
            f"<circle cx='{across(part['ratio']):.1f}' cy='{y}' r='4' fill='{colour}'/>",
        ]
    return (
        f"<svg viewBox='0 0 {_WIDTH} {height}' width='{_WIDTH}' role='img'><title>ratios with their intervals</title>"
        f"{''.join(marks)}</svg>"
    )


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Return round ratios within an axis, at most seven, 1 among them."""
    for steps in ((0.8, 0.9, 1.0, 1.1, 1.2, 1.3), (0.5, 0.75, 1.0, 1.5, 2.0, 3.0), (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)):
        if low >= steps[0] and high <= steps[-1]:
            return [each for each in steps if low <= each <= high]
    first = math.floor(math.log10(low))
    powers = [10.0**power for power in range(first, math.ceil(math.log10(high)) + 1)]
    every = -(-len(powers) // 6)
    return [each for at, each in enumerate(powers) if low <= each <= high and (at + first) % every == 0]


def lag_svg(group: Sequence[FunctionLifetime], document: Mapping[str, Any]) -> str:
    """Draw each call's duration over the one before it, in the newest lifetime that has calls in a row."""
    order = [each["build"] for each in document["builds"]]
    ordered = [each for each in group if each.first_ns is not None and len(each.first_ns) >= FEWEST_IN_A_ROW]
    if not ordered:
        return ""
    newest = max(ordered, key=lambda each: (order.index(each.build), each.start_ns))
    assert newest.first_ns is not None
    values = (1e-9 * newest.first_ns).tolist()
    low, high = shortest_range(values)
    side, room = _HEIGHT - 54, (high - low) or high or 1.0
    scale = _Scale(low, high, 1)

    def across(value: float) -> float:
        return min(max(_MARGIN + 30 + side * (value - low) / room, _MARGIN + 26.0), _MARGIN + 34.0 + side)

    marks = [
        f"<path d='M{across(low):.1f} {scale.down(low):.1f}L{across(high):.1f} {scale.down(high):.1f}' stroke='#ccc'/>",
        f"<text x='{across(high) + 14:.1f}' y='24'>each of {len(values)} calls in a row over the one before it,</text>",
        f"<text x='{across(high) + 14:.1f}' y='40'>{in_markup(newest.shown)} {in_markup(newest.lifetime)}</text>",
    ]
    for before, after in pairwise(values):
        y = min(max(scale.down(after), 16.0), _HEIGHT - 30.0)
        marks.append(f"<circle cx='{across(before):.1f}' cy='{y:.1f}' r='2' fill='#345' fill-opacity='.5'/>")
    return _svg("lag plot", scale, marks)


def shortest_range(values: Sequence[float], share: float = _SHOWN_SHARE) -> tuple[float, float]:
    """Return the shortest range that holds a share of the values: rare long ones do not flatten a plot."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    kept = max(1, math.ceil(share * len(ordered)))
    widths = ordered[kept - 1 :] - ordered[: len(ordered) - kept + 1]
    at = int(np.argmin(widths))
    return float(ordered[at]), float(ordered[at + kept - 1])


@dataclass(frozen=True, slots=True)
class _Scale:
    """Positions in a drawing."""

    low: float
    high: float
    count: int

    def across(self, at: int) -> float:
        """Return the position of a column."""
        return _MARGIN + 30 + (_WIDTH - _MARGIN - 60) * (at + 0.5) / max(self.count, 1)

    def down(self, value: float) -> float:
        """Return the height of a value."""
        room = (self.high - self.low) or self.high or 1.0
        return (_HEIGHT - 34) - (_HEIGHT - 54) * (value - self.low) / room


def _svg(title: str, scale: _Scale, marks: Sequence[str]) -> str:
    ticks = "".join(
        f"<text x='2' y='{scale.down(each):.1f}'>{in_markup(_duration(each))}</text>"
        for each in dict.fromkeys((scale.low, scale.high))
    )
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' role='img'><title>{in_markup(title)}</title>"
        f"{ticks}{''.join(marks)}</svg>"
    )


def _duration(seconds: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"
