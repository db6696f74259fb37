"""What the detectors of a host share: how much evidence a change needs, and whether the whole host is off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from specmine.mining.detection.common_mode import CommonMode, deviations_of, with_surprise
from specmine.mining.detection.detector import DetectorState, finished_peaks
from specmine.mining.detection.host_spread import UsualSpreads, usual_spreads
from specmine.mining.detection.threshold import Calibration, with_peak, with_time
from specmine.model.observation import Observation

USUAL_EVERY_NS = 30_000_000_000
"""How often it is looked how far the windows of the host's functions vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDetection:
    """The calibration of the threshold, the common mode of the functions, and how far their windows usually vary."""

    calibration: Calibration = field(default_factory=Calibration)
    common: CommonMode = field(default_factory=CommonMode)
    usual: UsualSpreads = field(default_factory=dict)
    """How far windows usually vary, by kind of stream ..."""
    usual_ns: int = 0
    """... and when it was looked."""

    @property
    def threshold(self) -> float:
        """Evidence from which a change is told."""
        return self.calibration.threshold

    @property
    def disturbed(self) -> bool:
        """True while most functions of the host are off at once."""
        return self.common.disturbed

    def shifted(self, by_ns: int) -> HostDetection:
        """Return it with its times on a clock that is ahead by so much; the common mode begins anew."""
        told_ns = self.calibration.told_ns
        moved = replace(self.calibration, told_ns=told_ns + by_ns if told_ns else 0)
        return HostDetection(calibration=moved, usual=self.usual)


def with_window(
    host: HostDetection, observation: Observation, before: DetectorState, after: DetectorState
) -> HostDetection:
    """Return what the host knows after the window of a function.

    Parameters
    ----------
    host : HostDetection
    observation : Observation
    before, after : DetectorState
        The function's detector before and after the window.
    """
    if before is after:
        return host
    calibration = with_time(host.calibration, max(observation.end_ns, host.calibration.told_ns))
    for peak in finished_peaks(before, after):
        calibration = with_peak(calibration, peak)
    common = host.common
    if observation.end_ns >= common.looked_ns:
        common = with_surprise(common, observation.function, deviations_of(after), observation.end_ns)
    return replace(host, calibration=calibration, common=common)


def with_spreads(host: HostDetection, detectors: Iterable[DetectorState], now_ns: int) -> HostDetection:
    """Return what the host knows after a look at all functions' detectors, if one is due."""
    if now_ns - host.usual_ns < USUAL_EVERY_NS:
        return host
    streams = (stream for detector in detectors for stream in detector.streams)
    return replace(host, usual=usual_spreads(streams), usual_ns=now_ns)
