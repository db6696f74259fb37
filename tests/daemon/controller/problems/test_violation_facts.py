"""What is known around a violation: who keeps the CPUs busy."""

from __future__ import annotations

import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.problems.violation_facts import busy_cpus


@pytest.mark.parametrize(
    ("programs", "host", "cpus", "themselves"),
    [
        ((0.3, 1.4), (0.4, 1.6), 2, True),  # most of all CPUs
        (
            (0.1, 1.0),
            (0.4, 1.8),
            2,
            False,
        ),  # 0.9 of the 1.4 CPUs that the host took more: a load beside it has the rest
        ((0.1, 1.0), (0.7, 1.8), 2, True),  # 0.9 of 1.1
        ((0.1, 1.0), (2.0, 2.0), 2, True),  # something of low priority had the CPUs before
        ((0.1, 1.0), (0.2, 1.1), 2, False),  # nobody fills them: a limit, or a CPU of its own
        ((0.5, 0.4), (0.6, 2.0), 2, False),  # others came
        ((0.5, 0.8), (0.6, 2.0), 2, False),  # others came, and slow caches make the programs' work longer
        ((0.05, 0.15), (7.9, 8.0), 8, False),  # too little to fill anything
        ((0.3, 1.0), (0.0, 0.0), 2, False),  # what the host does is not known
        ((0.3, 1.4), (0.4, 1.6), 0, False),
    ],
)
def test_programs_that_fill_the_cpus_wait_for_themselves(
    programs: tuple[float, float], host: tuple[float, float], cpus: int, themselves: bool
) -> None:
    """CPUs kept busy by them and by all, usually and now."""
    account = BudgetAccount(
        usual_cpu_rate=programs[0] * SECOND, cpu_rate=programs[1] * SECOND, usual_host_rate=host[0] * SECOND,
        host_rate=host[1] * SECOND,
    )  # fmt: skip
    text = busy_cpus(account, cpus)
    assert bool(text) == themselves
    if themselves:
        assert text == f"the watched programs keep {programs[1]} of {cpus} CPUs busy, usually {programs[0]}"
