"""The split of calls into running, waiting and blocked, and what it explains, as JSON: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specmine.mining.off_cpu.breakdown import Part, Parts, parts
from specmine.mining.off_cpu.host_causes import HostTimes
from specmine.mining.off_cpu.on_cpu import OnCpu, range_seconds
from specmine.model.buckets import BUCKET_EDGES, shifted_edges
from specmine.model.call_path import CallPath
from specmine.model.histogram import Histogram
from specmine.model.json_codec import encode
from specmine.model.observation import Observation
from specmine.model.split import Split, sum_of_splits, unbroken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitCalls:
    """Timed calls whose time is split: all of some observations."""

    histogram: Histogram
    split: Split
    bias_ns: float


def split_calls(held: Sequence[Observation], bias_ns: float) -> SplitCalls | None:
    """Return the calls whose time is split, None if there are none."""
    known = [(each.histogram, each.split) for each in held if each.split is not None and each.timed]
    split = sum_of_splits([split for _, split in known])
    if split is None:
        return None
    return SplitCalls(histogram=Histogram.sum(histogram for histogram, _ in known), split=split, bias_ns=bias_ns)


def explained(
    calls: SplitCalls, edges: Sequence[int], host: HostTimes, path_classes: Sequence[Sequence[int]] = ()
) -> Parts:
    """Return the split of each class."""
    return parts(calls.histogram, calls.split, edges, host, bias_ns=calls.bias_ns, path_classes=path_classes)


def class_facts(part: Part, *, main: bool) -> dict[str, Any]:
    """Return the split of one class, for the entry that has its border and share."""
    facts: dict[str, Any] = {
        "running": part.running,
        "waiting": part.waiting,
        "blocked": part.blocked,
        "label": part.label or None,
    }
    if main or not part.calls:
        return facts
    return facts | {
        "cause": part.cause or None,
        "slices": part.slices or None,
        "excess_seconds": part.excess_ns * 1e-9,
        "waited_seconds": part.waited_ns * 1e-9,
        "waited_interval_seconds": [part.waited_low_ns * 1e-9, part.waited_high_ns * 1e-9],
    }


def time_facts(calls: SplitCalls, found: Parts, host: HostTimes) -> dict[str, Any]:
    """Return running, waiting and blocked of all calls, and what explains the classes."""
    running, waiting, blocked = _shares(calls.histogram, calls.split, calls.bias_ns)
    return {
        "calls": calls.histogram.total,
        "running": running,
        "waiting": waiting,
        "blocked": blocked,
        "explains": found.by_waiting if len(found.classes) > 1 else None,
        "paths_explain": found.by_paths if len(found.classes) > 1 else None,
        "is_cause": found.explained,
        "slice_seconds": host.slice_ns * 1e-9 or None,
        "slice_interval_seconds": [host.slice_low_ns * 1e-9, host.slice_high_ns * 1e-9] if host.slice_ns else None,
    }


def path_facts(held: Sequence[Observation], bias_ns: float) -> dict[CallPath, dict[str, float]]:
    """Return running, waiting and blocked of the calls over each path."""
    by_path: dict[CallPath, list[tuple[Histogram, Split]]] = {}
    for each in held:
        left = each.split is not None and (each.split.waiting_ns.total or each.split.blocked_ns.total)
        if each.split is None or (left and not any(one.split for one in each.paths)):
            continue  # not known, or not of each path: it comes from an old store
        for one in each.paths:
            by_path.setdefault(one.path, []).append((one.histogram, one.split or unbroken(one.histogram)))
    facts = {}
    for path, every in by_path.items():
        whole = sum_of_splits([split for _, split in every])
        if whole is not None:
            histogram = Histogram.sum(histogram for histogram, _ in every)
            facts[path] = dict(zip(("running", "waiting", "blocked"), _shares(histogram, whole, bias_ns), strict=True))
    return facts


def on_cpu_facts(known: OnCpu | None, calls: SplitCalls | None, detail: bool = False) -> dict[str, Any] | None:
    """Return what is asserted of a function's time on CPU; None where it equals the duration or is not known.

    With ``detail`` the histogram is included; like that of durations it holds the probes' own cost.
    """
    if known is None or known.chain is None or calls is None:
        return None
    inference = known.learned or known.chain
    on_cpu, edges, bias = calls.split.on_cpu, inference.edges, inference.bias_ns
    upper = [max(0.0, float(BUCKET_EDGES[edge]) - bias) * 1e-9 for edge in edges]
    class_counts = on_cpu.class_counts(shifted_edges(edges, bias, calls.bias_ns))
    middle, high = on_cpu.quantiles((0.5, 0.99))
    return {
        "calls": on_cpu.total,
        "stable": known.learned is not None,
        "observations": known.chain.chain,
        "range_seconds": range_seconds(known),
        "borders_seconds": upper if inference.stable else [],
        "classes": [
            {"upper_seconds": bound, "share": int(number) / max(1, int(class_counts.sum()))}
            for bound, number in zip([*upper, None], class_counts, strict=True)
        ]
        if inference.stable
        else [],
        "mean_seconds": on_cpu.mean(calls.bias_ns) * 1e-9,
        "median_seconds": max(0.0, middle - calls.bias_ns) * 1e-9,
        "p99_seconds": max(0.0, high - calls.bias_ns) * 1e-9,
        "verdict": known.check.verdict if known.check else "unknown",
        "p_value": known.check.p_value if known.check else None,
        **({"histogram": encode(on_cpu)} if detail else {}),
    }


def _shares(histogram: Histogram, split: Split, bias_ns: float) -> tuple[float, float, float]:
    total = histogram.time_ns() - bias_ns * histogram.total
    waiting, blocked = split.waiting_ns.total, split.blocked_ns.total
    running = max(0.0, total - waiting - blocked)
    total = running + waiting + blocked
    return (running / total, waiting / total, blocked / total) if total > 0 else (0.0, 0.0, 0.0)
