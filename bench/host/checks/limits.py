"""Limits and cores: experiments find again what was set on a group or by affinity (checks 7, 8, 11, 12)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bench.host.checks.table import Bench, Table, near
from bench.lib import child_processes
from specmine.experiments.types import MS


def quotas(bench: Bench, table: Table) -> None:
    """Limits set on a group are found from pauses alone (checks 11 and 12)."""
    for quota, period in ((20, 100), (10, 20), (30, 50)):
        result = bench.run("quota", parameters={"quota": quota * MS, "period": period * MS})
        found = result["evidence"]
        got = 1e3 * found.get("quota_seconds", 0.0), 1e3 * found.get("period_seconds", 0.0)
        gaps, throttled = found.get("gaps", 0), found.get("throttled", 0)
        table.judge(
            f"11 limit {quota}/{period} ms",
            "3 %, gaps = throttlings +-1",
            result,
            f"{got[0]:.2f}/{got[1]:.2f} ms, {gaps} of {throttled}",
            (near(got[0], quota, 0.03) and near(got[1], period, 0.03) and abs(gaps - throttled) <= 1),
        )
    result = bench.run("quota")
    code = result["reason"]["code"] if result["reason"] else "a value"
    table.judge("11 no limit", "no-quota, valid", result, code, code == "no-quota" and result["valid"])
    result = bench.run("quota", parameters={"quota": 100 * MS, "period": 100 * MS, "tasks": 2})
    value = result["value"] or result["evidence"].get("unsure_value") or 0.0
    table.judge("12 limit 100/100 ms, two tasks", "1.0 CPU +-5 %", result, f"{value:.3f}", near(value, 1.0))


def cores(bench: Bench, table: Table) -> None:
    """Cores follow affinity and limit; CPUs that share no core do not slow each other (checks 7 and 8)."""
    count = len(os.sched_getaffinity(0))
    result = bench.run("cores")
    value = result["value"] or 0.0
    table.judge("7 cores", f"{count} +-5 %", result, f"{value:.3f}", near(value, count))
    with _sleeper(pinned=max(os.sched_getaffinity(0))) as pid:
        result = bench.run("cores", pid=pid)
    value = result["value"] or 0.0
    table.judge("7 cores, pinned to one CPU", "1.0 +-0.1", result, f"{value:.3f}", abs(value - 1) <= 0.1)
    with _sleeper(limit=(150_000, 100_000)) as pid:
        result = bench.run("cores", pid=pid)
    value = result["value"] or result["evidence"].get("unsure_value") or 0.0
    table.judge("7 cores, limit 150/100 ms", "1.5 +-0.1", result, f"{value:.3f}", abs(value - 1.5) <= 0.1)
    result = bench.run("smt")
    value, siblings = result["value"] or 0.0, result["evidence"].get("smt_told")
    table.judge(
        "8 pair capacity",
        "below 1.6" if siblings else "2.0 +-0.1",
        result,
        f"{value:.3f}",
        value < 1.6 if siblings else abs(value - 2) <= 0.1,
    )


@contextlib.contextmanager
def _sleeper(*, pinned: int | None = None, limit: tuple[int, int] | None = None) -> Iterator[int]:
    """Start a sleeper with an affinity or under a limit; give its process id."""
    process = child_processes.started(("sleep", 600))
    group = Path("/sys/fs/cgroup/cpu/specmine-bench")
    try:
        if pinned is not None:
            os.sched_setaffinity(process.pid, {pinned})
        if limit is not None:
            if not group.parent.is_dir():
                group = Path("/sys/fs/cgroup/specmine-bench")
            group.mkdir(exist_ok=True)
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{limit[0]} {limit[1]}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(limit[1]))
                (group / "cpu.cfs_quota_us").write_text(str(limit[0]))
            (group / "cgroup.procs").write_text(str(process.pid))
        yield process.pid
    finally:
        process.kill()
        process.wait()
        if limit is not None:
            time.sleep(0.2)
            group.rmdir()
