"""The threshold of evidence, calibrated by what the unchanged functions of a host show.

If the model were right, the evidence of an unchanged stream would exceed h once in exp(h) windows. No model is. So the
peaks of evidence that did not become a change are kept for a week. Their tail above 15 is exponential with a rate that
is 1 for a right model, and was 1.0 to 1.3 in simulation. The threshold follows from it and from the number of false
pages that are allowed: a rate, which adds up over streams whatever depends on what.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

FROM = 15.0
"""Peaks above this are counted."""
FIRST = 16.5
"""The threshold until a day was seen."""
LEAST, MOST = 16.5, 26.0
PAGES_A_MONTH = 1.0
"""False pages of a host that are allowed, all functions together."""
MONTH_SECONDS = 30 * 86_400.0
KEPT_SECONDS = 7 * 86_400.0
FIRST_SECONDS = 75_000.0
"""A day, less what faded of it."""
PRIOR_PEAKS = 10.0
"""How many peaks the usual tail is worth ..."""
PRIOR_RATE = 1.2
"""... and its rate."""
NARROW, WIDE = 0.125, 0.175
"""Standard deviations of windows, in log units, sampling excepted. Up to the first a stream needs no more evidence than
the threshold, from the second on ..."""
MORE = 3.5
"""... so much more."""


def more_evidence(wander: float) -> float:
    """Return how much more evidence a change needs in a stream whose windows vary widely.

    Most false changes are jumps of wide streams. There a change of half as much again takes minutes whatever the
    threshold, and a large one a window more. So the false pages that are allowed are spent where they buy speed: the
    streams have weights, as tests have in Genovese, Roeder and Wasserman, *False discovery control with p-value
    weighting*, Biometrika 93, 2006.

    Parameters
    ----------
    wander : float
        Variance of windows less that of sampling, log units squared.
    """
    spread = math.sqrt(max(0.0, wander))
    return MORE * min(1.0, max(0.0, (spread - NARROW) / (WIDE - NARROW)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The peaks of a host's evidence. Forgetting is exponential, so a few numbers hold it."""

    peaks: float = 0.0
    """Number above ``FROM``, of the last week."""
    excess: float = 0.0
    """Sum of what they exceed it by."""
    seconds: float = 0.0
    """Time that they are of, at most the week."""
    told_ns: int = 0
    """Until when."""

    @property
    def rate(self) -> float:
        """Rate of the exponential tail."""
        return (self.peaks + PRIOR_PEAKS) / (self.excess + PRIOR_PEAKS / PRIOR_RATE)

    @property
    def threshold(self) -> float:
        """Evidence of a change; nan never."""
        if self.seconds < FIRST_SECONDS:
            return FIRST
        month = max(self.peaks, 1.0) * MONTH_SECONDS / self.seconds
        return min(MOST, max(LEAST, FROM + math.log(month / PAGES_A_MONTH) / self.rate))

    def pages_a_month(self, threshold: float | None = None) -> float:
        """Return how many false pages a month are expected at a threshold, by default the present one."""
        if not self.seconds:
            return PAGES_A_MONTH
        at = self.threshold if threshold is None else threshold
        return self.peaks * MONTH_SECONDS / self.seconds * math.exp(-self.rate * (at - FROM))


def with_time(calibration: Calibration, now_ns: int) -> Calibration:
    """Return the calibration at a later time; what is older than a week fades."""
    if not calibration.told_ns:
        return replace(calibration, told_ns=now_ns)
    elapsed = max(0.0, (now_ns - calibration.told_ns) * 1e-9)
    kept = math.exp(-elapsed / KEPT_SECONDS)
    return Calibration(
        peaks=calibration.peaks * kept,
        excess=calibration.excess * kept,
        seconds=KEPT_SECONDS * (1 - (1 - calibration.seconds / KEPT_SECONDS) * kept),
        told_ns=now_ns,
    )


def with_peak(calibration: Calibration, peak: float) -> Calibration:
    """Return the calibration with the peak of an excursion that did not become a change."""
    if peak <= FROM:
        return calibration
    return replace(calibration, peaks=calibration.peaks + 1, excess=calibration.excess + peak - FROM)
