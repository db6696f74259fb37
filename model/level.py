"""How long the calls of a behaviour take: quantiles, and the range in which windows of an unchanged program stay."""

from __future__ import annotations

from dataclasses import dataclass

PROBABILITIES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
"""The quantiles that a level has, by name."""
MEAN = "mean"
"""What a violation is about where so few calls are slower that no quantile shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """One quantile of durations, less what the probes add."""

    ns: float
    low_ns: float | None = None
    """The quantile of a window of an unchanged program lies from here ..."""
    high_ns: float | None = None
    """... to here; both are None until windows show how far they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The quantiles of the durations of some calls; a quantile is None while there are too few calls for it."""

    p50: Quantile | None = None
    p90: Quantile | None = None
    p99: Quantile | None = None
    mean: Quantile | None = None
    """Only of violations that are about it."""
    calls: int = 0
    """Timed calls that it rests on."""
    windows: int = 0
    """Windows that its ranges rest on."""
    lifetimes: int = 0
    """Lifetimes that these windows are of."""

    def quantile(self, name: str) -> Quantile | None:
        """Return a quantile by its name, such as p50; or the mean."""
        return {"p50": self.p50, "p90": self.p90, "p99": self.p99, MEAN: self.mean}[name]
