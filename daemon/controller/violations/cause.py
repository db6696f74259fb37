"""The likely cause of a violation, with what speaks for and against each kind of cause. Pure.

The first rule that fits decides: the host, if calls wait for a CPU or if most functions are slower at once; a callee
that has most of the difference; waiting; changed machine code; the load. What did not change is evidence too. Two facts
are vetoes: unchanged machine code is never put down to code, and time spent waiting for a CPU is the host's. Waits
for CPUs that the watched programs keep busy themselves are not, nor are those of calls that work several times as long.
"""

from __future__ import annotations

from specmine.model.inside.waits import WaitKind
from specmine.model.text import listed, share, title
from specmine.model.violation import Cause, CauseKind, Direction, Evidence, Growth

from .evidence import (
    CALLEE,
    MOSTLY,
    callee_evidence,
    code_evidence,
    has_other_mix,
    host_evidence,
    is_blocked,
    is_crowded,
    load_evidence,
    wait_evidence,
)
from .facts import Callee, Facts
from .time_difference import has_outgrown, parts_of, running_of

WORK, MUCH_WORK = 0.4, 1.0
"""Work is the cause from this share of the difference on, if it alone doubles the duration: who works that much longer
also waits for CPUs, while waiting makes nobody work longer."""
OUTGROWN = 2.0
"""Work that adds so many times the usual duration is no host's doing, however long its calls wait for CPUs as well, and
though most functions changed with it: those that call it take as much longer."""
PARTLY, STOPPED = 0.3, 0.1
"""Waiting for a CPU is the cause from the first share of the difference on, if the program is short of CPU time and
most of the rest is being blocked: by threads that are short of it, too. From the second on, if its CPU limit stops it:
then all its threads stop together, and who waits for a lock waits for one that is stopped."""
OWN_WAITS = frozenset({WaitKind.FILE, WaitKind.FAULT, WaitKind.SLEEP})
"""For these no thread of the program is waited for."""
NEARLY_ALL = 0.9
"""Share of the difference from which a cause is proven: it was measured in these very calls."""


def cause_of(facts: Facts) -> Cause:
    """Return the likely cause and its evidence, the cause's own first."""
    parts = parts_of(facts)
    evidence = {
        CauseKind.HOST: host_evidence(facts, parts),
        CauseKind.CALLEE: callee_evidence(facts),
        CauseKind.WAIT: wait_evidence(facts, parts),
        CauseKind.CODE: code_evidence(facts),
        CauseKind.LOAD: load_evidence(facts, parts),
    }
    kind, proven, text = _verdict(facts, parts, evidence)
    known = {name: one for name, one in evidence.items() if one is not None}
    ordered = sorted(known, key=lambda name: (name is not kind, not known[name].changed))
    # where calls wait is looked for only now; the callee that has most of it may be known before
    growth = {CauseKind.WAIT: facts.waits or facts.inside, CauseKind.CALLEE: _of_callee(facts)}.get(kind)
    return Cause(kind=kind, proven=proven, text=text, evidence=tuple(known[name] for name in ordered), growth=growth)


def _of_callee(facts: Facts) -> Growth | None:
    """Return the growth of the callee that is the cause."""
    if facts.callee is None or facts.inside is None:
        return facts.inside
    names = facts.inside.function, title(facts.inside.function, facts.inside.module)
    return facts.inside if facts.callee.name in names else None


