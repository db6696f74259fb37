"""The known properties of a host as one vector, and which of them explains a longer duration. Pure.

Two specifications can be compared only if their environments can. Hauck (*Automated Experiments for Deriving
Performance-relevant Properties of Software Execution Environments*, 2013, section 5.8.3) measured 543 and 748 ms for
the same program on the same hardware under two schedulers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

SCHEMA = "specmine.environment/1"
WITHIN = 0.05
"""A cause explains an excess if the expected value differs by at most this share."""
MOST_SLICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Validity and age of a property."""

    valid: bool
    time: str | None = None
    """When it was measured, RFC 3339; None: never."""
    interval: tuple[float, float] | None = None
    reason: str | None = None
    """Why it is not valid, or why it has no value: a code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a duration depends on besides the program; None: not known, or no longer valid."""

    kernel: str = ""
    cpu_model: str = ""
    cpus: int = 0
    """CPUs that may be used."""
    hertz: int = 0
    virtual: str = ""
    """Kind of hypervisor, if it is known; '': none."""
    slice_seconds: float | None = None
    """Effective timeslice: how long a task waits while another has its turn."""
    cores: float | None = None
    """How many cores' work gets done under the limits."""
    quota_seconds: float | None = None
    """CPU time in a period; None without a limit."""
    period_seconds: float | None = None
    pair_capacity: float | None = None
    noise_ratio: float | None = None
    tick_cost_seconds: float | None = None
    steal_ratio: float | None = None
    hypervisor_slice_seconds: float | None = None
    sleep_overshoot_seconds: float | None = None
    virtualization_overhead: float | None = None
    """Time of fixed CPU work over that on a reference machine."""
    drift: float | None = None
    """Time of fixed CPU work over the best known of this CPU."""
    properties: Mapping[str, Known] = field(default_factory=dict)
    """Validity and age of what was measured, by the name of the field."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON: ``specmine.environment/1``."""
        values = asdict(self)
        for known in values["properties"].values():
            known["interval"] = list(known["interval"]) if known["interval"] else None
        return {"schema": SCHEMA, **values}


