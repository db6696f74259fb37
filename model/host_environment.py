"""The host in one vector, as far as its properties are known, and what in it explains a longer duration. Pure.

Two specifications compare only where their environments do: Hauck (*Automated Experiments for Deriving
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
"""An excess is a cause's if it differs by no more than this."""
MOST_SLICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """How far a property is to be believed."""

    valid: bool
    time: str | None = None
    """When it was measured, RFC 3339; None: never. Its age is what has passed since."""
    interval: tuple[float, float] | None = None
    reason: str | None = None
    """Why it is not valid, or why it has no value: a code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a duration depends on besides the program; None: not known, or not valid any more."""

    kernel: str = ""
    cpu_model: str = ""
    cpus: int = 0
    """CPUs that may be used."""
    hertz: int = 0
    virtual: str = ""
    """Kind of hypervisor as far as it shows, '' for none."""
    slice_seconds: float | None = None
    """Effective timeslice: how long a task waits while another has its turn."""
    cores: float | None = None
    """Cores' worth of work that gets done, limits included."""
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
        told = asdict(self)
        for each in told["properties"].values():
            each["interval"] = list(each["interval"]) if each["interval"] else None
        return {"schema": SCHEMA, **told}


def environment_from(document: Mapping[str, Any]) -> Environment:
    """Return the vector of a document; what is missing or unknown in it is not known."""
    names = {each.name for each in fields(Environment)} - {"properties"}
    properties = {
        str(name): Known(
            valid=bool(each.get("valid")),
            time=each.get("time"),
            interval=tuple(each["interval"]) if each.get("interval") else None,
            reason=each.get("reason"),
        )
        for name, each in (document.get("properties") or {}).items()
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


def factor_of(ratio: float, base: Environment, new: Environment, *, within: float = WITHIN) -> Cause | None:
    """Return what of two hosts explains that all durations changed by one factor, None if nothing known does.

    Parameters
    ----------
    ratio : float
        New over base.
    base, new : Environment
        As derived on each side.

    Notes
    -----
    The same work takes longer by the ratio of the times of fixed work (``virtualization_overhead`` against one
    reference, else ``drift`` on one CPU model), and by 1 / (1 - steal).
    """
    found: list[Cause] = []
    speed = _speed(base, new)
    if speed is not None and abs(speed - 1) > within:
        text = f"fixed CPU work takes {speed:.3g} times as long there"
        found.append(Cause(code="speed", times=1, text=text, expected_seconds=speed))
    if base.steal_ratio is not None and new.steal_ratio is not None:
        stolen = (1 - base.steal_ratio) / max(1e-9, 1 - new.steal_ratio)
        if abs(stolen - 1) > within:
            shares = f"{100 * new.steal_ratio:.3g} %, not {100 * base.steal_ratio:.3g} %"
            text = f"the hypervisor takes {shares} of the CPU time"
            found.append(Cause(code="steal", times=1, text=text, expected_seconds=stolen))
    near = [each for each in found if abs(ratio / each.expected_seconds - 1) <= within]
    return min(near, key=lambda each: abs(ratio / each.expected_seconds - 1), default=None)


def moved_slice(shift_seconds: float, base: Environment, new: Environment, *, within: float = WITHIN) -> Cause | None:
    """Return that a class moved since the hosts' timeslices differ: a wait for k others is k differences longer."""
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
    """A property in which two environments differ; a side that does not know it is None."""

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
"""By how much a property differs between two runs on one host: what exceeds it is a difference."""
_ABSOLUTE = {"noise_ratio": 0.01, "steal_ratio": 0.01}
_WORDS = ("kernel", "cpu_model", "virtual")


def differences(base: Environment, new: Environment) -> tuple[Difference, ...]:
    """Return in what two environments differ, what both know first."""
    found = []
    for name in (*_WORDS, *_RELATIVE, *_ABSOLUTE):
        was, now = getattr(base, name) or None, getattr(new, name) or None
        if name in ("steal_ratio", "noise_ratio"):
            was, now = getattr(base, name), getattr(new, name)
        if was != now and not (was is not None and now is not None and _alike(name, was, now)):
            found.append(Difference(name=name, base=was, new=now))
    return tuple(sorted(found, key=lambda each: not each.known))


def common(vectors: Sequence[Environment]) -> Environment | None:
    """Return what holds for all of several hosts: of what differs between them nothing is known. None of no host."""
    if not vectors:
        return None
    unlike = {each.name for other in vectors[1:] for each in differences(vectors[0], other)}
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
