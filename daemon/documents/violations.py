"""Violations as JSON values: in the entry of each function, and in a list of their own, ``specmine.violations/1``.

Pure; the times of the violations lie ``utc_offset_ns`` behind UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specmine.model.level import MEAN, PROBABILITIES, Level
from specmine.model.text import age
from specmine.model.violation import Cause, Growth, MoreSamples, Violation

from .timestamps import rfc3339
from .violation_text import Subject, change, growth_words, metric_text, samples_words, title

SCHEMA = "specmine.violations/1"
BEFORE_NS, AFTER_NS = 300_000_000_000, 30_000_000_000
"""A start so long before a change is told with it; the moment of a change may be told too early by so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The names of one function."""

    function: str
    module: str = ""
    program: str = ""
    build_id: str = ""
    build: str = ""
    """Label of its build, '' if it has none."""
    behaviours: tuple[str, ...] = ()
    """Expressions of its behaviours, in their order."""
    callers: tuple[str, ...] = ()
    """Those that call it most, as samples showed, the first before the others."""
    starts_ns: tuple[int, ...] = ()
    """When runs of its build started that began while specmine watched, on the clock of the violations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an entry says besides the violation."""

    names: Mapping[str, Named]
    """Key of a function to its names."""
    utc_offset_ns: int = 0
    explained: Mapping[str, tuple[Violation, ...]] = field(default_factory=dict)
    """Key of a function to the open violations that it explains."""

    def named(self, key: str) -> Named:
        """Return the names of a function; of one that is known no more its key."""
        return self.names.get(key, Named(function=key))


def subject_of(violation: Violation, context: Context) -> Subject:
    """Return the names around a violation, as its sentences need them."""
    named = context.named(violation.function)
    return Subject(
        function=named.function,
        program=named.program,
        module=named.module,
        build=named.build,
        because=context.named(violation.because).function if violation.because else "",
        utc_offset_ns=context.utc_offset_ns,
    )


def violation_entry(violation: Violation, context: Context) -> dict[str, Any]:
    """Return a violation as its function's entry has it."""
    named, offset = context.named(violation.function), context.utc_offset_ns
    subject = subject_of(violation, context)
    closed_ns = violation.closed_ns
    return {
        "id": violation.id,
        "what": violation.what.value,
        "direction": violation.direction.value,
        "factor": violation.factor,
        "interval": [violation.factor_low, violation.factor_high],
        "quantile": violation.quantile,
        "expected": level_facts(violation.expected),
        "observed": level_facts(violation.observed),
        "behaviour": _place(violation.expression, named.behaviours),
        "expression": violation.expression,
        "callers": list(named.callers),
        "upper_seconds": None if violation.upper_ns is None else violation.upper_ns * 1e-9,
        "time_share": violation.time_share,
        "cause": cause_facts(violation.cause),
        "because": _because(violation, context),
        "explains": [_explained(one, context) for one in context.explained.get(violation.function, ())],
        "since": rfc3339(violation.since_ns + offset),
        "build_started": _start(violation, named, offset),
        "found": rfc3339(violation.found_ns + offset),
        "state": violation.state.value,
        "closed": None if closed_ns is None else rfc3339(closed_ns + offset),
        "closed_by": violation.closed_by or None,
        "comment": violation.comment or None,
        "change": change(violation, named.function),
        "title": title(violation, subject),
        "text": metric_text(violation, subject),
    }


def listed(violations: Sequence[Violation], context: Context) -> list[dict[str, Any]]:
    """Return violations with the names of their functions: open problems first, those first that cost most time.

    Those that only stand through others come after these; the rest by when they began, the newest first.
    """
    ordered = sorted(violations, key=_order)
    entries = []
    for one in ordered:
        named = context.named(one.function)
        names = {"function": named.function, "module": named.module, "program": named.program}
        entries.append(names | {"build_id": named.build_id, "key": one.function} | violation_entry(one, context))
    return entries


