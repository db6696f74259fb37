"""The daemon's schedule on a simulated clock: within its purse, spread out, patient after failures."""

from __future__ import annotations

import itertools
from dataclasses import replace

from specmine.experiments.library import EXPERIMENTS, REPEATED
from specmine.experiments.runner.schedule import (
    ALLOWANCE_S,
    HOUR_NS,
    Ledger,
    Rules,
    available_s,
    next_experiment,
    offset_ns,
)
from specmine.experiments.types import SECOND

RULES = Rules(names=REPEATED)


def _live(
    hours: float, *, valid: bool = True, seed: str = "host", cpus: int = 2
) -> tuple[Ledger, list[tuple[float, str]]]:
    """Look every 5 s for some hours; return the ledger and what ran when, in hours."""
    ledger = Ledger(began_ns=0)
    done: dict[str, int] = {}
    ran: list[tuple[float, str]] = []
    now = 0
    while now < hours * HOUR_NS:
        ages = {name: now - at for name, at in done.items()}
        name = next_experiment(EXPERIMENTS, RULES, ledger, ages, costs_s={}, cpus=cpus, seed=seed, now_ns=now)
        if name is not None:
            cost = EXPERIMENTS[name].cost
            failures = {**ledger.failures, name: 0 if valid else ledger.failures.get(name, 0) + 1}
            ledger = replace(
                ledger, spent_s=ledger.spent_s + cost, ran_ns={**ledger.ran_ns, name: now}, failures=failures
            )
            if valid:
                done[name] = now
            ran.append((now / HOUR_NS, name))
        now += 5 * SECOND
    return ledger, ran


def test_an_hour_after_the_start_costs_at_most_a_thousandth_of_a_cpu() -> None:
    """After the first results every further hour stays under 3.6 CPU seconds on average."""
    first, _ = _live(1)
    later, _ = _live(25)
    assert first.spent_s <= ALLOWANCE_S + 3.6
    assert (later.spent_s - first.spent_s) / 24 <= 3.6


def test_the_purse_is_never_overdrawn() -> None:
    """Nothing starts that is not paid for, even if every try fails."""
    for valid in (True, False):
        ledger, ran = _live(12, valid=valid)
        assert available_s(ledger, RULES, 12 * HOUR_NS) >= 0
        assert ran


def test_everything_wanted_is_known_within_some_hours() -> None:
    """Each configured experiment gets its turn."""
    _, ran = _live(8)
    assert {name for _, name in ran} == set(RULES.names)


def test_nothing_runs_right_after_the_start_and_hosts_differ() -> None:
    """The first waits for the delay; two hosts do not run in step."""
    _, ran = _live(1)
    assert ran[0][0] >= RULES.delay_ns / HOUR_NS
    _, other = _live(1, seed="another")
    assert ran != other


def test_what_holds_for_a_boot_is_not_repeated() -> None:
    """Weights and pairs do not change: once they are valid they are left alone; noise is looked at again."""
    _, ran = _live(40)
    names = [name for _, name in ran]
    assert names.count("smt") == names.count("weights") == 1
    assert names.count("noise") >= 3
    assert not {"balancing", "placement", "virtualization-load"} & set(names)


def test_failures_wait_longer_each_time() -> None:
    """An experiment that never succeeds is tried at growing distances."""
    _, ran = _live(24, valid=False)
    times = [at for at, name in ran if name == "timers"]
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert waits == sorted(waits)
    assert waits[-1] >= 4 * waits[0]


def test_a_large_host_does_not_load_all_its_cpus_for_nothing() -> None:
    """What loads every CPU of a host with 64 does not fit the purse and is not started."""
    _, ran = _live(10, cpus=64)
    assert "cores" not in {name for _, name in ran}


def test_offsets_fill_their_range() -> None:
    """Offsets lie within the range and are spread over it."""
    found = sorted(offset_ns(f"host{number}", "noise", 1000) for number in range(200))
    assert 0 <= found[0] < 100
    assert 900 < found[-1] < 1000
