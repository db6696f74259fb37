"""From a window to alarms: the detector of one function, fed with what its assertion says is to be watched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from specmine.mining.assertions.explanation import Explanation
from specmine.mining.detection.alarm import EVERY_CALL, Alarm
from specmine.mining.detection.detector import FIRST_WINDOWS, THRESHOLD, DetectorState, adopted, advance, settled
from specmine.mining.detection.host_spread import NOTHING_USUAL, UsualSpreads
from specmine.mining.detection.values import LEAST_CALLS, Subject, Value, mean_log, values_of
from specmine.model.observation import Observation

from .asserted import Asserted

LEAST_OFF, DEVIATIONS = math.log(1.5), 3.0
"""Few calls are far off if their location is by this factor, and by so many standard deviations."""


def subject_of(asserted: Asserted, result: Explanation | None) -> Subject:
    """Return what is watched: classes and behaviours, and whether calls come over paths that ``result`` knows."""
    known = frozenset(each.path for each in result.paths if each.path.complete) if result is not None else frozenset()
    return Subject(
        edges=asserted.edges,
        bias_ns=asserted.bias_ns,
        behaviours=tuple((claim.expression, claim.formula) for claim in asserted.behaviours),
        shared=frozenset(asserted.shared),
        known=known,
    )


def with_earlier(
    detector: DetectorState,
    observation: Observation,
    values: Sequence[Value],
    subject: Subject,
    earlier: Sequence[Observation],
) -> DetectorState:
    """Return the detector with the streams that begin with this window, as if they had begun with earlier ones.

    Classes and behaviours become known after some windows. Without these, a change of one class would be found much
    later than one of all calls, since a stream of few windows is hardly known.

    Parameters
    ----------
    detector : DetectorState
    observation : Observation
        The window that is about to be looked at.
    values : sequence of Value
        Its values.
    subject : Subject
    earlier : sequence of Observation
        In any order; those that end no earlier than ``observation`` are left out.
    """
    known = {one.stream for one in detector.streams}
    new = {value.stream for value in values} - known
    if not new:
        return detector
    fresh = DetectorState()
    for one in sorted(earlier, key=lambda each: each.end_ns):
        if one.end_ns < observation.end_ns:
            values = [value for value in values_of(one, subject) if value.stream in new]
            fresh, _ = advance(
                fresh, values, one.end_ns, began_ns=one.start_ns, lifetime=one.lifetime, threshold=math.inf
            )
    return replace(detector, streams=(*detector.streams, *fresh.streams))


def detected(
    detector: DetectorState,
    observation: Observation,
    values: Sequence[Value],
    subject: Subject,
    threshold: float | None = None,
    whole: Observation | None = None,
    usual: UsualSpreads = NOTHING_USUAL,
) -> tuple[DetectorState, tuple[Alarm, ...]]:
    """Return the detector after a window, and the streams that may have changed, or have.

    Parameters
    ----------
    detector : DetectorState
    observation : Observation
    values : sequence of Value
        Its values.
    subject : Subject
    threshold : float, optional
        Evidence of a change on this host; by default that of a host that is not known yet.
    whole : Observation, optional
        The window together with the one before it, where each holds few calls: it may have streams that neither has.
    usual : mapping of str to float
        How far windows of this host usually vary.
    """
    if whole is not None:
        values = (*values, *_of_whole(detector, values, whole, subject))
    watched = {value.stream for value in values}
    after, alarms = advance(
        detector,
        values,
        observation.end_ns,
        began_ns=observation.start_ns,
        lifetime=observation.lifetime,
        threshold=THRESHOLD if threshold is None else threshold,
        usual=usual,
    )
    return after, tuple(alarm for alarm in alarms if alarm.stream in watched)


def is_off(detector: DetectorState, observation: Observation) -> bool:
    """Tell whether calls that are too few to be looked at alone take much longer than usual."""
    one = detector.find(EVERY_CALL)
    if one is None or one.seen < FIRST_WINDOWS or observation.timed < LEAST_CALLS:
        return False
    place, variance = mean_log(observation.histogram, observation.bias_ns, observation.uncertainty_ns)
    spread = math.sqrt(max(0.0, one.variance - one.sampling) + variance)
    return place - one.baseline >= max(LEAST_OFF, DEVIATIONS * spread)


def _of_whole(
    detector: DetectorState, values: Sequence[Value], whole: Observation, subject: Subject
) -> tuple[Value, ...]:
    """Return the values of streams that only two windows together have, those of which no call was looked at yet."""
    told = {value.stream for value in values}
    told |= {one.stream for one in detector.streams if one.ended_ns > whole.start_ns}
    return tuple(value for value in values_of(whole, subject) if value.stream not in told)


def calmed(detector: DetectorState) -> DetectorState:
    """Return the detector after all changes went away: its baselines are what they were."""
    for one in detector.streams:
        if one.opened or one.excursions:
            detector = settled(detector, one.stream)
    return detector


def accepted(detector: DetectorState) -> DetectorState:
    """Return the detector after a person accepted what changed: its baselines are what was seen since."""
    for one in detector.streams:
        if one.opened:
            detector = adopted(detector, one.stream)
    return calmed(detector)


def shifted(detector: DetectorState, by_ns: int) -> DetectorState:
    """Return the detector with its times on a clock that is ahead by so much."""
    streams = tuple(
        replace(
            one,
            ended_ns=one.ended_ns + by_ns,
            changed_ns=one.changed_ns + by_ns if one.changed_ns else 0,
            excursions=tuple(replace(each, since=each.since + by_ns * 1e-9) for each in one.excursions),
        )
        for one in detector.streams
    )
    return replace(detector, streams=streams)