def _verdict(  # noqa: PLR0911  one for each rule
    facts: Facts,
    parts: tuple[float, float, float] | None,
    evidence: dict[CauseKind, Evidence | None],
) -> tuple[CauseKind, bool, str]:
    if facts.new_paths:
        return _of_new_paths(facts)
    running, waiting, blocked = parts or (0.0, 0.0, 0.0)
    work = running_of(facts)
    outgrown = (work is not None and work[1] >= OUTGROWN) or has_outgrown(facts, OUTGROWN)
    crowded = is_crowded(facts, parts)
    if not outgrown and not crowded and (host := _of_host(facts, waiting, blocked)) is not None:
        return host
    callee = facts.callee
    if callee is not None and (callee.part is None or callee.part >= CALLEE):
        return _through(callee)
    if parts is not None and is_blocked(facts, parts):
        text = f"{share(blocked)} of the difference is time in which its calls are blocked"
        after = "" if blocked >= MOSTLY else f", and {share(waiting)} in which they wait for a CPU afterwards"
        return CauseKind.WAIT, blocked >= NEARLY_ALL, f"{text}{after}."
    if facts.new_build and (facts.code != "same" or facts.changed_callees):
        return CauseKind.CODE, *_of_code(facts, running if parts else None, evidence)
    if crowded and not outgrown:
        text = f"{share(waiting)} of the difference is time in which its calls wait for a CPU: {facts.busy}."
        return CauseKind.LOAD, False, text
    off = waiting + blocked
    follows = _is_effect(facts) and (off >= MOSTLY or not has_other_mix(facts))
    if _is_changed(evidence[CauseKind.LOAD]) and not follows:
        return CauseKind.LOAD, False, f"{_told(evidence[CauseKind.LOAD])}; its machine code is the same."
    works = work is not None and work[0] >= WORK and work[1] >= MUCH_WORK
    works |= outgrown and blocked < 1 - MOSTLY
    if parts is not None and (running >= MOSTLY or works):
        longer = "less" if facts.direction is Direction.FASTER else "longer"
        busy = _is_changed(evidence[CauseKind.HOST]) or waiting > running  # by this very work
        as_often = evidence[CauseKind.LOAD] is not None and not _is_changed(evidence[CauseKind.LOAD])
        others = ("code", *(() if busy else ("host",)), *(("calls a second",) if as_often else ()))
        same = f"{listed(others)} {'are' if len(others) > 1 else 'is'} as usual"
        waits = ", and wait for the CPUs that this keeps busy" if busy else ""
        text = f"Its calls work {longer}{waits}, while {same}: other data or another configuration."
        return CauseKind.LOAD, False, text
    if facts.inside is not None:
        has = facts.inside.more_ns / facts.inside.of_ns
        text = f"Its callee {facts.inside.function} has {share(has)} of the difference."
        return CauseKind.CALLEE, has >= NEARLY_ALL, text
    if waiting >= MOSTLY and facts.supplied:
        text = f"{share(waiting)} of the difference is waiting for a CPU, though its program gets CPU time as usual."
        return CauseKind.UNKNOWN, False, text
    if off >= MOSTLY:
        each = f"{share(waiting)} of the difference is waiting for a CPU, and {share(blocked)} is being blocked"
        return CauseKind.UNKNOWN, False, f"{each}: neither explains it alone."
    if parts is not None and max(parts) > 0:
        each = f"{share(running)} of the difference is time on CPU, {share(waiting)} waiting for a CPU"
        return CauseKind.UNKNOWN, False, f"{each}, {share(blocked)} being blocked: none of these explains it alone."
    return CauseKind.UNKNOWN, False, "None of what is measured explains it."


def _of_host(facts: Facts, waiting: float, blocked: float) -> tuple[CauseKind, bool, str] | None:
    """Return that the host is the cause, and how it shows; None if it is not."""
    why = f": {facts.shortage}" if facts.short_of_cpu else ""
    short = facts.short_of_cpu and (facts.throttled or not facts.busy)
    on_threads = facts.waits is None or facts.waits.what not in OWN_WAITS
    by_threads = short and waiting >= (STOPPED if facts.throttled and on_threads else PARTLY)
    by_threads &= waiting + blocked >= MOSTLY
    if (waiting >= MOSTLY and not facts.supplied) or by_threads:
        too = f", and {share(blocked)} in which they are blocked" if waiting < PARTLY else ""
        text = f"{share(waiting)} of the difference is time in which its calls wait for a CPU{too}{why}."
        return CauseKind.HOST, waiting >= NEARLY_ALL, text
    if facts.common:
        return CauseKind.HOST, False, f"Most functions that are watched on this host changed at the same time{why}."
    return None


def _is_effect(facts: Facts) -> bool:
    """Tell whether slower calls come less often, or faster ones more often: that follows, and is no cause."""
    before, after = facts.usual.rate, facts.now.rate
    if before is None or after is None:
        return False
    return after < before if facts.direction is Direction.SLOWER else after > before


def _through(callee: Callee) -> tuple[CauseKind, bool, str]:
    """Return that another function is the cause, and how."""
    part = "" if callee.part is None else f", which has {share(min(1.0, callee.part))} of the difference"
    sure = callee.part is not None and callee.part >= NEARLY_ALL
    if callee.is_waited_for:
        has = "" if callee.part is None else f": {share(min(1.0, callee.part))} of the difference"
        return CauseKind.WAIT, sure, f"It waits for what {callee.name} does in other threads{has}."
    return CauseKind.CALLEE, sure, f"It calls {callee.name}{part}."


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


def _is_changed(evidence: Evidence | None) -> bool:
    return evidence is not None and evidence.changed


def _told(evidence: Evidence | None) -> str:
    text = evidence.text if evidence is not None else ""
    return text[:1].upper() + text[1:]
