"""A violation in words: the title and the sentence that log, terminal, metrics, page and alert share. Pure, ASCII.

Who writes for a terminal that shows more letters passes the text through ``typeset``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from specmine.mining.assertions.expression import ExpressionError, parse
from specmine.model.level import MEAN
from specmine.model.text import duration, duration_range, escaped, share, shortened, three_digits
from specmine.model.violation import (
    CauseKind,
    Direction,
    Growth,
    GrowthPart,
    MoreSamples,
    Violation,
    ViolationState,
    What,
)

LONGEST_TITLE = 80
LONGEST_TEXT = 300
_DAY_NS = 86_400_000_000_000
_QUANTILES = {"p50": "median", "p90": "p90", "p99": "p99", "mean": "mean"}
_CAUSES = {
    CauseKind.CODE: "code",
    CauseKind.LOAD: "load",
    CauseKind.HOST: "the host",
    CauseKind.CALLEE: "a callee",
    CauseKind.WAIT: "waiting",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The names around a violation, which it does not hold itself."""

    function: str
    program: str = ""
    """As the configuration names it, else the base name of what was executed."""
    module: str = ""
    build: str = ""
    """Label or build-id of the build whose code changed; '' to leave it out."""
    because: str = ""
    """Name of the function that explains the violation."""
    utc_offset_ns: int = 0
    """What to add to the violation's times to get UTC."""


def title(violation: Violation, subject: Subject, now_ns: int | None = None) -> str:
    """Return one line of at most 80 characters, such as ``redis: qsort_r 34x slower since 01:17, likely load``.

    Parameters
    ----------
    violation : Violation
    subject : Subject
    now_ns : int, optional
        When it is read, CLOCK_MONOTONIC; a beginning a day ago or more is told as a date. Default: when it was found.
    """
    name, program = escaped(subject.function), escaped(subject.program or subject.module)
    begun = moment(violation.since_ns, subject, violation.found_ns if now_ns is None else now_ns)
    begin = f"{_cut(program, 20)}: " if program else ""
    for words in (change(violation, subject.function), _moved(violation)):
        end = f" {words} since {begun}, {_short_cause(violation, subject)}"
        room = LONGEST_TITLE - len(begin) - len(end)
        if room >= min(len(name), 16):
            break
    return f"{begin}{_cut(name, max(room, 8))}{end}"[:LONGEST_TITLE]


def sentence(violation: Violation, subject: Subject, now_ns: int | None = None) -> str:
    """Return what, how much, since when and why: ``checksum (shop) 2.1x slower since 02:47:10: median 160 us, ...``."""
    begun = moment(violation.since_ns, subject, violation.found_ns if now_ns is None else now_ns, seconds=True)
    facts = "; ".join(part for part in (numbers(violation), cause(violation, subject)) if part)
    return f"{named(subject)} {change(violation, subject.function)} since {begun}: {facts}"


def log_line(violation: Violation, subject: Subject) -> str:
    """Return the daemon's line: ``slower: checksum (shop) ...`` while open, ``normal again: ...`` once closed."""
    if violation.state is ViolationState.OPEN:
        return f"{_direction(violation)}: {sentence(violation, subject)}"
    end_ns = violation.closed_ns if violation.closed_ns is not None else violation.found_ns
    first = moment(violation.since_ns, subject, end_ns, seconds=True)
    last = moment(end_ns, subject, end_ns, seconds=True)
    told = (
        f"{named(subject)}, {change(violation, subject.function)} from {first} to {last}; {cause(violation, subject)}"
    )
    if violation.state is ViolationState.RECOVERED:
        return f"normal again: {told}"
    by = f" by {escaped(violation.closed_by)}" if violation.closed_by else ""
    comment = f' "{escaped(violation.comment)}"' if violation.comment else ""
    return f"acknowledged{by}: {told}{comment}"


def metric_text(violation: Violation, subject: Subject) -> str:
    """Return the sentence with what is known of the cause, at most 300 characters."""
    text = sentence(violation, subject)
    more = violation.cause.more_samples
    for told in (escaped(violation.cause.text), samples_words(more) if more is not None else ""):
        text = f"{text.removesuffix('.')}. {told}" if told else text
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def named(subject: Subject) -> str:
    """Return the function with its program: ``checksum (shop)``."""
    program = subject.program or subject.module
    return escaped(f"{subject.function} ({program})" if program else subject.function)


