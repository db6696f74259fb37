"""The likely cause of a violation, with what speaks for and against each kind of cause. Pure.

The first rule that fits decides: the host, if calls wait for a CPU or if most functions are slower at once; a callee
that has most of the difference; waiting; changed machine code; the load. What did not change is evidence too. Two facts
are vetoes: unchanged machine code is never put down to code, and time spent waiting for a CPU is the host's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from specmine.model.histogram import Histogram
from specmine.model.level import PROBABILITIES
from specmine.model.text import listed, rate, share, title
from specmine.model.violation import Cause, CauseKind, Direction, Evidence, Growth

from .usual import Usual

MOSTLY = 0.7
"""Share of the difference from which one kind of time is its cause ..."""
WORK, MUCH_WORK = 0.4, 1.0
"""Work is the cause from this share on too, if it alone doubles the duration: who works that much longer also waits for
CPUs, while waiting makes nobody work longer."""
NEARLY_ALL = 0.9
"""... and from which that is proven: it was measured in these very calls."""
CALLEE = 0.5
"""The same of the time in a callee, which is counted per second."""
LARGE = 0.7
"""Where the median of some calls moved, the median or p90 of all calls stands for them: the first that moved by this
share of what the other one did."""
LEAST_MOVED = math.log(1.1)
"""A quantile that moved by less does not tell which kind of time its calls took more of."""
FEWEST = 100
"""Calls with a time on CPU from which their quantiles are compared."""
LEAST_RATE = math.log(1.3)
"""Smaller changes of the rate of calls are as usual."""
LEAST_MIX = 0.1
"""Paths have another mix if a share of the calls changed by this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A violated function that this one calls."""

    key: str
    name: str
    part: float | None
    """Share of the difference that it has; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known around a violation."""

    direction: Direction
    usual: Usual
    now: Usual
    new_paths: bool = False
    """It is about calls over paths that were not learned, not about how long calls take."""
    quantile: str = ""
    """The one that moved most of all calls; '' where the violation is about some calls only."""
    typical: bool = False
    """The violation is about the median of some calls: their slowest say nothing of it."""
    new_build: str = ""
    """The build that is judged by another one's yardstick; '' if it is the same build."""
    code: str = "same"
    """Machine code against that build: same, changed, unknown."""
    changed_callees: tuple[str, ...] = ()
    """Names of functions that it calls whose machine code changed."""
    started: str = ""
    """What started shortly before, in words; '' if nothing did."""
    callee: Callee | None = None
    common: bool = False
    """Most functions of the host are slower at once."""
    mix: float | None = None
    """Largest change of the share of a call path; None: not known."""
    waits: Growth | None = None
    """The wait that has most of the difference, if it is known."""
    inside: Growth | None = None
    """The callee that has most of it, by what was timed in its calls."""
    limit: str = ""
    """The CPU limit of the host, in words; '' without one."""


def cause_of(facts: Facts) -> Cause:
    """Return the likely cause and its evidence, the cause's own first."""
    parts = _parts(facts)
    evidence = {
        CauseKind.HOST: _host(facts, parts),
        CauseKind.CALLEE: _callee(facts),
        CauseKind.WAIT: _wait(facts, parts),
        CauseKind.CODE: _code(facts),
        CauseKind.LOAD: _load(facts),
    }
    kind, proven, text = _verdict(facts, parts, evidence)
    known = {name: one for name, one in evidence.items() if one is not None}
    ordered = sorted(known, key=lambda name: (name is not kind, not known[name].changed))
    growth = {CauseKind.WAIT: facts.waits, CauseKind.CALLEE: _of_callee(facts)}.get(kind)
    return Cause(kind=kind, proven=proven, text=text, evidence=tuple(known[name] for name in ordered), growth=growth)


def _of_callee(facts: Facts) -> Growth | None:
    """Return the growth of the callee that is the cause."""
    if facts.callee is None or facts.inside is None:
        return facts.inside
    names = facts.inside.function, title(facts.inside.function, facts.inside.module)
    return facts.inside if facts.callee.name in names else None


def _parts(facts: Facts) -> tuple[float, float, float] | None:
    """Return which shares of the difference are running, waiting for a CPU, and blocked; None: not known."""
    before, after = facts.usual.parts_ns, facts.now.parts_ns
    if before is None or after is None:
        return None
    sign = -1.0 if facts.direction is Direction.FASTER else 1.0
    more = [max(0.0, sign * (now - then)) for now, then in zip(after, before, strict=True)]
    total = sum(more)
    moved = _running(facts)
    if moved is None:
        return (more[0] / total, more[1] / total, more[2] / total) if total > 0 else None
    running, off = moved[0], more[1] + more[2]
    waiting = more[1] / off if off > 0 else 0.0
    return running, (1 - running) * waiting, (1 - running) * (1 - waiting) if off > 0 else 0.0


