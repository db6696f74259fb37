"""What the simple rule names that specmine is scored beside."""

from __future__ import annotations

from bench.faults.programs.postgres import transactions
from bench.faults.tries.rule import Seen, named_in

SECOND = 10**9


def windows(normal_ns: float, later_ns: float, every_s: int = 5) -> list[Seen]:
    """Return windows of 100 calls, which take another time from second 100 on, until second 160."""
    return [
        Seen(at * SECOND, 100, 100 * (later_ns if 100 <= at <= 160 else normal_ns)) for at in range(0, 300, every_s)
    ]


def test_what_is_furthest_above_its_normal_mean_for_three_windows_is_named_first() -> None:
    """Less than a quarter more is nothing, and neither are two windows."""
    found = {"little": windows(1e3, 1.2e3), "twice": windows(1e3, 2e3), "most": windows(1e3, 9e3, every_s=10)}
    found["once"] = [*windows(1e3, 1e3)[:20], Seen(101 * SECOND, 1, 1e6), *windows(1e3, 1e3)[26:]]
    named = named_in(found, (100 * SECOND, 160 * SECOND), [(100 * SECOND, 160 * SECOND)])
    assert named is not None
    assert named.functions == ("most", "twice")
    assert named.after_s == 10.0


def test_windows_of_other_faults_are_not_normal() -> None:
    """Nor are those of half a minute after them."""
    found = {"f": windows(1e3, 9e3)}
    faults = [(100 * SECOND, 160 * SECOND), (230 * SECOND, 290 * SECOND)]
    assert named_in(found, faults[1], faults) is None
    slower = {"f": [*found["f"][:46], *(Seen(at * SECOND, 100, 2e5) for at in range(230, 290, 5))]}
    named = named_in(slower, faults[1], faults)
    assert named is not None and named.functions == ("f",)


def test_the_transactions_of_pgbench_are_added_up() -> None:
    """Each line is of a second: how many, and how long they took on average."""
    lines = "progress: 1.0 s, 100.0 tps, lat 2.000 ms stddev 0.1, lag 0.1 ms\nprogress: 2.0 s, 300.0 tps, lat 1.000 ms"
    requests, seconds = transactions(lines)
    assert requests == 400
    assert abs(seconds - 0.5) < 1e-9
