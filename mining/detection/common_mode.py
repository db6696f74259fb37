"""The common mode of a host: if most functions are slower at once, it is the host, and no function is to blame."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from .alarm import EVERY_CALL
from .detector import DetectorState

NEAR_SECONDS = 10.0
"""Windows of the last seconds make the common mode."""
LEAST_FUNCTIONS = 8
DISTURBED = 3.0
"""Standard deviations that the median of the functions is off by on a disturbed host ..."""
LOOKS = 2
"""... so many times in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surprise:
    """How far the last window of a function was from its prediction, in standard deviations."""

    at_ns: int
    deviations: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonMode:
    """What the functions of a host showed lately."""

    surprises: Mapping[str, Surprise] = field(default_factory=dict)
    """The last of each function, by its key."""
    looks: int = 0
    """Looks in a row at which the host was disturbed."""
    looked_ns: int = 0

    @property
    def disturbed(self) -> bool:
        """True if the host slows all its functions."""
        return self.looks >= LOOKS


def with_surprise(mode: CommonMode, function: str, deviations: float, now_ns: int) -> CommonMode:
    """Return the common mode after a window of a function; a look is taken each ten seconds."""
    oldest = now_ns - int(NEAR_SECONDS * 1e9)
    near = {key: one for key, one in mode.surprises.items() if one.at_ns > oldest}
    near[function] = Surprise(at_ns=now_ns, deviations=deviations)
    if now_ns - mode.looked_ns < NEAR_SECONDS * 1e9:
        return CommonMode(surprises=near, looks=mode.looks, looked_ns=mode.looked_ns)
    middle = common_deviation(near)
    looks = mode.looks + 1 if middle is not None and abs(middle) > DISTURBED else 0
    return CommonMode(surprises=near, looks=looks, looked_ns=now_ns)


def common_deviation(near: Mapping[str, Surprise]) -> float | None:
    """Return the median of the functions' surprises; None of fewer than eight."""
    if len(near) < LEAST_FUNCTIONS:
        return None
    return statistics.median(one.deviations for one in near.values())


def deviations_of(state: DetectorState) -> float:
    """Return how far the last window of a function was off its prediction, in standard deviations: of all its calls."""
    every = state.find(EVERY_CALL)
    return every.offset / every.variance**0.5 if every is not None and every.variance > 0 else 0.0
