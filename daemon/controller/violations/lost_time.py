"""The time that calls take more than asserted: what a change costs, also one that no test has found yet. Pure.

Service levels are watched by the error budget that they burn (Beyer et al., The Site Reliability Workbook, chapter 5).
Time above what is asserted is the same for durations. It shows a slow creep long before any single window is unusual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmine.daemon.config.settings import SECOND
from specmine.model.observation import Observation

from .usual import Usual, usual_of

SMOOTHING = 0.125
"""Weight of a window in the running mean of the difference ..."""
LEAST = 0.05
"""... which counts from this share of the mean on. Windows that vary by 10 % have one that varies by 2.6 %."""
LONGEST_NS = 120 * SECOND
"""A window stands for the time since the one before, at most this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTime:
    """What the calls of one function took more than asserted."""

    total_ns: float = 0.0
    """Estimated for all calls, those that were not timed too."""
    excess: float = 0.0
    """Running mean of the difference of mean durations, as a share of the usual one."""
    ended_ns: int = 0
    """End of the newest window; 0: none yet."""

    def shifted(self, by_ns: int) -> LostTime:
        """Return it with its time on a clock that is ahead by so much."""
        return replace(self, ended_ns=self.ended_ns + by_ns if self.ended_ns else 0)


def with_window(lost: LostTime, usual: Usual, observation: Observation) -> LostTime:
    """Return the lost time after one more window.

    Parameters
    ----------
    lost : LostTime
    usual : Usual
        How calls were when they were learned.
    observation : Observation
        A window with timed calls; it stands for the time since the one before.
    """
    now = usual_of((observation,))
    if usual.mean_ns <= 0 or not now.calls:
        return lost
    excess = lost.excess + SMOOTHING * (now.mean_ns / usual.mean_ns - 1 - lost.excess)
    first_ns = max(lost.ended_ns or observation.start_ns, observation.end_ns - LONGEST_NS)
    lasted_ns = max(0, observation.end_ns - first_ns)
    more_ns = excess * usual.mean_ns * (now.rate or 0.0) * lasted_ns / SECOND if excess >= LEAST else 0.0
    return LostTime(total_ns=lost.total_ns + more_ns, excess=excess, ended_ns=observation.end_ns)
