"""The detector of one function: from the values of a window to what is suspected, and what has changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specmine.mining.statistics.student_t import normal_quantile
from specmine.model.violation import Direction, What

from .alarm import Alarm, Stream
from .changes import STEPS, SUSPECTED
from .host_spread import NOTHING_USUAL, UsualSpreads, with_usual
from .innovations import GRAIN, step
from .state import Excursion, StreamState, excursions_of, first_state, scalars_of, to_arrays
from .streams import Streams
from .threshold import more_evidence
from .values import Value, share_of

SHOWN = 12.0
"""Evidence from which people are shown that a change is suspected."""
THRESHOLD = 16.5
"""Evidence of a change, until a day has shown how far the evidence of unchanged functions goes."""
LEAST_WINDOWS = 4
"""Windows that a change rests on."""
LEAST_FACTOR = 1.25
"""Smaller changes of a level do not matter."""
LEAST_SHARE = 0.05
"""Smaller changes of a share do not matter."""
FAST_SECONDS = 5.0
"""Time between windows of a suspected function."""
LONGEST_SECONDS = 120.0
"""Longest usual time between windows."""
FIRST_WINDOWS = 5
"""Windows of a stream before it has evidence."""
RECENT_WINDOWS = 30.0
"""An open change's factor is of about so many of the newest windows."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorState:
    """The streams of one function."""

    streams: tuple[StreamState, ...] = ()
    lifetime: str = ""
    """Of the last window."""

    @property
    def ended_ns(self) -> int:
        """End of the newest window that was looked at, CLOCK_MONOTONIC; 0: none was."""
        return max((one.ended_ns for one in self.streams), default=0)

    def find(self, stream: Stream) -> StreamState | None:
        """Return the state of a stream; None if it has none."""
        return next((one for one in self.streams if one.stream == stream), None)


def advance(
    state: DetectorState,
    values: Sequence[Value],
    now_ns: int,
    *,
    began_ns: int,
    lifetime: str = "",
    threshold: float = THRESHOLD,
    lifetime_sd: float = 0.03,
    usual: UsualSpreads = NOTHING_USUAL,
) -> tuple[DetectorState, tuple[Alarm, ...]]:
    """Take the values of one window into account.

    Parameters
    ----------
    state : DetectorState
        ``DetectorState()`` at first. The first windows of a stream become its baseline.
    values : sequence of Value
        Of this window; streams that have none stay as they are.
    now_ns, began_ns : int
        End and start of the window.
    lifetime : str
        In another lifetime than before, the location may differ by ``lifetime_sd`` log units.
    usual : mapping of str to float
        How far windows of this host usually vary (``host_spread.usual_spreads``).
    threshold : float
        Evidence of a change (``threshold.Calibration``).

    Returns
    -------
    DetectorState, tuple of Alarm
        Alarms of all streams that are suspected or open, most evidence first.
    """
    if not values:
        return state, ()
    known = {one.stream: one for one in state.streams}
    first = (known.get(value.stream) or first_state(value.stream, value.place, value.variance) for value in values)
    held = [with_usual(one, usual) for one in first]
    before = to_arrays(held)
    if lifetime != state.lifetime:
        before.place[:] = 0.0
        before.doubt[:] = np.maximum(before.variance - [value.variance for value in values], 0) + lifetime_sd**2
    elapsed = np.array([max(1e-3, (now_ns - one.ended_ns) * 1e-9) if one.seen else one.interval for one in held])
    before.interval[:] = [_interval(one, gone) for one, gone in zip(held, elapsed.tolist(), strict=True)]
    after = step(
        before,
        np.array([value.place for value in values]),
        np.array([value.variance for value in values]),
        elapsed,
        np.full(len(values), began_ns * 1e-9),
        np.array([0.0 if one.opened else 1.0 for one in held]),
    )
    for row, (one, value) in enumerate(zip(held, values, strict=True)):
        known[value.stream] = _renewed(one, value, after, row, now_ns, threshold)
    renewed = DetectorState(streams=tuple(known.values()), lifetime=lifetime)
    alarms = [alarm for value in values if (alarm := alarm_of(known[value.stream])) is not None]
    return renewed, tuple(sorted(alarms, key=lambda alarm: (-alarm.opened, -alarm.log_e)))


def alarm_of(one: StreamState) -> Alarm | None:
    """Return what a stream says: None, a suspicion, or a change."""
    if one.opened:
        return _alarm(one, one.recent, one.after, one.changed_ns, one.peak, opened=True)
    strongest = max(one.excursions, key=lambda excursion: excursion.evidence, default=None)
    if strongest is None or strongest.evidence <= SUSPECTED:
        return None
    mean = strongest.total / strongest.windows
    since_ns = round(strongest.since * 1e9)
    return _alarm(one, mean, strongest.windows, since_ns, strongest.evidence, opened=False)


def settled(state: DetectorState, stream: Stream) -> DetectorState:
    """Return the state after a change went away: the baseline is what it was, and the evidence is gone."""
    return _replaced(
        state, stream, lambda one: replace(one, opened=False, excursions=(), peak=0.0, place=0.0, last=0.0, recent=0.0)
    )


