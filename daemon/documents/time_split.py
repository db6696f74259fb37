"""What the calls of a function did of their time, and what that explains, as JSON: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specmine.mining.borders.inference import shifted
from specmine.mining.off_cpu.breakdown import Part, Parts, parts
from specmine.mining.off_cpu.host_causes import HostTimes
from specmine.mining.off_cpu.on_cpu import OnCpu, range_seconds
from specmine.mining.statistics.class_shares import class_counts
from specmine.model.buckets import BUCKET_EDGES, BUCKET_MIDDLES, BUCKETS
from specmine.model.call_path import CallPath
from specmine.model.histogram import Counts, frozen_counts, quantiles
from specmine.model.json_codec import encode
from specmine.model.sparse import Kept
from specmine.model.split import Split, added, split_or_unbroken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitCalls:
    """Timed calls whose time is split: all of some observations."""

    counts: Counts
    split: Split
    bias_ns: float


def split_calls(held: Sequence[Kept], bias_ns: float) -> SplitCalls | None:
    """Return the calls whose time is split, None if there are none."""
    known = [(each.counts, split) for each in held if (split := each.whole_split()) is not None and each.timed]
    split = added([split for _, split in known])
    if split is None:
        return None
    counts = np.zeros(BUCKETS, dtype=np.uint64)
    for own, _ in known:
        counts += own
    return SplitCalls(counts=frozen_counts(counts), split=split, bias_ns=bias_ns)


def explained(
    calls: SplitCalls, edges: Sequence[int], host: HostTimes, path_classes: Sequence[Sequence[int]] = ()
) -> Parts:
    """Return what each class did of its time."""
    return parts(calls.counts, calls.split, edges, host, bias_ns=calls.bias_ns, path_classes=path_classes)


def class_facts(part: Part, *, main: bool) -> dict[str, Any]:
    """Return what is told of one class beside its border and share."""
    told: dict[str, Any] = {
        "running": part.running,
        "waiting": part.waiting,
        "blocked": part.blocked,
        "label": part.label or None,
    }
    if main or not part.calls:
        return told
    return told | {
        "cause": part.cause or None,
        "slices": part.slices or None,
        "excess_seconds": part.excess_ns * 1e-9,
        "waited_seconds": part.waited_ns * 1e-9,
        "waited_interval_seconds": [part.waited_low_ns * 1e-9, part.waited_high_ns * 1e-9],
    }


def time_facts(calls: SplitCalls, found: Parts, host: HostTimes) -> dict[str, Any]:
    """Return running, waiting and blocked of all calls, and what explains the classes."""
    running, waiting, blocked = _shares(calls.counts, calls.split, calls.bias_ns)
    return {
        "calls": int(calls.counts.sum()),
        "running": running,
        "waiting": waiting,
        "blocked": blocked,
        "explains": found.by_waiting if len(found.classes) > 1 else None,
        "paths_explain": found.by_paths if len(found.classes) > 1 else None,
        "is_cause": found.explained,
        "slice_seconds": host.slice_ns * 1e-9 or None,
        "slice_interval_seconds": [host.slice_low_ns * 1e-9, host.slice_high_ns * 1e-9] if host.slice_ns else None,
    }


def path_facts(held: Sequence[Kept], bias_ns: float) -> dict[CallPath, dict[str, float]]:
    """Return running, waiting and blocked of the calls over each path."""
    by_path: dict[CallPath, list[tuple[Counts, Split]]] = {}
    for each in held:
        left = each.split is not None and (each.split.waiting_ns or each.split.blocked_ns)
        if each.split is None or (left and not any(split for _, _, split in each.paths)):
            continue  # not known, or not of each path: it comes from an old store
        for path, own, split in each.paths:
            counts = own.counts
            by_path.setdefault(path, []).append(
                (counts, split_or_unbroken(counts, split.whole(counts) if split else None))
            )
    told = {}
    for path, every in by_path.items():
        whole = added([split for _, split in every])
        if whole is not None:
            counts = frozen_counts(sum(counts for counts, _ in every))
            told[path] = dict(zip(("running", "waiting", "blocked"), _shares(counts, whole, bias_ns), strict=True))
    return told


def on_cpu_facts(known: OnCpu | None, calls: SplitCalls | None, detail: bool = False) -> dict[str, Any] | None:
    """Return what is asserted of a function's time on CPU; None where it is its duration, or not known.

    With ``detail`` the histogram is told, too; like that of durations it holds the probes' own cost.
    """
    if known is None or known.chain is None or calls is None:
        return None
    said = known.learned or known.chain
    counts, edges, bias = calls.split.on_cpu, said.edges, said.bias_ns
    upper = [max(0.0, float(BUCKET_EDGES[edge]) - bias) * 1e-9 for edge in edges]
    own = class_counts(counts, shifted(edges, bias, calls.bias_ns))
    middle, high = quantiles(counts, (0.5, 0.99))
    return {
        "calls": int(counts.sum()),
        "stable": known.learned is not None,
        "observations": known.chain.chain,
        "range_seconds": range_seconds(known),
        "borders_seconds": upper if said.stable else [],
        "classes": [
            {"upper_seconds": bound, "share": int(number) / max(1, int(own.sum()))}
            for bound, number in zip([*upper, None], own, strict=True)
        ]
        if said.stable
        else [],
        "mean_seconds": max(0.0, float(counts @ BUCKET_MIDDLES) / max(1, int(counts.sum())) - calls.bias_ns) * 1e-9,
        "median_seconds": max(0.0, middle - calls.bias_ns) * 1e-9,
        "p99_seconds": max(0.0, high - calls.bias_ns) * 1e-9,
        "verdict": known.check.verdict if known.check else "unknown",
        "p_value": known.check.p_value if known.check else None,
        **({"histogram": encode(counts)} if detail else {}),
    }


def _shares(counts: Counts, split: Split, bias_ns: float) -> tuple[float, float, float]:
    total = float(counts @ BUCKET_MIDDLES) - bias_ns * float(counts.sum())
    waiting, blocked = float(split.waiting_ns.sum()), float(split.blocked_ns.sum())
    running = max(0.0, total - waiting - blocked)
    total = running + waiting + blocked
    return (running / total, waiting / total, blocked / total) if total > 0 else (0.0, 0.0, 0.0)
