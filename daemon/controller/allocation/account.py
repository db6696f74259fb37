"""The overhead budget of the watched programs: a token bucket that keeps the promise.

It earns ``Settings.overhead`` of the CPU time that the program used, at least the floor, and spends what the probes
took. Plans are made in rates, ns of cost per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from specmine.daemon.config.settings import SECOND, Settings
from specmine.model.batch import Batch, Spent

SMOOTHED_NS = 3 * SECOND
"""Over this time the CPU time of the programs is averaged."""
USUAL_NS = 900 * SECOND
"""Over this time what they usually take is."""
KNOWN_NS = 120 * SECOND
"""So long after the start it is not known."""
MEMORY_NS = 5 * SECOND
"""The account holds what is earned in this time at most; an idle daemon does not save up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAccount:
    """The overhead budget of the watched programs, as it stands."""

    rate: float = 0.0
    """Budget, ns of cost per second of wall-clock time, over the last seconds."""
    balance_ns: float = 0.0
    """Earned and not spent; negative after an overrun."""
    earned_ns: float = 0.0
    """Since the start."""
    cpu_rate: float = 0.0
    """CPU time of the programs, ns per second."""
    usual_cpu_rate: float = 0.0
    """The same over the last quarter of an hour, or since the start."""
    host_rate: float = 0.0
    """CPU time of all processes of the host, ns per second, ..."""
    usual_host_rate: float = 0.0
    """... and over the last quarter of an hour, as far as it is known."""
    host_busy_ns: int = 0
    spent: Spent = field(default_factory=Spent)
    began_ns: int = 0
    now_ns: int = 0


def with_batch(account: BudgetAccount, batch: Batch, settings: Settings) -> BudgetAccount:
    """Return the account after a batch: it earned for the time that passed, and spent what the probes took."""
    passed = max(0, batch.now_ns - account.now_ns)
    cpu = max(0, batch.spent.program_cpu_ns - account.spent.program_cpu_ns)
    took = max(0.0, batch.spent.overhead_ns - account.spent.overhead_ns)
    # CPU time comes in lumps: the floor is compared with its mean over seconds, else each gap would earn extra
    age = batch.now_ns - account.began_ns
    cpu_rate, usual_cpu_rate = _followed(account.cpu_rate, account.usual_cpu_rate, cpu, passed, age)
    host_rate, usual_host_rate = account.host_rate, account.usual_host_rate
    if account.host_busy_ns and batch.host_busy_ns:
        busy = max(0, batch.host_busy_ns - account.host_busy_ns)
        host_rate, usual_host_rate = _followed(host_rate, usual_host_rate, busy, passed, age)
    rate = max(settings.overhead * cpu_rate, float(settings.floor_ns))
    earned = rate * passed / SECOND
    balance = min(account.balance_ns + earned - took, rate * MEMORY_NS / SECOND)
    return BudgetAccount(
        rate=rate,
        balance_ns=balance,
        earned_ns=account.earned_ns + earned,
        cpu_rate=cpu_rate,
        usual_cpu_rate=usual_cpu_rate,
        host_rate=host_rate,
        usual_host_rate=usual_host_rate,
        host_busy_ns=batch.host_busy_ns,
        spent=batch.spent,
        began_ns=account.began_ns,
        now_ns=batch.now_ns,
    )


def _followed(rate: float, usual: float, used_ns: int, passed_ns: int, age_ns: int) -> tuple[float, float]:
    """Return a rate of CPU time over the last seconds, and over the last quarter of an hour, after some more of it."""
    fade = min(1.0, passed_ns / max(1, min(SMOOTHED_NS, age_ns)))
    rate += fade * ((used_ns * SECOND / passed_ns if passed_ns else 0.0) - rate)
    return rate, usual + min(1.0, passed_ns / max(1, min(USUAL_NS, age_ns))) * (rate - usual)


def usual_rate(account: BudgetAccount, settings: Settings) -> float:
    """Return the budget of what the programs usually use, ns of cost per second; infinite while that is not known."""
    if account.now_ns - account.began_ns < KNOWN_NS:
        return math.inf
    return max(settings.overhead * account.usual_cpu_rate, float(settings.floor_ns))


def spendable(account: BudgetAccount) -> float:
    """Return the rate to plan with, ns per second: debts are paid back at once, savings are used slowly.

    What a second brings is kept, since on-phases begin at random and several may meet.
    """
    debt, savings = min(0.0, account.balance_ns), max(0.0, account.balance_ns - account.rate)
    rate = 0.9 * account.rate + debt + savings / 5
    return min(max(rate, 0.02 * account.rate), 1.5 * account.rate)
