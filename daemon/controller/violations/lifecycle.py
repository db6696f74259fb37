"""The life of a violation: opened once, renewed while open, closed when the function holds again. Pure.

Each window of a function passes the detector. What it says has changed is compared with the yardstick, in
``yardstick_comparison.py``. The yardstick decides: a stream of the detector that moved while by the yardstick nothing
changed gets a new baseline, and nobody is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specmine.daemon.config.settings import SECOND
from specmine.mining.detection.alarm import Stream
from specmine.mining.detection.detector import adopted
from specmine.mining.detection.values import values_of
from specmine.mining.levels.verdict import MARGIN, Factor, usual_factors
from specmine.model.level import MEAN
from specmine.model.observation import Observation
from specmine.model.pooling import pooled
from specmine.model.violation import Violation, ViolationState, What

from . import creep
from .asserted import TRUE
from .change import LEAST_SHARE, NOTABLE, Change, location_of, log_factor, log_of, moment_of, since
from .detection import calmed, detected, is_off, subject_of, with_earlier
from .function_violations import LOCATIONS, Block, FunctionViolations, OpenViolation, identified
from .lost_time import with_window
from .watching import Watching, is_idle_as_usual, is_no_news
from .yardstick import LEAST_CALLS, LEAST_WINDOWS, Yardstick, begun, settled_by, with_asserted
from .yardstick_comparison import change_of, level_change, mean_change

SHORTEST_NS = SECOND
"""Shorter windows so soon after the last one are looked at together: a disturbance may last for several of them. Not
while a violation is open: two of them may be one of before and one of after its end."""
TOGETHER_NS = 120 * SECOND
"""So are windows of too few calls to be looked at alone, for so long at most."""
REFRESHED_NS = 10 * SECOND
"""Numbers of an open violation are renewed this often at most."""
CLOSED_NS = 60 * SECOND
"""After one has closed no window becomes usual for so long: that calls are faster than ever is found first."""
STEPS = 60
"""Windows in ``recover_after`` that are remembered at most."""
LEAST_HOLDING = 3
"""Windows that must hold before a violation closes."""
TAIL = ("p99", MEAN)
"""That of which single windows tell little."""


@dataclass(slots=True)
class _Draft:
    """What a window makes of the violations of a function, step by step."""

    standing: list[OpenViolation]
    examined: set[Stream]
    closed: list[Violation] = field(default_factory=list)


def watched(before: FunctionViolations, observation: Observation, around: Watching) -> FunctionViolations:
    """Return the violations of a function after one more window."""
    pending = _pending(before.pending, observation)
    observation = pooled(pending) if len(pending) > 1 else observation
    short = observation.end_ns - observation.start_ns < SHORTEST_NS and not before.standing
    short &= observation.start_ns - before.detector.ended_ns < SHORTEST_NS
    if short or observation.timed < LEAST_CALLS:
        return before.with_pending(pending, is_off=is_off(before.detector, observation))
    before = replace(before, pending=())
    violations = _without_old(before, observation, around)
    violations = replace(violations, locations=(*violations.locations, location_of(observation))[-LOCATIONS:])
    yardstick = violations.yardstick
    inherited = yardstick is not None and yardstick.inherited_ns is not None
    asserted = yardstick.asserted if yardstick is not None and inherited else around.asserted
    # a compiler inlines otherwise in another build: its paths are no news
    subject = subject_of(asserted, None if inherited else around.result)
    values, detector = values_of(observation, subject), violations.detector
    if not violations.standing:
        detector = with_earlier(detector, observation, values, subject, _earlier(violations, around))
    joined = around.newest[-1] if around.newest and around.newest[-1].end_ns == observation.end_ns else None
    whole = joined if joined is not None and joined.timed > observation.timed else None
    detector, alarms = detected(detector, observation, values, subject, around.threshold, whole, around.usual)
    if yardstick is not None and not inherited and not violations.standing:
        yardstick = with_asserted(yardstick, asserted, around.newest)
    violations = replace(violations, detector=detector, yardstick=yardstick).with_alarms(alarms)
    if yardstick is None or not yardstick.ready:
        return _with_yardstick(violations, observation, around)
    if not around.idle and not is_idle_as_usual(yardstick, (observation,), around):
        violations = replace(violations, lost=with_window(violations.lost, yardstick.usual, observation))
    # a stream that has no value in this window, as where it has few calls, was examined nevertheless
    open_streams = {one.stream for one in detector.streams if one.opened}
    draft = _Draft(standing=[], examined=set(violations.examined) & open_streams)
    for one in violations.standing:
        _renew(draft, one, yardstick, observation, around)
    if draft.closed and not draft.standing:
        # what it was about is over, in all streams: none of them is news
        draft.examined.clear()
        violations = replace(violations, detector=calmed(violations.detector), alarms=(), block=Block())
    violations = _with_new(violations, draft, yardstick, observation, around)
    violations = _with_slow_change(violations, draft, yardstick, observation, around)
    violations = replace(violations, standing=tuple(draft.standing), examined=tuple(sorted(draft.examined, key=repr)))
    violations = violations.with_closed(draft.closed)
    taken = not inherited and not _just_closed(violations, observation)
    if taken and not violations.standing and not violations.evidence:
        violations = replace(violations, yardstick=settled_by(yardstick, observation))
    return violations


def _just_closed(violations: FunctionViolations, observation: Observation) -> bool:
    """Tell whether a violation closed a moment ago."""
    last_ns = max((each.closed_ns or 0 for each in violations.closed), default=0)
    return bool(last_ns) and observation.end_ns - last_ns < CLOSED_NS


def _earlier(violations: FunctionViolations, around: Watching) -> tuple[Observation, ...]:
    """Return the windows that a new stream begins with: those since the last violation closed."""
    first_ns = max((each.closed_ns or 0 for each in violations.closed), default=0)
    return tuple(one for one in around.earlier if one.start_ns >= first_ns and one.timed >= LEAST_CALLS)


def _pending(held: tuple[Observation, ...], observation: Observation) -> tuple[Observation, ...]:
    """Return the windows that are looked at together with a new one: of one kind and one lifetime."""
    alike = (observation.kind, observation.lifetime)
    held = tuple(one for one in held if (one.kind, one.lifetime) == alike)
    if sum(one.timed for one in held) < LEAST_CALLS:
        held = tuple(one for one in held if one.start_ns >= observation.end_ns - TOGETHER_NS)
    return (*held, observation)


def _without_old(violations: FunctionViolations, observation: Observation, around: Watching) -> FunctionViolations:
    """Drop the yardstick of another build once this build has run long enough without a violation."""
    yardstick = violations.yardstick
    if yardstick is None or yardstick.inherited_ns is None or violations.standing:
        return violations
    if observation.end_ns - yardstick.inherited_ns < around.adopt_after_ns:
        return violations
    return replace(violations, yardstick=None, block=Block())


def _with_yardstick(violations: FunctionViolations, observation: Observation, around: Watching) -> FunctionViolations:
    """Begin a yardstick as soon as there are enough windows; add to one that has too few."""
    first_ns = violations.yardstick.since_ns if violations.yardstick is not None else 0
    enough = [one for one in around.newest if one.timed >= LEAST_CALLS and one.start_ns >= first_ns]
    if len(enough) < LEAST_WINDOWS or violations.evidence:
        return violations
    made = begun(around.build_id, around.asserted, enough, observation.end_ns)
    return replace(violations, yardstick=made) if made.ready else violations


def _renew(draft: _Draft, one: OpenViolation, yardstick: Yardstick, observation: Observation, around: Watching) -> None:
    """Renew an open violation by a window, or close it if it has held again for long enough."""
    violation, now_ns = one.violation, observation.end_ns
    factor = log_factor(_without_numbers(one), yardstick, observation)
    if factor is None:
        factor = _of_new_paths(violation, observation, around)
    if factor is None:
        draft.standing.append(one)
        return
    spacing_ns = around.recover_after_ns // STEPS
    if not one.factors or now_ns - one.factors[-1][0] >= spacing_ns:
        one = replace(one, factors=(*_remembered(one.factors, now_ns - around.recover_after_ns), (now_ns, factor)))
    if _holds_again(one, yardstick, now_ns, around):
        draft.closed.append(violation.closed(ViolationState.RECOVERED, now_ns))
        return
    if not _is_normal(factor, one, yardstick) and now_ns - one.refreshed_ns >= REFRESHED_NS:
        renewed = _with_newest_numbers(one, yardstick, around)
        further = abs(math.log(max(renewed.factor, 1e-9))) > abs(one.extent)
        largest = renewed.factor if further else one.largest or violation.factor
        one = replace(one, violation=renewed, refreshed_ns=now_ns, largest=largest)
    draft.standing.append(one)


def _remembered(factors: tuple[tuple[int, float], ...], since_ns: int) -> tuple[tuple[int, float], ...]:
    """Return the factors since a moment and the last one before it; where windows are rare, the newest ones."""
    before = sum(end_ns < since_ns for end_ns, _ in factors)
    return factors[max(0, min(before - 1, len(factors) - LEAST_HOLDING)) :]


def _of_new_paths(violation: Violation, observation: Observation, around: Watching) -> float | None:
    """Return the factor of a violation while calls come over new paths, and 0 once they do not; None: not known."""
    complete = [part for part in observation.paths if part.path.complete]
    calls = sum(part.histogram.total for part in complete)
    if violation.what is not What.PATH or around.result is None or not calls:
        return None
    known = {each.path.near for each in around.result.paths}
    new = sum(part.histogram.total for part in complete if part.path.near not in known)
    return 0.0 if new < LEAST_SHARE * calls else math.log(max(violation.factor, 1e-9))


def _is_normal(factor: float, one: OpenViolation, yardstick: Yardstick) -> bool:
    """Tell whether a factor is within what is usual, or on the other side of it, and nearer to it than the violation.

    Calls that are faster than asserted are not slower: if that lasts, it is a change of its own.
    """
    slower = one.extent >= 0
    off = factor if slower else -factor
    if off > 0.5 * abs(one.extent):
        return False
    quantile = yardstick.levels.get(one.violation.expression, yardstick.level).quantile(one.violation.quantile)
    usual = usual_factors(quantile) if quantile is not None and one.violation.what is What.LEVEL else None
    least, most = (0.0, 0.0) if usual is None else map(log_of, usual)
    return off <= max(most if slower else -least, math.log1p(MARGIN))


def is_back(one: OpenViolation, yardstick: Yardstick) -> bool:
    """Tell whether the newest window was as asserted again, though not yet for long enough to close."""
    return bool(one.factors) and _is_normal(one.factors[-1][1], one, yardstick)


def _holds_again(one: OpenViolation, yardstick: Yardstick, now_ns: int, around: Watching) -> bool:
    """Tell whether the windows of the last ``recover_after`` are as asserted again: by their median, but for a tail.

    Where one call in a hundred is paused, most windows of 120 calls have a p99 and a mean as before: there all count.
    """
    held = one.factors
    if len(held) < LEAST_HOLDING or now_ns - held[0][0] < around.recover_after_ns - around.recover_after_ns // STEPS:
        return False
    factors = np.array([factor for _, factor in held])
    slower = one.extent >= 0
    if one.violation.what is What.LEVEL and one.violation.quantile in TAIL:
        middle = float(np.mean(np.maximum(factors, 0.0) if slower else np.minimum(factors, 0.0)))
    else:
        middle = float(np.median(factors))
    return _is_normal(middle, one, yardstick) and _is_normal(float(factors[-1]), one, yardstick)


def _with_newest_numbers(one: OpenViolation, yardstick: Yardstick, around: Watching) -> Violation:
    """Return an open violation with the numbers of the newest windows."""
    violation = one.violation
    observed = since(around.newest, violation.since_ns)
    if violation.what is not What.LEVEL or one.of_class is not None:
        return violation
    change = level_change(yardstick, observed, violation.expression)
    if violation.quantile == MEAN and (change is None or change.quantile == "p99"):
        change = mean_change(yardstick, observed)  # whether a hundredth of the calls is paused is a matter of luck
    if change is None or change.direction is not violation.direction or not change.is_sure:
        return violation
    return _with_numbers(violation, change)


def _with_new(
    violations: FunctionViolations,
    draft: _Draft,
    yardstick: Yardstick,
    observation: Observation,
    around: Watching,
) -> FunctionViolations:
    """Open what alarms are about, unless an open violation is about it; each alarm is looked at once."""
    for alarm in violations.alarms:
        if not alarm.opened or alarm.stream in draft.examined:
            continue
        draft.examined.add(alarm.stream)
        observed = since(around.newest, alarm.since_ns)
        change = change_of(yardstick, alarm, observed) if observed else None
        if change is None or is_no_news(change, yardstick, observed, around):
            draft.examined.discard(alarm.stream)
            violations = replace(violations, detector=adopted(violations.detector, alarm.stream))
        elif change.what is What.LEVEL and not change.is_sure:
            draft.examined.discard(alarm.stream)  # suspected until more windows tell by how much
        elif not _is_covered(change, draft.standing):
            since_ns = moment_of(change, yardstick, observed, alarm.since_ns, violations.locations)
            draft.standing.append(_violation(change, since_ns, observation.end_ns, around))
    return violations


def _with_slow_change(
    violations: FunctionViolations,
    draft: _Draft,
    yardstick: Yardstick,
    observation: Observation,
    around: Watching,
) -> FunctionViolations:
    """Open a change that is so slow that the detector's baseline followed it."""
    if draft.standing or yardstick.settling is not None:
        return replace(violations, block=Block())
    block, first_ns = creep.with_window(violations.block, yardstick, observation)
    if first_ns is not None:
        observed = since(around.newest, first_ns)
        change = level_change(yardstick, observed, TRUE)
        notable = change is not None and abs(math.log(max(change.factor.value, 1e-9))) >= NOTABLE
        if change is not None and notable and not is_no_news(change, yardstick, observed, around):
            draft.standing.append(_violation(change, first_ns, observation.end_ns, around))
    return replace(violations, block=block)


