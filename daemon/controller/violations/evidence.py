"""What speaks for and against each kind of cause of a violation, one sentence each. Pure."""

from __future__ import annotations

import math

from specmine.model.text import rate, share
from specmine.model.violation import CauseKind, Evidence

from .facts import Facts

MOSTLY = 0.7
"""Share of the difference from which one kind of time is its cause."""
BLOCKED, WITH_WAITING = 0.5, 0.8
"""Being blocked is the cause also from the first share on, if it is the second together with waiting for a CPU, and the
program gets CPU time as usual: who is blocked more often waits for a CPU more often afterwards."""
CALLEE = 0.5
"""The same of the time in a callee, which is counted per second."""
LEAST_RATE = math.log(1.3)
"""Smaller changes of the rate of calls are as usual."""
LEAST_MIX = 0.1
"""Paths have another mix if a share of the calls changed by this much."""


def host_evidence(facts: Facts, parts: tuple[float, float, float] | None) -> Evidence | None:
    """Tell how much of the time is waiting for a CPU, and whether most functions changed at once."""
    known = facts.now.parts_ns
    shortage = f"; {facts.shortage}" if facts.shortage else ""
    if parts is None or known is None or not facts.now.mean_ns:
        common = f"most functions {'changed' if facts.common else 'did not change'} at once"
        return Evidence(kind=CauseKind.HOST, changed=facts.common, text=f"{common}{shortage}")
    total = sum(known) or 1.0
    changed = (parts[1] >= MOSTLY and not facts.supplied) or facts.common or facts.short_of_cpu
    text = f"{share(known[1] / total)} of the time waiting for a CPU"
    if parts[1] >= MOSTLY or facts.short_of_cpu:
        text = f"{text}, {share(parts[1])} of the difference"
    elif facts.common:
        text = f"{text}; most functions changed at once"
    else:
        text = f"{text}, as usual; most functions did not change at once"
    return Evidence(kind=CauseKind.HOST, changed=changed, text=f"{text}{shortage}")


def callee_evidence(facts: Facts) -> Evidence | None:
    """Tell whether a callee changed, too, and how much of the difference it has; None: none is known."""
    if facts.callee is None:
        return None
    part = facts.callee.part
    told = "" if part is None else f": {share(min(1.0, part))} of the difference"
    return Evidence(
        kind=CauseKind.CALLEE, changed=part is None or part >= CALLEE, text=f"{facts.callee.name} changed too{told}"
    )


def wait_evidence(facts: Facts, parts: tuple[float, float, float] | None) -> Evidence | None:
    """Tell how much of the time calls are blocked, or run; None: not known."""
    known = facts.now.parts_ns
    if parts is None or known is None:
        return None
    total = sum(known) or 1.0
    blocked, running = known[2] / total, known[0] / total
    if is_blocked(facts, parts):
        text = f"{share(blocked)} of the time blocked, {share(parts[2])} of the difference"
        return Evidence(kind=CauseKind.WAIT, changed=True, text=text)
    return Evidence(kind=CauseKind.WAIT, changed=False, text=f"{share(running)} of the time on CPU")


def code_evidence(facts: Facts) -> Evidence:
    """Tell whether the machine code is the same."""
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


def load_evidence(facts: Facts, parts: tuple[float, float, float] | None) -> Evidence | None:
    """Tell whether calls come as often as usual, over the same paths, and crowd each other; None: nothing is known."""
    said, changed = [], False
    before, after = facts.usual.rate, facts.now.rate
    if before is not None and after is not None:
        moved = abs(math.log(after / before))
        unusual = moved >= max(LEAST_RATE, 3 * facts.usual.rate_spread)
        changed |= unusual
        said.append(f"{rate(after)} calls/s, {f'usually {rate(before)}' if unusual else 'as usual'}")
    if facts.mix is not None:
        other = has_other_mix(facts)
        changed |= other
        said.append(f"call paths have {'another mix' if other else 'the same mix'}")
    if is_crowded(facts, parts):
        changed = True
        said.append(facts.busy)
    return Evidence(kind=CauseKind.LOAD, changed=changed, text="; ".join(said)) if said else None


def has_other_mix(facts: Facts) -> bool:
    """Tell whether calls come over other paths than usual."""
    return facts.mix is not None and facts.mix >= LEAST_MIX


def is_blocked(facts: Facts, parts: tuple[float, float, float]) -> bool:
    """Tell whether calls take longer because they are blocked, the waits for a CPU that follow included."""
    _, waiting, blocked = parts
    return blocked >= MOSTLY or (facts.supplied and blocked >= BLOCKED and waiting + blocked >= WITH_WAITING)


def is_crowded(facts: Facts, parts: tuple[float, float, float] | None) -> bool:
    """Tell whether calls wait for CPUs that the watched programs keep busy themselves, and not for their CPU limit."""
    return parts is not None and parts[1] >= MOSTLY and bool(facts.busy) and not facts.throttled