def _running(facts: Facts) -> tuple[float, float] | None:
    """Return the share of time on CPU in what the calls in question took more, and that over the usual duration.

    None: not known.

    By quantiles: few calls that wait for ms, as on any busy host, have more of the mean than all others together.
    """
    usual, now = facts.usual, facts.now
    if min(one.on_cpu.total for one in (usual, now)) < FEWEST:
        return None
    moved: dict[str, float] = {}
    sign = -1.0 if facts.direction is Direction.FASTER else 1.0
    for name, level in PROBABILITIES.items():
        took = [max(one.histogram.quantile(level) - one.bias_ns, 1.0) for one in (usual, now)]
        moved[name] = sign * math.log(took[1] / took[0])
    name = facts.quantile if facts.quantile in moved else _place_of(moved, typical=facts.typical)
    if moved[name] < LEAST_MOVED:
        return None
    ran = [_around(one.on_cpu, PROBABILITIES[name]) for one in (usual, now)]
    before, after = (max(_around(one.histogram, PROBABILITIES[name]) - one.bias_ns, 1.0) for one in (usual, now))
    if sign * (after - before) <= 0:
        return None
    return min(1.0, max(0.0, (ran[1] - ran[0]) / (after - before))), (ran[1] - ran[0]) / before


def _around(histogram: Histogram, level: float) -> float:
    """Return the mean of the quantiles around a level: one between fast and slow calls may be either."""
    half = 0.4 * min(level, 1 - level)
    return sum(histogram.quantile(level + half * step / 4) for step in range(-4, 5)) / 9


def _place_of(moved: Mapping[str, float], *, typical: bool) -> str:
    """Return the quantile of all calls that stands for a change of some of them."""
    near = [name for name in ("p50", "p90") if name in moved]
    most = max((moved[name] for name in near), default=0.0)
    if typical and most >= LEAST_MOVED:
        return next(name for name in near if moved[name] >= LARGE * most)
    return max(moved, key=lambda each: moved[each])


def _verdict(  # noqa: PLR0911  one for each rule
    facts: Facts,
    parts: tuple[float, float, float] | None,
    evidence: dict[CauseKind, Evidence | None],
) -> tuple[CauseKind, bool, str]:
    if facts.new_paths:
        return _of_new_paths(facts)
    running, waiting, blocked = parts or (0.0, 0.0, 0.0)
    if waiting >= MOSTLY:
        limit = f"; {facts.limit}" if facts.limit else ""
        text = f"{share(waiting)} of the difference is time in which its calls wait for a CPU{limit}."
        return CauseKind.HOST, waiting >= NEARLY_ALL, text
    if facts.common:
        return CauseKind.HOST, False, "Most functions that are watched on this host changed at the same time."
    callee = facts.callee
    if callee is not None and (callee.part is None or callee.part >= CALLEE):
        part = "" if callee.part is None else f", which has {share(min(1.0, callee.part))} of the difference"
        sure = callee.part is not None and callee.part >= NEARLY_ALL
        return CauseKind.CALLEE, sure, f"It calls {callee.name}{part}."
    if blocked >= MOSTLY:
        text = f"{share(blocked)} of the difference is time in which its calls are blocked."
        return CauseKind.WAIT, blocked >= NEARLY_ALL, text
    if facts.new_build and (facts.code != "same" or facts.changed_callees):
        return CauseKind.CODE, *_of_code(facts, running if parts else None, evidence)
    if _is_changed(evidence[CauseKind.LOAD]):
        return CauseKind.LOAD, False, f"{_told(evidence[CauseKind.LOAD])}; its machine code is the same."
    work = _running(facts)
    works = work is not None and work[0] >= WORK and work[1] >= MUCH_WORK
    if parts is not None and (running >= MOSTLY or works):
        longer = "less" if facts.direction is Direction.FASTER else "longer"
        same = listed(("code", "host", *(("calls a second",) if evidence[CauseKind.LOAD] is not None else ())))
        text = f"Its calls work {longer}, while {same} are as usual: other data or another configuration."
        return CauseKind.LOAD, False, text
    if facts.inside is not None:
        has = facts.inside.more_ns / facts.inside.of_ns
        text = f"Its callee {facts.inside.function} has {share(has)} of the difference."
        return CauseKind.CALLEE, has >= NEARLY_ALL, text
    return CauseKind.UNKNOWN, False, "None of what is measured explains it."