def change(violation: Violation, function: str = "") -> str:
    """Return what changed by how much, and of which calls: ``1.5x slower when called by db_get``.

    Parameters
    ----------
    violation : Violation
    function : str
        Name of its function: a caller of it is told as one.
    """
    return f"{_moved(violation)} {place(violation, function)}".rstrip()


def numbers(violation: Violation) -> str:
    """Return observed beside normal: ``median 160 us, normal 72-80 us``; '' where calls come over new paths."""
    if violation.what is What.PATH:  # what changed is where calls come from, not how long they take
        return ""
    observed = violation.observed.quantile(violation.quantile)
    expected = violation.expected.quantile(violation.quantile)
    if observed is None:
        return ""
    told = f"{_QUANTILES[violation.quantile]} {three_digits(observed.ns * 1e-9)}"
    if expected is None:
        return told
    if expected.low_ns is None or expected.high_ns is None:
        return f"{told}, normal {three_digits(expected.ns * 1e-9)}"
    return f"{told}, normal {duration_range(expected.low_ns * 1e-9, expected.high_ns * 1e-9)}"


def cause(violation: Violation, subject: Subject) -> str:
    """Return ``cause: code`` if it is proven, ``likely cause: load`` if it is what is left."""
    if violation.because or subject.because:
        return f"only through {escaped(subject.because)}" if subject.because else "only through a callee"
    if violation.cause.kind is CauseKind.UNKNOWN:
        return "cause not known"
    build = f" ({escaped(subject.build)})" if subject.build and violation.cause.kind is CauseKind.CODE else ""
    growth = f" ({growth_words(violation.cause.growth)})" if violation.cause.growth is not None else ""
    return f"{'cause' if violation.cause.proven else 'likely cause'}: {_CAUSES[violation.cause.kind]}{build}{growth}"


def growth_words(growth: Growth) -> str:
    """Return what has most of the difference, with its numbers: ``futex under lock_buffer, +4.1 ms of +4.3 ms a call``.

    The numbers are the means of a call's time. Of a callee its name stands first. Of a wait its callers follow, since
    programs wait for many things in one function, and who ended it.
    """
    place = escaped(_cut(growth.function, 40))
    if growth.what == "callee":
        name = place
    elif growth.parts:
        name = f"in {place}: {_parts_words(growth.parts)}" if place else _parts_words(growth.parts)
    else:
        what = wait_words(growth.what, growth.call)
        name = f"{what} under {place}" if place else what
        if growth.callers:
            name += f", called by {', '.join(escaped(_cut(each, 24)) for each in growth.callers[:3])}"
        if growth.waker:
            name += f", ended by {escaped(_cut(growth.waker, 24))}"
    return f"{name}, +{three_digits(growth.more_ns * 1e-9)} of +{three_digits(growth.of_ns * 1e-9)} a call"


def _parts_words(parts: Sequence[GrowthPart]) -> str:
    """Return ``66 % futex under take_lock, 34 % file fdatasync under save``."""
    each = (
        f"{share(part.share)} {wait_words(part.what, part.call)}"
        + (f" under {escaped(_cut(part.function, 24))}" if part.function else "")
        for part in parts
    )
    return ", ".join(each)


def samples_words(more: MoreSamples) -> str:
    """Return in what samples find more: ``Samples find more CPU time in qsort_r: 0.41 CPUs, usually 0.02.``"""
    where = "in calls from" if more.is_caller else "in"
    name = escaped(_cut(more.function, 40))
    return f"Samples find more CPU time {where} {name}: {more.cpus:.2g} CPUs, usually {more.usual_cpus:.2g}."


def wait_words(kind: str, call: str | None) -> str:
    """Return for what calls wait, and in which system call: ``futex``, ``file fsync``, ``page fault``."""
    if kind == "fault" and not call:
        return "page fault"
    return kind if kind == call or not call else f"{kind} {escaped(call)}"


