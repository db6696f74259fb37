"""Assertions as text: by program, and with what is left out."""

from __future__ import annotations

from typing import Any

from specmine.cli.text.specification import MOST_TIMED, heading, specification

LIFETIMES = [
    {"program": "redis", "path": "/usr/bin/redis-server", "build_id": "aa01", "processes": 1},
    {"program": "nginx", "path": "/usr/sbin/nginx", "build_id": "bb00", "processes": 0},
    {"program": "nginx", "path": "/usr/sbin/nginx", "build_id": "bb02", "processes": 2},
]
PROGRAM = {"name": "redis", "path": "/usr/bin/redis-check-rdb", "build_id": "aa01", "lifetimes": LIFETIMES}


def entry(name: str, program: str, *, state: str = "single", calls: int = 10) -> dict[str, Any]:
    """Return a function whose calls take 36 us."""
    quantiles = {each: {"seconds": 3.6e-5, "low": None, "high": None} for each in ("p50", "p90", "p99")}
    behaviour = {
        "expression": "true",
        "formula": [],
        "calls": calls,
        "paths": 0,
        "shares": [1.0],
        "quantiles": quantiles,
    }
    return {
        "function": name, "module": program, "program": program, "in_program": True, "build_id": "ab", "state": state,
        "calls": calls, "quantiles": quantiles, "classes": [{"upper_seconds": None, "share": 1.0, "inside": []}],
        "borders_seconds": [], "behaviours": [behaviour] if state == "single" else [], "reason": None,
    }  # fmt: skip


def document(*entries: dict[str, Any]) -> dict[str, Any]:
    """Return a specification of two programs."""
    return {"program": PROGRAM, "collection": {"seconds": 60.0}, "functions": list(entries)}


def test_functions_stand_below_their_own_program() -> None:
    """Each program once, the busiest function first, with its file and build."""
    both = document(entry("serve", "nginx", calls=30), entry("call", "redis", calls=20), entry("log", "nginx"))
    said = [line for line in specification(both, 80) if line]
    begins = [line.split(":")[0] for line in said if not line.startswith(" ")]
    assert begins == [
        "Watched for 1 min.",
        "nginx",
        "serve (nginx)",
        "log (nginx)",
        "redis",
        "call (redis)",
        begins[-1],
    ]
    assert "nginx: /usr/sbin/nginx (build bb02)" in said
    assert "redis: /usr/bin/redis-check-rdb (build aa01)" in said


def test_one_program_is_named_once_whichever_it_is() -> None:
    """That which was chosen with --program, too."""
    said = specification(document(entry("serve", "nginx")), 80)
    assert said[0] == "nginx: /usr/sbin/nginx (build bb02)"
    assert not any("redis" in line for line in said)
    assert specification(document(entry("call", "redis")), 80)[0] == "redis: /usr/bin/redis-check-rdb (build aa01)"
    every = heading(document(entry("serve", "nginx"), entry("call", "redis"), entry("lock", "nginx,redis")), 80)
    assert [line.split(":")[0] for line in every] == ["nginx", "redis", "Watched for 1 min."]


def test_what_is_left_out_is_counted() -> None:
    """With the option that shows it."""
    few = [entry(f"f{number}", "redis", state="timing") for number in range(MOST_TIMED)]
    assert not any("--format json" in line for line in specification(document(*few), 80, timed=True))
    more = [*few, *(entry(f"g{number}", "redis", state="timing") for number in range(12))]
    assert "  12 more: --format json" in specification(document(*more), 80, timed=True)
