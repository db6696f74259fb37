"""The inference from a function's observations: stable borders, and the chain of observations that agree on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion, dispersion
from specmine.mining.utility import utility
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.observation import Observation

from .course import Course
from .detection import Border, borders
from .stability import StableBorder, chain
from .stretch import NONE, Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """Stable borders and the chain of the newest observations of a function."""

    borders: tuple[StableBorder, ...] = ()
    """Stable borders of the last observations."""
    chain: int = 0
    """Number of newest retained observations that all agree with them."""
    start_ns: int | None = None
    """Start of the oldest observation of the chain, retained or not; None: there is no chain."""
    end_ns: int | None = None
    stable: bool = False
    """True if the chain is long enough (``chain_observations``), and its level has no course."""
    ended_by: str = ""
    """Why the chain is not longer: border, shares, level, missing; '' if no observation precedes it."""
    step: float = 1.0
    """Where it ended by the level: the factor of the durations from before to after."""
    course: Course | None = None
    """How the level goes within the chain, if it drifts, or if its windows make no class together."""
    bias_ns: float = 0.0
    """What the probes added to these durations."""
    uncertainty_ns: float = 0.0
    """Uncertainty of the durations; classes closer than this are not distinguished."""
    class_calls: tuple[int, ...] = ()
    """Calls per class of the last observations."""
    noise: Dispersion = field(default_factory=Dispersion)
    """How much class shares vary from window to window."""

    @property
    def edges(self) -> tuple[int, ...]:
        """First bucket of each class but the lowest."""
        return tuple(border.edge for border in self.borders)


ObservationBorders = tuple[Border, ...]
"""The borders of one observation."""


def infer_stable_borders(
    observations: Sequence[Observation],
    known: Mapping[Observation, ObservationBorders],
    before: Inference | None,
    settings: MiningSettings,
    stretch: Stretch = NONE,
) -> tuple[Inference, Mapping[Observation, ObservationBorders]]:
    """Return the inference from the newest observations.

    Parameters
    ----------
    observations : sequence of Observation
        The newest of one function and kind, oldest first, at least one.
    known : mapping
        Borders of some of them, from an earlier inference.
    before : Inference, optional
        The inference without the last observation. A chain that covers all observations starts where its chain starts.
    settings : MiningSettings
    stretch : Stretch
        What the durations in the histograms were stretched by; the inference is over stretched durations too.

    Returns
    -------
    Inference, mapping
        The mapping holds the borders of each observation; the next inference needs them again.
    """
    if len(observations) < settings.chain_observations:
        return _too_few(observations, settings), known
    borders = {
        observation: borders_of(observation, at_resolution(settings, [observation]))
        if observation not in known
        else known[observation]
        for observation in observations
    }
    present = chain(
        observations, settings=at_resolution(settings, observations), found=tuple(borders.values()), stretch=stretch
    )
    start = present.start_ns
    covers_all = start is not None and present.ended_by == ""
    if covers_all and before is not None and before.start_ns is not None:
        start = min(before.start_ns, start) if start is not None else None
    edges = [border.edge for border in present.borders]
    rows = [one.histogram.class_counts(edges) for one in observations if one.timed >= settings.minimum_calls]
    inference = Inference(
        borders=present.borders,
        chain=present.observations,
        start_ns=start,
        end_ns=present.end_ns,
        stable=present.stable,
        ended_by=present.ended_by,
        step=present.step,
        course=present.course,
        bias_ns=observations[-1].bias_ns,
        uncertainty_ns=max(one.uncertainty_ns for one in observations),
        class_calls=tuple(int(number) for number in np.sum(rows, axis=0)) if rows else (),
        noise=dispersion(rows),
    )
    return inference, borders


def _too_few(observations: Sequence[Observation], settings: MiningSettings) -> Inference:
    """Return the inference from too few observations: it has no borders."""
    judged = [one for one in observations if one.timed >= settings.minimum_calls]
    return Inference(
        chain=len(judged),
        start_ns=judged[0].start_ns if judged else None,
        end_ns=judged[-1].end_ns if judged else None,
        bias_ns=observations[-1].bias_ns,
        uncertainty_ns=max(one.uncertainty_ns for one in observations),
        class_calls=(sum(one.timed for one in judged),) if judged else (),
    )


def borders_of(observation: Observation, settings: MiningSettings) -> ObservationBorders:
    """Return the borders of one observation; none if it holds too few calls."""
    return borders(observation.histogram, settings=settings) if observation.timed >= settings.minimum_calls else ()


def at_resolution(settings: MiningSettings, observations: Sequence[Observation]) -> MiningSettings:
    """Return the settings with a resolution of at least the uncertainty of these durations."""
    uncertainty_ns = max(observation.uncertainty_ns for observation in observations)
    return replace(settings, resolution_ns=uncertainty_ns) if uncertainty_ns > settings.resolution_ns else settings


def utility_of(inference: Inference, now_ns: int) -> float:
    """Return the utility of observing again: 1 while the chain is too short."""
    if not inference.stable:
        return 1.0
    return utility(now_ns, inference.start_ns, inference.end_ns)


def unstretched(inference: Inference, stretch: Stretch) -> Inference:
    """Return an inference over stretched durations as one over the durations.

    Each border keeps its exact duration. Its edge is the nearest of a bucket, each border another one: calls must be
    counted in the buckets of their class (``analysis/importers/exact.py``).
    """
    borders: list[StableBorder] = []
    least = 1
    for border in inference.borders:
        duration_ns = stretch.duration_ns(border.duration_ns)
        edge = max(least, int(np.abs(np.log(BUCKET_EDGES[1:-1] / duration_ns)).argmin()) + 1)
        regions = tuple((stretch.duration_ns(low), stretch.duration_ns(high)) for low, high in border.regions)
        borders.append(replace(border, edge=edge, duration_ns=duration_ns, regions=regions))
        least = edge + 1
    return replace(inference, borders=tuple(borders))
