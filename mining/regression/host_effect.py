"""Whether the host explains a change: new or heavier classes whose distance from the main one the host adds.

After Hauck (2013, sections 5.5.2 and 6.3): an interrupted call is whole timeslices longer, a limited one its quota's
pause, and the same work takes longer by one factor on a slower or shared CPU. Only durations and the hosts' vectors
are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specmine.mining.borders.detection import borders
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES, BUCKETS
from specmine.model.histogram import Histogram
from specmine.model.host.environment import (
    WITHIN,
    Cause,
    Difference,
    Environment,
    cause_of,
    differences,
    factor_of,
    moved_slice,
)

from .sample import quantile, sample_of_histogram

SMALLEST_GAIN = 0.02
"""A class that gained a smaller share of the calls needs no cause."""
SAME = 0.05
"""The main class is where it was if its median moved by less."""
FEWEST = 20
"""A class of fewer calls has no usable median."""
_HALF_BUCKET = 1 / 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A class of the new durations that needs a cause."""

    median_ns: float
    gain: float
    """Share of the calls that it gained; 0 for the main class."""
    excess_ns: float
    """Its median less that of the base's main class."""
    cause: Cause | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "median_seconds": self.median_ns * 1e-9,
            "excess_seconds": self.excess_ns * 1e-9,
            "gained_share": self.gain,
            "cause": self.cause.code if self.cause else None,
            "times": self.cause.times if self.cause else None,
            "text": self.cause.text if self.cause else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvidence:
    """What of a change the hosts explain."""

    shifts: tuple[Shift, ...]
    differences: tuple[Difference, ...]

    @property
    def explained(self) -> bool:
        """True if something changed and the host explains all of it."""
        return bool(self.shifts) and all(each.cause is not None for each in self.shifts)

    @property
    def reason(self) -> str:
        """What it explains, in words; '' if nothing."""
        reasons = [
            each.cause.text if not each.gain else f"{100 * each.gain:.2g} % more calls {each.cause.text}"
            for each in self.shifts
            if each.cause is not None
        ]
        return "; ".join(reasons)

    def document(self) -> dict[str, Any]:
        """Return it as JSON, without the differences."""
        shifts = [each.document() for each in self.shifts]
        return {"explained": self.explained, "reason": self.reason, "shifts": shifts}


def host_evidence(
    base: Histogram, new: Histogram, environments: tuple[Environment | None, Environment | None]
) -> HostEvidence:
    """Explain by the hosts how durations changed.

    Parameters
    ----------
    base, new : Histogram
        Calls per bucket of duration.
    environments : pair of Environment or None
        Of the hosts on which each side was measured; None: nothing is known.

    Returns
    -------
    HostEvidence
        A shift for the main class if it moved, and for each class above it that gained calls. Classes are those of
        either side, as borders that stand out cut them.
    """
    was, now = (each or Environment() for each in environments)
    unlike = differences(was, now)
    if min(base.total, new.total) < FEWEST:
        return HostEvidence(shifts=(), differences=unlike)
    edges = _edges(new)
    main_base, main_new = _main(base, _edges(base)), None
    if main_base is None:
        return HostEvidence(shifts=(), differences=unlike)
    shares = [_shares(each, edges) for each in (base, new)]
    bounds = BUCKET_EDGES
    shifts = []
    for at, (first, last) in enumerate(_ranges(edges)):
        part = new.part(first, last)
        if part.total < FEWEST:
            continue
        median = quantile(sample_of_histogram(part), 0.5)
        excess = median - main_base
        if bounds[first] <= main_base < (bounds[last] if last < BUCKETS else np.inf):
            main_new = median
            continue
        gain = shares[1][at] - shares[0][at]
        if excess > 0 and gain >= SMALLEST_GAIN:
            within = max(WITHIN, median * _HALF_BUCKET / excess)
            cause = cause_of(excess * 1e-9, now, within=within) or moved_slice(excess * 1e-9, was, now)
            shifts.append(Shift(median_ns=median, gain=gain, excess_ns=excess, cause=cause))
    if main_new is None or abs(main_new / main_base - 1) > SAME:
        middle = _main(new, edges) if main_new is None else main_new
        if middle is not None:
            cause = factor_of(middle / main_base, was, now)
            shifts = [
                Shift(median_ns=middle, gain=0.0, excess_ns=middle - main_base, cause=cause),
                # where everything is slower by a factor, what is heavier above is judged from there
                *(each for each in shifts if each.median_ns != middle),
            ]
    return HostEvidence(shifts=tuple(shifts), differences=unlike)


def _edges(histogram: Histogram) -> list[int]:
    settings = MiningSettings()
    found = borders(histogram, settings=settings)
    return [each.edge for each in found if each.evidence.significance >= settings.stable_z]


def _ranges(edges: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip([0, *edges], [*edges, BUCKETS], strict=True))


def _shares(histogram: Histogram, edges: Sequence[int]) -> list[float]:
    return [float(count) / max(1.0, histogram.total) for count in histogram.class_counts(edges)]


def _main(histogram: Histogram, edges: Sequence[int]) -> float | None:
    """Return the median of the class with most calls, ns."""
    parts = [histogram.part(first, last) for first, last in _ranges(edges)]
    largest = max(parts, key=lambda part: part.total)
    return quantile(sample_of_histogram(largest), 0.5) if largest.total else None