def place(violation: Violation, function: str = "") -> str:
    """Return which calls: ``when called by b``, ``when it calls d``, ``if EXPRESSION``; '' for all."""
    if violation.expression == "true":
        return ""
    try:
        formula = parse(violation.expression)
    except ExpressionError:
        formula = ()
    if len(formula) != 1 or len(formula[0]) != 1:
        return f"if {escaped(_cut(violation.expression, 60))}"
    edge = formula[0][0]
    told = f"{shortened(edge.caller, 30)} calls {shortened(edge.callee, 30)}"
    if edge.inside:
        told = f"it calls {shortened(edge.callee, 30)}"
        if edge.blocked:
            told = f"blocked under {shortened(edge.callee, 30)}" if edge.callee else "blocked"
    elif function and edge.callee == function:
        told = f"called by {shortened(edge.caller, 30)}"
    return f"when {told}" if edge.present else f"unless {told}"


def moment(at_ns: int, subject: Subject, now_ns: int, *, seconds: bool = False) -> str:
    """Return a time of day in UTC; of another day the date, and the time of day with ``seconds``."""
    then = datetime.fromtimestamp((at_ns + subject.utc_offset_ns) // 1_000_000_000, UTC)
    if now_ns - at_ns < _DAY_NS:
        return then.strftime("%H:%M:%S" if seconds else "%H:%M")
    return f"{then.day} {then.strftime('%b %H:%M' if seconds else '%b')}"


def typeset(text: str) -> str:
    """Return the text with the letters of a terminal that has them: us, x and ranges as people print them."""
    text = re.sub(r"(?<=\d)( |\n +)us\b", "\\1\N{MICRO SIGN}s", text)  # a line may end between number and unit
    text = re.sub(r"(?<![\w.])(\d[\d.]*)x(?=\s|$)", "\\1\N{MULTIPLICATION SIGN}", text)
    return re.sub(r"(?<=normal )([\d.,]+)-(?=[\d.])", "\\1\N{EN DASH}", text)


def _moved(violation: Violation) -> str:
    if violation.what is What.PATH:
        return "has new call paths"
    if violation.what is What.SHARE:
        often = _factor(violation.factor)
        less = "fewer" if violation.factor < 1 else "more"
        calls = "in the slowest class" if violation.upper_ns is None else f"up to {duration(violation.upper_ns * 1e-9)}"
        return f"has {often} {less} calls {calls}"
    at = {"p50": "", MEAN: " on average"}.get(violation.quantile, f" at {violation.quantile}")
    return f"{_factor(violation.factor)} {_direction(violation)}{at}"


def _direction(violation: Violation) -> str:
    return "changed" if violation.direction is Direction.OTHER else violation.direction.value


def _factor(factor: float) -> str:
    """Write how many times as much, two digits: 2.1x, 34x, 340x; of less than once as much its inverse."""
    times = 1 / factor if 0 < factor < 1 else factor
    return f"{times:.1f}x" if times < 9.95 else f"{times:.0f}x"


def _short_cause(violation: Violation, subject: Subject) -> str:
    if violation.because or subject.because:
        return f"through {_cut(escaped(subject.because), 20)}" if subject.because else "through a callee"
    kind, more = violation.cause.kind, violation.cause.more_samples
    if kind is CauseKind.UNKNOWN:
        return "cause not known"
    words = "new code" if kind is CauseKind.CODE else _CAUSES[kind]
    growth = violation.cause.growth
    if more is not None and kind is CauseKind.CALLEE:
        words = f"its callee {_cut(escaped(more.function), 20)}"
    elif more is not None:
        words = f"{words} {'from' if more.is_caller else 'in'} {_cut(escaped(more.function), 20)}"
    elif growth is not None and growth.function:
        words = f"{'its callee' if kind is CauseKind.CALLEE else f'{words} in'} {_cut(escaped(growth.function), 20)}"
    return words if violation.cause.proven else f"likely {words}"


def _cut(name: str, width: int) -> str:
    """Return a name of at most ``width`` characters: long parameters first, then its middle left out."""
    name = shortened(name, width)
    if len(name) <= width:
        return name
    keep = max(2, width - 3)
    return f"{name[: keep - keep // 2]}...{name[len(name) - keep // 2 :]}"
