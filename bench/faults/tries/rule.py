"""What a simple rule would have named: the function whose mean of 30 s is furthest above its learned mean.

The rule reads the windows that a daemon kept. A function is named once three windows in a row bring that mean above
1.25 times the learned one, and of those that were named the one with the largest ratio at the end comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.store import Host, open_store

RATIO, WINDOWS, LATELY_NS = 1.25, 3, 30 * 10**9
Span = tuple[int, int]
"""From when until when, ns, Unix time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A window: when it ended (ns, Unix time), its calls, and what they took (ns)."""

    ended_ns: int
    calls: int
    total_ns: float


@dataclass(frozen=True, slots=True)
class Named:
    """What the rule says of a span of time."""

    after_s: float
    """When it first names a function."""
    functions: tuple[str, ...]
    """All that it names, the largest ratio first."""


def windows_in(store: Path) -> dict[str, list[Seen]]:
    """Return the windows that a store holds by the name of their function, oldest first."""
    found = defaultdict[str, list[Seen]](list)
    with open_store(store, read_only=True) as opened:
        offset_ns = max(host.utc_offset_ns for host in opened.read(Host))
        names = {one.key: one.name for one in opened.read(Function)}
        for one in opened.read(Observation):
            total_ns = one.histogram.total * (one.histogram.mean() - one.bias_ns)
            if one.histogram.total and total_ns > 0:
                seen = Seen(one.end_ns + offset_ns, one.histogram.total, total_ns)
                found[names.get(one.function, one.function)].append(seen)
    return {name: sorted(windows, key=lambda one: one.ended_ns) for name, windows in found.items()}


def named_in(windows: Mapping[str, Sequence[Seen]], span: Span, faults: Iterable[Span]) -> Named | None:
    """Return what the rule names in a span; what is normal are the windows before it that no fault touched."""
    faults, (began_ns, ended_ns) = tuple(faults), span
    first, ratios = list[float](), dict[str, float]()
    for name, every in windows.items():
        before = [one for one in every if one.ended_ns < began_ns and not _within(one.ended_ns, faults)]
        normal_ns = _mean_ns(before)
        inside = [one for one in every if began_ns <= one.ended_ns <= ended_ns]
        above, ratio = 0, 0.0
        for one in inside:
            lately = [each for each in inside if one.ended_ns - LATELY_NS < each.ended_ns <= one.ended_ns]
            ratio = _mean_ns(lately) / normal_ns if normal_ns else 0.0
            above = above + 1 if ratio > RATIO else 0
            if above == WINDOWS:
                first.append((one.ended_ns - began_ns) * 1e-9)
                ratios[name] = ratio
        if name in ratios:
            ratios[name] = ratio
    in_order = sorted(ratios, key=lambda name: -ratios[name])
    return Named(min(first), tuple(in_order)) if first else None


def _within(moment_ns: int, spans: Iterable[Span]) -> bool:
    return any(began_ns <= moment_ns <= ended_ns + LATELY_NS for began_ns, ended_ns in spans)


def _mean_ns(windows: Sequence[Seen]) -> float:
    return sum(one.total_ns for one in windows) / max(1, sum(one.calls for one in windows))