def _order(one: Violation) -> tuple[object, ...]:
    lost = one.time_share if one.is_problem else 0.0
    return one.closed_ns is not None, not one.is_problem, bool(one.because), -lost, -one.since_ns, one.function, one.id


def level_facts(level: Level) -> dict[str, Any]:
    """Return the quantiles of a level, in seconds, and the mean of a violation that is about it; only what is known."""
    facts = {}
    for name in (*PROBABILITIES, MEAN):
        known = level.quantile(name)
        if known is not None:
            bounds = (None if bound is None else bound * 1e-9 for bound in (known.low_ns, known.high_ns))
            facts[name] = {"seconds": known.ns * 1e-9, **dict(zip(("low", "high"), bounds, strict=True))}
    return facts


def cause_facts(cause: Cause) -> dict[str, Any]:
    """Return a cause with its evidence: of each kind of cause whether it changed, and by how much."""
    facts = [{"what": one.kind.value, "changed": one.changed, "text": one.text} for one in cause.evidence]
    evidence: dict[str, Any] = {}
    for one in facts:
        before = evidence.get(str(one["what"]))
        text = one["text"] if before is None else f"{before['text']}; {one['text']}"
        changed = bool(one["changed"]) or (before is not None and before["changed"])
        evidence[str(one["what"])] = {"changed": changed, "text": text}
    found = {"kind": cause.kind.value, "proven": cause.proven, "text": cause.text, "evidence": evidence, "facts": facts}
    return found | {
        "growth": _growth_facts(cause.growth) if cause.growth is not None else None,
        "more_samples": _samples_facts(cause.more_samples) if cause.more_samples is not None else None,
    }


def _samples_facts(more: MoreSamples) -> dict[str, Any]:
    return {
        "function": more.function,
        "module": more.module or None,
        "is_caller": more.is_caller,
        "cpus": more.cpus,
        "usual_cpus": more.usual_cpus,
        "text": samples_words(more),
    }


def _growth_facts(growth: Growth) -> dict[str, Any]:
    return {
        "kind": growth.what,
        "system_call": growth.call or None,
        "place": growth.function or None,
        "place_module": growth.module or None,
        "callers": list(growth.callers),
        "woken_by": growth.waker or None,
        "parts": [
            {"kind": part.what, "system_call": part.call or None, "place": part.function or None, "share": part.share}
            for part in growth.parts
        ],
        "more_seconds": growth.more_ns * 1e-9,
        "of_seconds": growth.of_ns * 1e-9,
        "text": growth_words(growth),
    }


def explained_by(violations: Sequence[Violation]) -> dict[str, tuple[Violation, ...]]:
    """Return the open violations that each function explains."""
    found: dict[str, tuple[Violation, ...]] = {}
    for one in violations:
        if one.because and one.closed_ns is None:
            found[one.because] = (*found.get(one.because, ()), one)
    return found


def _because(violation: Violation, context: Context) -> dict[str, str] | None:
    if not violation.because:
        return None
    named = context.named(violation.because)
    return {"function": named.function, "module": named.module, "program": named.program, "key": violation.because}


def _explained(violation: Violation, context: Context) -> dict[str, Any]:
    named = context.named(violation.function)
    return {
        "function": named.function,
        "module": named.module,
        "factor": violation.factor,
        "text": change(violation, named.function),
    }


def _start(violation: Violation, named: Named, offset: int) -> dict[str, str] | None:
    """Return the run of the build that started at most five minutes before the change, if one did."""
    near = [each for each in named.starts_ns if -AFTER_NS <= violation.since_ns - each <= BEFORE_NS]
    if not near:
        return None
    seconds = max(0, violation.since_ns - max(near)) / 1e9
    build = named.build or named.build_id[:12]
    text = f"{age(seconds)} after a run of build {build} started"
    return {"build_id": named.build_id, "at": rfc3339(max(near) + offset), "text": text}


def _place(expression: str, behaviours: Sequence[str]) -> int | None:
    return behaviours.index(expression) if expression in behaviours else None