def adopted(state: DetectorState, stream: Stream) -> DetectorState:
    """Return the state after a person accepted a change: the baseline is what was seen since."""
    return _replaced(
        state,
        stream,
        lambda one: replace(
            one,
            opened=False,
            excursions=(),
            peak=0.0,
            baseline=one.baseline + one.recent,
            place=0.0,
            last=0.0,
            recent=0.0,
        ),
    )


def is_suspicious(state: DetectorState) -> bool:
    """Return whether windows of this function should come each ``FAST_SECONDS``."""
    return any(one.opened or _strongest(one) > SUSPECTED for one in state.streams)


def finished_peaks(before: DetectorState, after: DetectorState) -> tuple[float, ...]:
    """Return the peaks of evidence that went away without an alarm; the threshold learns from them."""
    held = {one.stream: one for one in after.streams}
    return tuple(one.peak for one in before.streams if one.peak and not one.opened and not held[one.stream].peak)


def _strongest(one: StreamState) -> float:
    return max((excursion.evidence for excursion in one.excursions), default=0.0)


def _interval(one: StreamState, elapsed: float) -> float:
    """Return the usual time between windows; those of a suspicion do not count."""
    if one.seen == 0 or _strongest(one) > SUSPECTED:
        return one.interval
    bounded = min(LONGEST_SECONDS, max(1.0, elapsed))
    return bounded if one.seen == 1 else one.interval + 0.1 * (bounded - one.interval)


def _renewed(one: StreamState, value: Value, after: Streams, row: int, ended_ns: int, threshold: float) -> StreamState:
    """Return a stream after its window: open if the evidence is enough."""
    excursions = excursions_of(after, row) if one.seen >= FIRST_WINDOWS else ()
    renewed = replace(
        one,
        **scalars_of(after, row),
        excursions=excursions,
        ended_ns=ended_ns,
        sampling=value.variance,
    )
    if one.opened:
        number = one.after + 1
        residual = value.place - one.baseline
        recent = one.recent + (residual - one.recent) / min(number, RECENT_WINDOWS)
        return replace(renewed, excursions=(), recent=recent, after=number)
    found = max(
        (excursion for excursion in excursions if _matters(one, excursion)),
        key=lambda excursion: excursion.evidence,
        default=None,
    )
    if found is None:
        return renewed if excursions else replace(renewed, peak=0.0)
    evidence = found.evidence - more_evidence(renewed.variance - value.variance)
    if evidence < threshold:
        return replace(renewed, peak=max(one.peak, evidence))
    return replace(
        renewed,
        opened=True,
        excursions=(),
        baseline=one.baseline,
        variance=one.variance,
        peak=found.evidence,
        changed_ns=round(found.since * 1e9),
        recent=found.total / found.windows,
        after=found.windows,
    )


def _matters(one: StreamState, found: Excursion) -> bool:
    """Return whether a change is of enough windows, and large enough for someone to care."""
    mean = found.total / found.windows
    if found.windows < LEAST_WINDOWS or mean * STEPS[found.step] <= 0:
        return False
    if one.stream.what is What.LEVEL:
        return abs(mean) >= math.log(LEAST_FACTOR)
    if one.stream.what is What.PATH and mean < 0:
        return False
    return abs(share_of(one.baseline + mean) - share_of(one.baseline)) >= LEAST_SHARE


def _alarm(one: StreamState, mean: float, windows: float, since_ns: int, evidence: float, *, opened: bool) -> Alarm:
    half = normal_quantile(0.5 + CONFIDENCE / 2) * math.sqrt(_variance_of_mean(one, windows))
    return Alarm(
        stream=one.stream,
        direction=_direction(one.stream, mean),
        factor=_factor(one, mean),
        factor_low=_factor(one, mean - half),
        factor_high=_factor(one, mean + half),
        since_ns=since_ns,
        windows=round(windows),
        log_e=evidence,
        opened=opened,
    )


def _variance_of_mean(one: StreamState, windows: float) -> float:
    """Return the variance of the mean of some windows less the baseline."""
    wander = max(one.variance - one.sampling, GRAIN**2)
    ratio = min(0.95, max(0.0, one.lagged / max(one.square, 1e-12)))
    alike = (1 + ratio) / (1 - ratio)
    return wander * (min(1.0, alike / windows) + min(1.0, alike / max(one.seen, 1.0))) + one.sampling / windows


def _factor(one: StreamState, mean: float) -> float:
    if one.stream.what is What.LEVEL:
        return math.exp(mean)
    return share_of(one.baseline + mean) / max(share_of(one.baseline), 1e-6)


def _direction(stream: Stream, mean: float) -> Direction:
    if stream.what is What.PATH:
        return Direction.OTHER
    up = mean > 0
    if stream.what is What.SHARE and stream.part == "share 0":
        up = not up
    return Direction.SLOWER if up else Direction.FASTER


def _replaced(state: DetectorState, stream: Stream, change: Callable[[StreamState], StreamState]) -> DetectorState:
    return replace(state, streams=tuple(change(one) if one.stream == stream else one for one in state.streams))
