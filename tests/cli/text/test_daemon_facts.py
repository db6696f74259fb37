"""The status on one screen: programs, functions, cost; what runs and is not seen is said first."""

from __future__ import annotations

from typing import Any

from specmine.cli.text.daemon_facts import facts, not_seen, short_of_cpu, unmatched_names

STATUS: dict[str, Any] = {
    "version": "0.1.0",
    "started": "2026-11-22T01:12:40.000Z",
    "updated": "2026-11-22T03:12:40.000Z",
    "probes": "on",
    "watched": [
        {"program": "nginx", "chosen": True, "processes": 0, "last_call": None},
        {"program": "shop", "chosen": True, "processes": 4, "last_call": "2026-11-22T03:12:39.500Z"},
    ],
    "lifetimes": [
        {"program": "shop", "build_id": "1f2e3d4c5b6a"},
        {"program": "shop", "build_id": "1f2e3d4c5b6a"},
        {"program": "shop", "build_id": "0a0b0c0d0e0f"},
    ],
    "functions": {"single": 30, "timing": 8, "explaining": 3, "waiting": 9, "refused": 6},
    "budget": {
        "overhead": {"promised_ratio": 0.01, "spent_ratio": 0.0062, "floor_seconds": 0.001},
        "agent": {"promised_ratio": 0.01, "spent_ratio": 0.0071},
    },
    "resident_bytes": 96_000_000,
    "store": {"path": "/var/lib/specmine/store.db", "failures": 0},
    "notes": [],
}


def test_one_screen() -> None:
    """What is not asserted, the programs, and the cost beside its limits."""
    assert list(facts(STATUS)) == [
        "Not asserted: 11 being learned, 9 waiting, 6 cannot be timed.",
        "",
        "PROGRAM  BUILD          PROCESSES  LAST CALL COUNTED",
        "nginx    -            not running                  -",
        "shop     1f2e3d4c +1            4                now",
        "",
        "Overhead: 0.6 % of the programs' CPU time (limit 1 %, or 1 ms/s)",
        "specmine 0.1.0: 0.7 % of one CPU (limit 1 %), 96 MB, up 2 h",
        "More: specmine status --verbose",
    ]
    assert not_seen(STATUS) == []


def test_what_keeps_functions_from_being_learned_is_said() -> None:
    """Which budget binds, how many functions wait for it, and what more of it would bring."""
    overhead = {**STATUS["budget"]["overhead"], "waiting_functions": 30, "waiting_seconds": 240.0}
    agent = {**STATUS["budget"]["agent"], "waiting_functions": 1}
    said = list(facts({**STATUS, "budget": {"overhead": overhead, "agent": agent}}))
    assert said[-3:-1] == [
        "1 function waits for specmine's own CPU time (budget.agent); with 2 % they are learned about twice as fast",
        "30 functions wait for the overhead budget: some 4 min more, with twice the budget 2 min",
    ]


def test_a_program_that_runs_and_makes_no_call_is_not_seen() -> None:
    """Not seen is not well."""
    silent = {"program": "shop", "chosen": True, "processes": 4, "last_call": "2026-11-22T03:09:30.000Z"}
    (line,) = not_seen({**STATUS, "watched": [silent]})
    assert line.startswith("Not seen: shop (4 processes) made no call in 3 min 10 s")


def test_what_is_wrong_with_specmine_itself_is_said() -> None:
    """Probes that are off, a store that fails, notes."""
    broken = {"probes": "off", "kill_switch": "/run/specmine/off", "store": {"path": "s.db", "failures": 3}}
    said = "\n".join(facts({**STATUS, **broken, "notes": ["host experiments are skipped"]}))
    assert "All probes are off: /run/specmine/off. Next: specmine on" in said
    assert "The store fails: 3 attempts to write to s.db" in said
    assert "Note: host experiments are skipped" in said


def test_a_start_may_cost_more() -> None:
    """In the first ten minutes the limit does not hold yet, and what loading took is said."""
    agent = {**STATUS["budget"]["agent"], "spent_ratio": 0.088, "start_seconds": 2.71}
    young = {**STATUS, "started": "2026-11-22T03:11:48.000Z", "budget": {"agent": agent}}
    assert (
        "specmine 0.1.0: 8.8 % of one CPU (limit 1 % after the first 10 min, 2.7 s of it to load), 96 MB, up 52 s"
        in facts(young)
    )


def test_what_answers_take_is_said_if_it_is_much() -> None:
    """A third of all and more: somebody asks all the time."""
    agent = {"promised_ratio": 0.01, "spent_ratio": 0.12, "spent_seconds": 430.0, "answers_seconds": 390.0}
    asked = {**STATUS, "budget": {"agent": agent}}
    own = next(line for line in facts(asked) if line.startswith("specmine 0.1.0"))
    assert "12 % of one CPU (limit 1 %; 91 % of it for answers to requests)" in own
    agent["answers_seconds"] = 100.0
    own = next(line for line in facts(asked) if line.startswith("specmine 0.1.0"))
    assert "answers" not in own


def test_a_program_that_is_short_of_cpu_time_is_named() -> None:
    """With who keeps it from that; nothing is said of others."""
    short = {**STATUS["watched"][1], "short_of_cpu": "the hypervisor took 30 % of the CPUs, usually 1 %"}
    said = short_of_cpu({**STATUS, "watched": [STATUS["watched"][0], short]})
    assert said == ["Short of CPU time: shop: the hypervisor took 30 % of the CPUs, usually 1 %."]
    assert short_of_cpu(STATUS) == []


def test_a_name_that_matches_nothing_is_not_watched() -> None:
    """With the names that may have been meant, and what to do."""
    names = [
        {"name": "procesCommand", "programs": ["redis"], "alike": ["processCommand", "processCommands"]},
        {"name": "exec_simple_query", "programs": ["pg", "redis"], "alike": []},
    ]
    assert unmatched_names({**STATUS, "unmatched_names": names}) == [
        "Not watched: no function of redis matches procesCommand; did you mean processCommand or processCommands? "
        "Next: correct functions.watch",
        "Not watched: no function of pg and redis matches exec_simple_query. Next: correct functions.watch",
    ]
    assert unmatched_names(STATUS) == []
