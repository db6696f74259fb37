"""The host in one vector, as far as its properties are known, and what in it explains an excess of a duration. Pure.

Two specifications compare only where their environments do: the thesis measured 543 and 748 ms for the same program
on the same hardware under two schedulers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .results import of_this_host
from .vocabulary import Host

WITHIN = 0.05
"""An excess is a cause's if it differs by no more than this."""
MOST_SLICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a duration depends on besides the program; None: not known, or not valid any more."""

    kernel: str = ""
    cpu_model: str = ""
    cpus: int = 0
    hertz: int = 0
    slice_seconds: float | None = None
    cores: float | None = None
    quota_seconds: float | None = None
    """CPU time in a period; None without a limit."""
    period_seconds: float | None = None
    pair_capacity: float | None = None
    noise_ratio: float | None = None
    tick_cost_seconds: float | None = None
    steal_ratio: float | None = None
    hypervisor_slice_seconds: float | None = None
    sleep_overshoot_seconds: float | None = None
    drift: float | None = None
    """Time of fixed CPU work over the best known of this CPU."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"schema": "specmine.environment/1", **asdict(self)}


def environment_of(entries: Mapping[str, Any], host: Host) -> Environment:
    """Return the vector from a journal's entries, leaving out what no longer holds for the host."""

    def valid(name: str) -> Mapping[str, Any]:
        result = (entries.get(name) or {}).get("valid")
        return result if result and not of_this_host(result, host) else {"value": None, "evidence": {}}

    # the drift is known also where no overhead can be stated
    last = (entries.get("virtualization-constant") or {}).get("last") or {"evidence": {}}
    quota = valid("quota")
    return Environment(
        kernel=host.kernel,
        cpu_model=host.cpu_model,
        cpus=len(host.cpus),
        hertz=host.hertz,
        slice_seconds=valid("timeslice")["value"],
        cores=valid("cores")["value"],
        quota_seconds=quota["evidence"].get("quota_seconds"),
        period_seconds=quota["evidence"].get("period_seconds"),
        pair_capacity=valid("smt")["value"],
        noise_ratio=valid("noise")["value"],
        tick_cost_seconds=valid("noise")["evidence"].get("lost_a_tick_seconds"),
        steal_ratio=valid("steal")["value"],
        hypervisor_slice_seconds=valid("steal")["evidence"].get("hypervisor_slice_seconds"),
        sleep_overshoot_seconds=valid("timers")["value"],
        drift=last["evidence"].get("drift", {}).get("integer"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What explains an excess."""

    code: str
    """slices, quota, steal or ticks."""
    times: int
    text: str
    expected_seconds: float


def cause_of(excess_seconds: float, environment: Environment, *, within: float = WITHIN) -> Cause | None:
    """Return what of the environment an additive excess of a duration is, None if it is nothing known.

    Parameters
    ----------
    excess_seconds : float
        A mode's distance from the mode below, or a violation's from what was asserted.
    environment : Environment
        As derived on the host where it happened.
    within : float
        Relative difference that is allowed.

    Returns
    -------
    Cause or None
        The nearest: k timeslices (waiting for k others), the pause of the CPU limit, the hypervisor's turn, k ticks.
    """
    found: list[Cause] = []
    slice_s, quota, period = environment.slice_seconds, environment.quota_seconds, environment.period_seconds
    if slice_s:
        for times in range(1, MOST_SLICES + 1):
            text = f"+{times} timeslice{'' if times == 1 else 's'}: preempted"
            found.append(Cause(code="slices", times=times, text=text, expected_seconds=times * slice_s))
    if quota and period:
        # one thread pauses for all of the period that its quota leaves
        found.append(Cause(code="quota", times=1, text="the pause of the CPU limit", expected_seconds=period - quota))
    if environment.hypervisor_slice_seconds:
        text = "the hypervisor's turn"
        found.append(Cause(code="steal", times=1, text=text, expected_seconds=environment.hypervisor_slice_seconds))
    if environment.tick_cost_seconds:
        for times in (1, 2):
            text = f"{times} timer tick{'' if times == 1 else 's'}"
            found.append(
                Cause(code="ticks", times=times, text=text, expected_seconds=times * environment.tick_cost_seconds)
            )
    near = [each for each in found if abs(excess_seconds / each.expected_seconds - 1) <= within]
    return min(near, key=lambda each: (abs(excess_seconds / each.expected_seconds - 1), each.times), default=None)