def _is_covered(change: Change, standing: Sequence[OpenViolation]) -> bool:
    """Tell whether an open violation says it already: of all calls in the same direction, or of the same behaviour."""
    for one in standing:
        known = one.violation
        if (known.what, known.expression) == (change.what, change.expression):
            return True
        same = known.direction is change.direction
        if same and TRUE in (known.expression, change.expression) and What.PATH not in (known.what, change.what):
            return True
    return False


def _violation(change: Change, since_ns: int, now_ns: int, around: Watching) -> OpenViolation:
    blank = Violation(
        function=around.function,
        what=change.what,
        direction=change.direction,
        factor=change.factor.value,
        factor_low=change.factor.low,
        factor_high=change.factor.high,
        expression=change.expression,
        since_ns=min(since_ns, now_ns),
        found_ns=now_ns,
    )
    made = identified(_with_numbers(blank, change), around.utc_offset_ns)
    return OpenViolation(violation=made, of_class=change.of_class, refreshed_ns=now_ns)


def _with_numbers(violation: Violation, change: Change) -> Violation:
    return replace(
        violation,
        direction=change.direction,
        factor=change.factor.value,
        factor_low=change.factor.low,
        factor_high=change.factor.high,
        quantile=change.quantile,
        expected=change.expected,
        observed=change.observed,
        upper_ns=change.upper_ns,
    )


def _without_numbers(one: OpenViolation) -> Change:
    """Return what an open violation is about, without its numbers."""
    violation = one.violation
    return Change(
        what=violation.what,
        direction=violation.direction,
        factor=Factor(value=violation.factor, low=violation.factor_low, high=violation.factor_high),
        quantile=violation.quantile,
        expression=violation.expression,
        upper_ns=violation.upper_ns,
        of_class=one.of_class,
    )
