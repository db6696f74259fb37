"""When a suspicion ends that never had enough evidence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specmine.mining.detection.detector import adopted
from specmine.model.observation import Observation

from .change import change_of
from .function_violations import URGENT, FunctionViolations
from .yardstick import Yardstick

REASSURING = 6
"""Windows in a row that are as asserted end a suspicion."""


def without_unfounded(
    violations: FunctionViolations, yardstick: Yardstick, newest: Sequence[Observation]
) -> FunctionViolations:
    """Drop suspicions that the newest windows do not bear out: by the yardstick they are as asserted.

    A change that ends before there is enough evidence leaves what there is: the detector's baseline follows, and later
    windows speak neither for nor against it. While something is suspected its windows come before all others.
    """
    unfounded = []
    for alarm in violations.alarms:
        if alarm.opened or alarm.log_e < URGENT:
            continue
        later = [one for one in newest[-REASSURING:] if one.start_ns >= alarm.since_ns]
        if len(later) == REASSURING and change_of(yardstick, alarm, later) is None:
            unfounded.append(alarm.stream)
    if not unfounded:
        return violations
    detector = violations.detector
    for stream in unfounded:
        detector = adopted(detector, stream)
    left = tuple(alarm for alarm in violations.alarms if alarm.stream not in unfounded)
    return replace(violations, detector=detector, alarms=left)