def _of_new_paths(facts: Facts) -> tuple[CauseKind, bool, str]:
    """Return why calls come from elsewhere: neither the host nor waiting changes who calls a function."""
    if facts.new_build and (facts.code != "same" or facts.changed_callees):
        return CauseKind.CODE, False, f"Build {facts.new_build[:12]} calls it from places that did not call it before."
    text = "It is called from places that did not call it before, with the same machine code."
    return CauseKind.LOAD, False, text


def _of_code(facts: Facts, running: float | None, evidence: dict[CauseKind, Evidence | None]) -> tuple[bool, str]:
    """Return whether changed machine code is proven to be the cause, and the sentence about it."""
    others = (CauseKind.HOST, CauseKind.WAIT, CauseKind.LOAD)
    alone = not any(_is_changed(evidence[kind]) for kind in others)
    build = facts.new_build[:12]
    if facts.code == "changed":
        sure = alone and (running is None or running >= MOSTLY)
        return sure, f"Its machine code changed in build {build}."
    if facts.changed_callees:
        return False, f"Functions that it calls changed in build {build}: {', '.join(facts.changed_callees[:3])}."
    return False, f"It began with build {build}; whether its machine code changed is not known."


def _host(facts: Facts, parts: tuple[float, float, float] | None) -> Evidence | None:
    known = facts.now.parts_ns
    if parts is None or known is None or not facts.now.mean_ns:
        return _common(facts)
    total = sum(known) or 1.0
    changed = parts[1] >= MOSTLY or facts.common
    text = f"{share(known[1] / total)} of the time waiting for a CPU"
    if parts[1] >= MOSTLY:
        text = f"{text}, {share(parts[1])} of the difference"
    elif facts.common:
        text = f"{text}; most functions changed at once"
    else:
        text = f"{text}, as usual; most functions did not change at once"
    return Evidence(kind=CauseKind.HOST, changed=changed, text=text)


def _common(facts: Facts) -> Evidence | None:
    text = f"most functions {'changed' if facts.common else 'did not change'} at once"
    return Evidence(kind=CauseKind.HOST, changed=facts.common, text=text)


def _callee(facts: Facts) -> Evidence | None:
    if facts.callee is None:
        return None
    part = facts.callee.part
    told = "" if part is None else f": {share(min(1.0, part))} of the difference"
    return Evidence(
        kind=CauseKind.CALLEE, changed=part is None or part >= CALLEE, text=f"{facts.callee.name} changed too{told}"
    )


def _wait(facts: Facts, parts: tuple[float, float, float] | None) -> Evidence | None:
    known = facts.now.parts_ns
    if parts is None or known is None:
        return None
    total = sum(known) or 1.0
    blocked, running = known[2] / total, known[0] / total
    if parts[2] >= MOSTLY:
        text = f"{share(blocked)} of the time blocked, {share(parts[2])} of the difference"
        return Evidence(kind=CauseKind.WAIT, changed=True, text=text)
    return Evidence(kind=CauseKind.WAIT, changed=False, text=f"{share(running)} of the time on CPU")


def _code(facts: Facts) -> Evidence:
    build = facts.new_build[:12]
    if not facts.new_build:
        text = "the same build, so the same machine code"
        return Evidence(kind=CauseKind.CODE, changed=False, text=f"{text}; {facts.started}" if facts.started else text)
    if facts.code == "changed":
        return Evidence(kind=CauseKind.CODE, changed=True, text=f"changed in build {build}; one run each")
    if facts.changed_callees:
        text = f"the same in build {build}, but {', '.join(facts.changed_callees[:3])} changed"
        return Evidence(kind=CauseKind.CODE, changed=True, text=text)
    if facts.code == "same":
        return Evidence(kind=CauseKind.CODE, changed=False, text=f"the same in build {build}")
    return Evidence(kind=CauseKind.CODE, changed=True, text=f"build {build} is new; its machine code was not compared")


def _load(facts: Facts) -> Evidence | None:
    said, changed = [], False
    before, after = facts.usual.rate, facts.now.rate
    if before is not None and after is not None:
        moved = abs(math.log(after / before))
        unusual = moved >= max(LEAST_RATE, 3 * facts.usual.rate_spread)
        changed |= unusual
        said.append(f"{rate(after)} calls/s, {f'usually {rate(before)}' if unusual else 'as usual'}")
    if facts.mix is not None:
        other = facts.mix >= LEAST_MIX
        changed |= other
        said.append(f"call paths have {'another mix' if other else 'the same mix'}")
    return Evidence(kind=CauseKind.LOAD, changed=changed, text="; ".join(said)) if said else None


def _is_changed(evidence: Evidence | None) -> bool:
    return evidence is not None and evidence.changed


def _told(evidence: Evidence | None) -> str:
    text = evidence.text if evidence is not None else ""
    return text[:1].upper() + text[1:]
