"""From stacks and the time that they stand for to what was found of each function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from specmine.model.batch import HotSample

_LOOP_SHARE = 0.9
_IDLE_NS = 50_000_000
"""A main loop's wait for work lasts longer than this on average; waits for a lock that servers share do not."""


class StackTime(NamedTuple):
    """How much time a stack stands for."""

    path: int
    is_blocked: bool
    """Else it ran."""
    samples: float
    ns: float
    waits: float = 0.0
    """How often threads began to be blocked there."""
    looks: int = 0
    """The looks that saw a thread blocked there, a bit each."""


@dataclass(slots=True)
class FunctionSum:
    """What was found for one function."""

    samples: float = 0.0
    cpu_samples: float = 0.0
    busy_samples: float = 0.0
    on_cpu: float = 0.0
    off_cpu: float = 0.0
    inclusive: float = 0.0
    callers: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    callees: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    blocked: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Time blocked with the function innermost, by path."""
    waits: float = 0.0
    looks: int = 0


def add_innermost(one: FunctionSum, stack: StackTime) -> None:
    """Add time with this function innermost."""
    if stack.is_blocked:
        one.off_cpu += stack.ns
        one.blocked[stack.path] += stack.ns
        one.waits += stack.waits
    else:
        one.on_cpu += stack.ns
        one.cpu_samples += stack.samples


def add_stack(sums: Mapping[str, FunctionSum], stack: StackTime, named: list[str]) -> None:
    """Add the time of one stack to its functions, the innermost first; '' is one that is not known."""
    if not named:  # no stack could be taken
        return
    if named[0]:
        add_innermost(sums[named[0]], stack)
    seen: set[str] = set()
    for inner, outer in zip(named, [*named[1:], ""], strict=True):
        if not inner or inner in seen:  # recursion: time counts once
            continue
        seen.add(inner)
        one = sums[inner]
        one.samples += stack.samples
        one.busy_samples += 0 if stack.is_blocked else stack.samples
        one.inclusive += stack.ns
        one.looks |= stack.looks
        if outer:
            one.callers[outer] += stack.ns
        if outer not in seen and outer:
            sums[outer].callees[inner] += stack.ns


def hot_samples(sums: Mapping[str, FunctionSum]) -> tuple[HotSample, ...]:
    """Return what was found of each function, by key."""
    return tuple(_hot_sample(key, one, sums) for key, one in sorted(sums.items()))


def _hot_sample(key: str, one: FunctionSum, sums: Mapping[str, FunctionSum]) -> HotSample:
    callers = sorted(one.callers.items(), key=lambda item: (-item[1], item[0]))
    largest = max(one.blocked.values(), default=0.0)
    called = ((callee, ns) for callee, ns in one.callees.items() if ns)  # a stack may stand for no time
    return HotSample(
        function=key,
        samples=round(one.samples),
        cpu_samples=round(one.cpu_samples),
        busy_samples=round(one.busy_samples),
        callee_ns=max((ns * min(1.0, ns / sums[callee].inclusive) for callee, ns in called), default=0.0),
        on_cpu_ns=one.on_cpu,
        off_cpu_ns=one.off_cpu,
        inclusive_ns=one.inclusive,
        callers=tuple((k, v) for k, v in callers[:8]),
        loop_bottom=one.off_cpu > _LOOP_SHARE * one.inclusive
        and largest > _LOOP_SHARE * one.off_cpu
        and one.off_cpu > _IDLE_NS * max(1.0, one.waits),
        looks=one.looks.bit_count(),
    )
