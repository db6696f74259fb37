"""Slices, shares, balancing: experiments find again what sched_setattr and nice forced (checks 1-6, 9, 10, 19)."""

from __future__ import annotations

from bench.host.checks.table import Bench, Table, near
from specmine.experiments.types import MS


def slices(bench: Bench, table: Table) -> None:
    """Forced slices come out as the tick-driven scheduler must give them (checks 1 to 3)."""
    result = bench.run("timeslice")
    evidence = result["evidence"]
    gaps = evidence.get("gap_beside_two_seconds", 0.0)
    value = result["value"] or 0.0
    truth = result["ground_truth"] or 0.0
    table.judge("1 default slice", f"{truth * 1e3:g} ms +-5 %", result, f"{value * 1e3:.3f} ms", near(value, truth))
    table.judge(
        "2 next to two, to next to one",
        "2.0 +-0.1",
        result,
        f"{gaps / (value or 1):.3f}",
        near(gaps / (value or 1), 2),
    )
    for asked, expected in ((5, (8,)), (10, (12,)), (50, (48, 52)), (100, (100, 104))):
        result = bench.run("timeslice", parameters={"slice": asked * MS})
        value = 1e3 * (result["value"] or result["evidence"].get("unsure_value") or 0.0)
        wanted = " or ".join(map(str, expected))
        table.judge(
            f"3 slice {asked} ms forced",
            f"{wanted} ms",
            result,
            f"{value:.2f} ms",
            any(abs(value - each) < 0.3 for each in expected),
        )
    result = bench.run("timeslice", parameters={"policy": "rr"})
    table.row("4 RR without --dangerous", "refused", result["reason"]["code"], result["reason"]["code"] == "dangerous")
    result = bench.run("timeslice", parameters={"policy": "rr"}, dangerous=True)
    value = result["value"] or result["evidence"].get("unsure_value") or 0.0
    truth = result["ground_truth"] or 0.1
    found = f"{value * 1e3:.2f} ms"
    table.judge("4 RR with it", f"{truth * 1e3:g} ms +-2 %", result, found, near(value, truth, 0.02))


def thesis(bench: Bench, table: Table) -> None:
    """The thesis' own set-up is refused where it cannot work, and right where it can (checks 5 and 6)."""
    clusters = {"method": "clusters", "demand": 20 * MS, "iterations": 60}
    result = bench.run("timeslice", parameters=clusters)
    code = result["reason"]["code"] if result["reason"] else "a value"
    table.judge("5 20 ms demand, default slice", "single-cluster", result, code, code == "single-cluster")
    for asked, expected in ((50, 52), (100, 104)):
        result = bench.run("timeslice", parameters={**clusters, "slice": asked * MS, "iterations": 100})
        value = 1e3 * (result["value"] or result["evidence"].get("unsure_value") or 0.0)
        found = result["evidence"].get("interrupted_share", 0.0)
        # 0.385 and 0.19 of the calls of 20 ms; the CPU may have taken more or less for them
        share = 1e3 * result["evidence"].get("needed_seconds", 0.02) / expected
        table.judge(
            f"6 20 ms demand, slice {asked} ms",
            f"{expected} ms +-5 %, share {share:.3f} +-0.08",
            result,
            f"{value:.2f} ms, {found:.3f}",
            (near(value, expected) and abs(found - share) <= 0.08),
        )


def shares(bench: Bench, table: Table) -> None:
    """Shares follow the weight table inside a group, and the group's outside of it (checks 9 and 10)."""
    result = bench.run("weights")
    found = result["evidence"].get("shares", {})
    for label, expected in (("0:5:run", 0.753), ("0:10:run", 0.903), ("19:19:run", 0.5), ("0:5:other", 0.5)):
        share = found.get(label, 0.0)
        number = "10 nice 0 next to 5 of another group" if "other" in label else f"9 nice {label[:-4]}"
        table.judge(number, f"{expected} +-0.02", result, f"{share:.3f}", abs(share - expected) <= 0.02)


def balance(bench: Bench, table: Table) -> None:
    """Placement and balancing are what this kernel is known to do (check 19)."""
    for name, expected in (("balancing", "immediate"), ("placement", "none")):
        result = bench.run(name, dangerous=True)
        value = result["value"] or "-"
        table.judge(f"19 {name}", expected, result, value, value == expected)
