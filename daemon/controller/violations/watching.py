"""What is known of a function around one of its windows, and which changes are no news by it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from specmine.daemon.config.settings import SECOND
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.detection.host_spread import UsualSpreads
from specmine.model.observation import Observation
from specmine.model.violation import Direction

from .asserted import Asserted
from .change import Change
from .usual import Usual, usual_of
from .yardstick import Yardstick

MOSTLY_IDLE = 0.5
"""From this idle share on a function mostly waits for work."""
AS_MUCH_TIME = 1.2
"""Where there is only less to do, it has no more than so many times its usual time in a second ..."""
UNSURE = 3.0
"""... as far as this many standard errors of it tell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watching:
    """What is known of a function around one window."""

    function: str
    """Its key."""
    build_id: str
    asserted: Asserted
    """What it asserts itself."""
    result: Explanation | None = None
    idle: bool = False
    """It waits for work: how long tells how much work there is, not how slow it is."""
    idle_share: float = 0.0
    """Share of its time that waits for work, in what it calls."""
    newest: Sequence[Observation] = ()
    """Its newest windows, oldest first, this one included."""
    earlier: Sequence[Observation] = ()
    """All its windows that are remembered, without call paths and with them: streams that are new begin with these."""
    recover_after_ns: int = 300 * SECOND
    adopt_after_ns: int = 86_400 * SECOND
    utc_offset_ns: int = 0
    threshold: float | None = None
    """Evidence of a change, as calibrated on this host ..."""
    usual: UsualSpreads = field(default_factory=dict)
    """... and how far its windows usually vary."""


def is_no_news(change: Change, yardstick: Yardstick, observed: Sequence[Observation], around: Watching) -> bool:
    """Tell whether waits for work have another length, or calls are only faster than while something was slower."""
    if around.idle or (bool(yardstick.during) and change.direction is Direction.FASTER):
        return True
    return is_idle_as_usual(yardstick, observed, around)


def is_idle_as_usual(yardstick: Yardstick, observed: Sequence[Observation], around: Watching) -> bool:
    """Tell whether a function that mostly waits for work has no more time a second than usual.

    A thread without work is in its main loop all the time. With half of the requests its waits are twice as long, and
    half as many: nobody waits longer. A function that has more time in a second than usual does cost somebody time.
    """
    return around.idle_share >= MOSTLY_IDLE and _is_as_much_time(yardstick.usual, usual_of(observed))


def _is_as_much_time(usual: Usual, now: Usual) -> bool:
    before, after = usual.rate, now.rate
    if before is None or after is None:
        return False
    unsure = math.exp(UNSURE * math.sqrt(total_variance(usual) + total_variance(now)))
    return after * now.mean_ns <= AS_MUCH_TIME * unsure * before * usual.mean_ns


def total_variance(some: Usual) -> float:
    """Return the variance of the total of the durations over its square, their number drawn too (compound Poisson)."""
    mean_ns = some.histogram.mean()
    return (1 + (some.histogram.std() / mean_ns) ** 2) / some.calls if mean_ns > 0 else 0.0
