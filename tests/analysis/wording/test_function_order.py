"""In which order functions are listed."""

from __future__ import annotations

from typing import Any

from specmine.analysis.wording.function_order import SORTS


def entry(name: str, share: float, idle: float) -> dict[str, Any]:
    """Return a function that holds, and has numbers."""
    quantiles = {"p50": {"seconds": 1e-5, "low": 9e-6, "high": 1.1e-5}}
    return {
        "function": name, "module": "m", "state": "single", "verdict": "holds", "time_share": share,
        "idle_share": idle, "quantiles": quantiles, "rate_per_second": 1.0, "calls": 5, "violations": [],
    }  # fmt: skip


def test_what_mostly_waits_for_work_comes_last() -> None:
    """An event loop of the whole time comes behind what it calls; of the others those that work most come first."""
    entries = [entry("loop", 1.0, 0.9), entry("request", 0.1, 0.0), entry("parse", 0.02, 0.0), entry("half", 0.3, 0.4)]
    assert [each["function"] for each in sorted(entries, key=SORTS["state"])] == ["half", "request", "parse", "loop"]
    assert [each["function"] for each in sorted(entries, key=SORTS["time"])] == ["loop", "half", "request", "parse"]
    del entries[0]["idle_share"]  # of an older store
    assert sorted(entries, key=SORTS["state"])[0]["function"] == "loop"