def environment_from(document: Mapping[str, Any]) -> Environment:
    """Return the vector of a document; a missing key is a value not known, and unknown keys are ignored."""
    names = {member.name for member in fields(Environment)} - {"properties"}
    properties = {
        str(name): Known(
            valid=bool(known.get("valid")),
            time=known.get("time"),
            interval=tuple(known["interval"]) if known.get("interval") else None,
            reason=known.get("reason"),
        )
        for name, known in (document.get("properties") or {}).items()
    }
    return Environment(**{name: document[name] for name in names if name in document}, properties=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What explains an excess."""

    code: str
    """slices, slice-length, quota, steal, ticks or speed."""
    times: int
    text: str
    expected_seconds: float


def cause_of(excess_seconds: float, environment: Environment, *, within: float = WITHIN) -> Cause | None:
    """Return what in the environment explains an additive excess of a duration; None if nothing known does.

    Parameters
    ----------
    excess_seconds : float
        Distance of a mode from the mode below, or of a violation from the assertion.
    environment : Environment
        As derived on the host where it happened.
    within : float
        Allowed relative difference.

    Returns
    -------
    Cause or None
        The nearest: k timeslices (waiting for k others), the pause of the CPU limit, the hypervisor's turn, k ticks.
    """
    causes: list[Cause] = []
    slice_s, quota, period = environment.slice_seconds, environment.quota_seconds, environment.period_seconds
    if slice_s:
        for times in range(1, MOST_SLICES + 1):
            text = f"+{times} timeslice{'' if times == 1 else 's'}: preempted"
            causes.append(Cause(code="slices", times=times, text=text, expected_seconds=times * slice_s))
    if quota and period:
        # one thread that used its quota pauses for the rest of the period
        causes.append(Cause(code="quota", times=1, text="the pause of the CPU limit", expected_seconds=period - quota))
    if environment.hypervisor_slice_seconds:
        text = "the hypervisor's turn"
        causes.append(Cause(code="steal", times=1, text=text, expected_seconds=environment.hypervisor_slice_seconds))
    if environment.tick_cost_seconds:
        for times in (1, 2):
            text = f"{times} timer tick{'' if times == 1 else 's'}"
            causes.append(
                Cause(code="ticks", times=times, text=text, expected_seconds=times * environment.tick_cost_seconds)
            )
    near = [cause for cause in causes if abs(excess_seconds / cause.expected_seconds - 1) <= within]
    return min(near, key=lambda cause: (abs(excess_seconds / cause.expected_seconds - 1), cause.times), default=None)


def factor_of(ratio: float, base: Environment, new: Environment, *, within: float = WITHIN) -> Cause | None:
    """Return which difference of two hosts explains that all durations changed by one factor; None if none does.

    Parameters
    ----------
    ratio : float
        New over base.
    base, new : Environment
        As derived on each side.

    Notes
    -----
    Durations grow by the ratio of the times of fixed work, and by 1 / (1 - steal). The ratio comes from
    ``virtualization_overhead`` (one reference for all hosts), else from ``drift`` (only for the same CPU model).
    """
    causes: list[Cause] = []
    speed = _speed(base, new)
    if speed is not None and abs(speed - 1) > within:
        text = f"fixed CPU work takes {speed:.3g} times as long there"
        causes.append(Cause(code="speed", times=1, text=text, expected_seconds=speed))
    if base.steal_ratio is not None and new.steal_ratio is not None:
        stolen = (1 - base.steal_ratio) / max(1e-9, 1 - new.steal_ratio)
        if abs(stolen - 1) > within:
            shares = f"{100 * new.steal_ratio:.3g} %, not {100 * base.steal_ratio:.3g} %"
            text = f"the hypervisor takes {shares} of the CPU time"
            causes.append(Cause(code="steal", times=1, text=text, expected_seconds=stolen))
    near = [cause for cause in causes if abs(ratio / cause.expected_seconds - 1) <= within]
    return min(near, key=lambda cause: abs(ratio / cause.expected_seconds - 1), default=None)


def moved_slice(shift_seconds: float, base: Environment, new: Environment, *, within: float = WITHIN) -> Cause | None:
    """Return the cause if a class moved because the timeslices differ; None if not.

    A wait for k other tasks becomes k times the difference longer.
    """
    if base.slice_seconds is None or new.slice_seconds is None:
        return None
    difference = new.slice_seconds - base.slice_seconds
    if abs(difference) <= within * base.slice_seconds:
        return None
    for times in range(1, MOST_SLICES + 1):
        if abs(shift_seconds / (times * difference) - 1) <= within:
            text = (
                f"the timeslice is {new.slice_seconds * 1e3:.3g} ms there, not {base.slice_seconds * 1e3:.3g} ms:"
                f" calls that wait for {times} other{'' if times == 1 else 's'} wait that much longer"
            )
            return Cause(code="slice-length", times=times, text=text, expected_seconds=times * difference)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A property in which two environments differ; None on a side where it is not known."""

    name: str
    base: float | str | None
    new: float | str | None

    @property
    def known(self) -> bool:
        """True if both sides know it."""
        return self.base is not None and self.new is not None


_RELATIVE = {
    "cpus": 0.0,
    "hertz": 0.0,
    "slice_seconds": 0.05,
    "cores": 0.05,
    "quota_seconds": 0.03,
    "period_seconds": 0.03,
    "pair_capacity": 0.1,
    "tick_cost_seconds": 0.5,
    "hypervisor_slice_seconds": 0.1,
    "sleep_overshoot_seconds": 0.3,
    "virtualization_overhead": 0.05,
    "drift": 0.05,
}
"""Relative difference of a property between two runs on one host; only more than that is a difference."""
_ABSOLUTE = {"noise_ratio": 0.01, "steal_ratio": 0.01}
_WORDS = ("kernel", "cpu_model", "virtual")


def differences(base: Environment, new: Environment) -> tuple[Difference, ...]:
    """Return in what two environments differ; properties that both know come first."""
    differing = []
    for name in (*_WORDS, *_RELATIVE, *_ABSOLUTE):
        was, now = getattr(base, name) or None, getattr(new, name) or None
        if name in ("steal_ratio", "noise_ratio"):
            was, now = getattr(base, name), getattr(new, name)
        if was != now and not (was is not None and now is not None and _alike(name, was, now)):
            differing.append(Difference(name=name, base=was, new=now))
    return tuple(sorted(differing, key=lambda difference: not difference.known))


def common(vectors: Sequence[Environment]) -> Environment | None:
    """Return the properties that several hosts share; what differs counts as not known. None without a host."""
    if not vectors:
        return None
    unlike = {difference.name for other in vectors[1:] for difference in differences(vectors[0], other)}
    nothing = Environment()
    return replace(vectors[0], **{name: getattr(nothing, name) for name in unlike})


def _alike(name: str, was: Any, now: Any) -> bool:
    if name in _WORDS:
        return False
    if name in _ABSOLUTE:
        return abs(float(now) - float(was)) <= _ABSOLUTE[name]
    return math.isclose(float(was), float(now), rel_tol=_RELATIVE[name])


def _speed(base: Environment, new: Environment) -> float | None:
    if base.virtualization_overhead and new.virtualization_overhead:
        return new.virtualization_overhead / base.virtualization_overhead
    if base.drift and new.drift and base.cpu_model == new.cpu_model:
        return new.drift / base.drift
    return None
