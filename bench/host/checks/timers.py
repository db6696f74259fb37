"""Timers, clocks, noise, steal, and a sampling loop without system calls (checks 17, 20, 21)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.host.checks.table import Bench, Table
from bench.lib.child_processes import started
from specmine.experiments.load.worker_binary import worker_binary


def host(bench: Bench, table: Table) -> None:
    """Timers, clocks, noise and steal agree with what the kernel reports (checks 20 and 21)."""
    result = bench.run("timers")
    found = result["evidence"]
    value = 1e6 * (result["value"] or found.get("unsure_value") or 0.0)
    table.judge("20 sleep overshoot", "50 to 110 us", result, f"{value:.1f} us", 50 <= value <= 110)
    least, long = (found.get(f"overshoot_{name}_slack_seconds", 0.0) for name in ("least", "5_ms"))
    table.judge("20 with slack 1 ns", "< 40 us", result, f"{least * 1e6:.1f} us", least < 40e-6)
    table.judge("20 with slack 5 ms", "5.0 to 5.15 ms", result, f"{long * 1e3:.3f} ms", 5e-3 <= long <= 5.15e-3)
    clock = found.get("clock_seconds") or 0.0
    table.judge("20 clock reading", "< 100 ns", result, f"{clock * 1e9:.1f} ns", 0 < clock < 100e-9)
    result = bench.run("noise")
    found, value = result["evidence"], result["value"] or 0.0
    rate, ticks = found.get("interruptions_per_second", 0.0), found.get("timer_interrupts_per_second", 0.0)
    table.judge("21 interruptions", f"about {ticks:.0f}/s", result, f"{rate:.0f}/s", 0.7 <= rate / (ticks or 1) <= 2)
    tick = found.get("lost_a_tick_seconds", 0.0)
    table.judge("21 cost of a tick", "10 to 60 us", result, f"{tick * 1e6:.1f} us", 10e-6 <= tick <= 60e-6)
    table.judge("21 lost on an idle CPU", "<= 1.5 %", result, f"{100 * value:.2f} %", value <= 0.015)
    result = bench.run("steal")
    value = result["value"] or 0.0
    truth = result["ground_truth"]
    table.judge("steal", f"{truth} +-1 %", result, f"{value:.4f}", abs(value - truth) <= 0.01)


def loop(bench: Bench, table: Table) -> None:
    """The sampling loop makes no system call: it would move the preemption that it measures (check 17)."""
    if shutil.which("strace") is None:
        table.row("17 system calls in the loop", "none", "strace is not installed", None)
        return
    go, start = os.pipe()
    ready_out, ready_in = os.pipe()
    page = os.memfd_create("stop")
    os.ftruncate(page, 4096)
    command = [
        worker_binary().path,
        "sensor=gaps",
        f"go={go}",
        f"ready={ready_in}",
        f"page={page}",
        "seconds_ns=500000000",
    ]
    with tempfile.NamedTemporaryFile() as trace:
        process = started(
            ("strace", "-o", trace.name, *command), pass_fds=(go, ready_in, page), stdout=subprocess.DEVNULL
        )
        os.read(ready_out, 1)
        os.close(start)
        process.wait(20)
        lines = Path(trace.name).read_text().splitlines()
    for fd in (go, ready_out, ready_in, page):
        os.close(fd)
    first = next(at for at, line in enumerate(lines) if line.startswith("getrusage"))
    after = next(at for at, line in enumerate(lines) if at > first and line.startswith("clock_gettime(CLOCK_PROCESS"))
    between = [line for line in lines[after + 1 :] if not line.startswith("getrusage")]
    calls = between[: next(at for at, line in enumerate(between) if "CLOCK_PROCESS" in line or "schedstat" in line)]
    table.row("17 system calls in 0.5 s of sampling", "none", str(len(calls)), not calls)
