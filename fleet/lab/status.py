"""How far a benchmark is, as JSON: ``specmine.bench/1``."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from specmine.daemon.documents.timestamps import rfc3339

from .ledger import DONE, FAILED, RUNNING, WAITING, Record, RunState
from .verdict import comparisons, lifetimes_of

SCHEMA = "specmine.bench/1"
MOST_FAILURES = 100


def bench_document(record: Record) -> dict[str, Any]:
    """Return the progress of a benchmark, and once it is complete the comparison of each build with the first."""
    states = Counter(each.state for each in record.runs)
    benchmark = record.benchmark
    unread = lifetimes_of(record)[1]
    failures = [
        {
            "run": each.number + 1,
            "build": record.runs[each.number].run.build,
            "host": each.host,
            "attempt": each.attempt,
            "at": rfc3339(each.at_utc_ns),
            "reason": each.reason,
        }
        for each in record.failures
    ]
    failures += [
        {"run": state.run.number + 1, "build": state.run.build, "host": state.host, "attempt": state.attempts,
         "at": rfc3339(state.ended_utc_ns), "reason": why}
        for state, why in unread
    ]  # fmt: skip
    return {
        "schema": SCHEMA,
        "name": benchmark.name,
        "created": rfc3339(record.created_utc_ns),
        "complete": record.complete,
        "benchmark": benchmark.document(),
        "plan": dict(record.plan),
        "runs": {"total": len(record.runs), **{name: states[name] for name in (DONE, RUNNING, WAITING, FAILED)}},
        "left_seconds": _left(record),
        "builds": [
            {"label": each.label, **_counts([one for one in record.runs if one.run.build == each.label])}
            for each in benchmark.builds
        ],
        "hosts": [
            {
                "host": each.host,
                **_counts([one for one in record.runs if one.host == each.host]),
                "heard": rfc3339(each.heard_utc_ns),
                "silent": not record.complete and record.now_utc_ns - each.heard_utc_ns > benchmark.lease * 1e9,
                "environment": dict(each.facts) or None,
            }
            for each in record.hosts
        ],
        "failures": failures[-MOST_FAILURES:],
        "failures_total": len(failures),
        "comparisons": comparisons(record) if record.complete else [],
    }


def _counts(runs: Sequence[RunState]) -> dict[str, int]:
    states = Counter(each.state for each in runs)
    return {name: states[name] for name in (DONE, RUNNING, WAITING, FAILED)}


def _left(record: Record) -> float | None:
    """Return how long the rest will take, by the runs that are done and the hosts that are there."""
    took = [(each.ended_utc_ns - each.begun_utc_ns) * 1e-9 for each in record.runs if each.state == DONE]
    left = sum(each.state in (WAITING, RUNNING) for each in record.runs)
    there = [each for each in record.hosts if record.now_utc_ns - each.heard_utc_ns <= record.benchmark.lease * 1e9]
    if not left:
        return 0.0
    return float(f"{left * statistics.median(took) / len(there):.3g}") if took and there else None
