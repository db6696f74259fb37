"""What a function's observations say: stable borders, the chain that carries them, checks of what was stated.

The one place in the daemon process that calls ``mining``; it needs numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specmine.mining.assertions import verification
from specmine.mining.assertions.explanation import JobResult
from specmine.mining.assertions.expression import shared_names
from specmine.mining.assertions.verification import Expected, Verdict
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion, dispersion
from specmine.mining.utility import utility
from specmine.model.buckets import BUCKET_EDGES, bucket_of
from specmine.model.observation import Observation

from .detection import Border, borders
from .stability import StableBorder, chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What the newest observations of a function agree on."""

    borders: tuple[StableBorder, ...] = ()
    """Stable borders of the last observations."""
    chain: int = 0
    """Newest observations that all agree with them, of those still held."""
    start_ns: int | None = None
    """Start of the oldest observation of the chain, also of those no longer held; None: there is no chain."""
    end_ns: int | None = None
    stable: bool = False
    """True if the chain is long enough to count."""
    ended_by: str = ""
    """Why the chain is not longer: border, shares, missing, or '' if nothing stands before it."""
    bias_ns: float = 0.0
    """What the probes added to these durations."""
    uncertainty_ns: float = 0.0
    """How well the durations are known; classes closer than that are not told apart."""
    class_calls: tuple[int, ...] = ()
    """Calls per class of the last observations."""
    noise: Dispersion = field(default_factory=Dispersion)
    """How much class shares vary from window to window."""

    @property
    def edges(self) -> tuple[int, ...]:
        """First bucket of each class but the lowest."""
        return tuple(border.edge for border in self.borders)


Found = tuple[Border, ...]


def borders_of(seen: Observation, settings: MiningSettings) -> Found:
    """Return the borders of one observation, to be kept beside it: each later one needs them again."""
    return borders(seen.histogram, settings=settings) if seen.timed >= settings.minimum_calls else ()


def no_finer(settings: MiningSettings, observations: Sequence[Observation]) -> MiningSettings:
    """Return the settings with which classes are told apart no finer than these durations are known."""
    uncertainty_ns = max(each.uncertainty_ns for each in observations)
    return replace(settings, resolution_ns=uncertainty_ns) if uncertainty_ns > settings.resolution_ns else settings


def conclude(
    observations: Sequence[Observation],
    found: Sequence[Found],
    before: Conclusion | None,
    settings: MiningSettings,
) -> Conclusion:
    """Return what the newest observations agree on.

    Parameters
    ----------
    observations : sequence of Observation
        The newest of one function and kind, oldest first, at least one.
    found : sequence of tuple of Border
        ``borders_of`` each of them.
    before : Conclusion, optional
        The one without the last observation: a chain that covers all that is held goes back to its start.
    """
    if len(observations) < settings.chain_observations:
        return _too_few(observations, settings)
    present = chain(observations, settings=no_finer(settings, observations), found=found)
    start = present.start_ns
    covers_all = start is not None and present.ended_by == ""
    if covers_all and before is not None and before.start_ns is not None:
        start = min(before.start_ns, start) if start is not None else None
    edges = [border.edge for border in present.borders]
    rows = [each.histogram.class_counts(edges) for each in observations if each.timed >= settings.minimum_calls]
    return Conclusion(
        borders=present.borders,
        chain=present.observations,
        start_ns=start,
        end_ns=present.end_ns,
        stable=present.stable,
        ended_by=present.ended_by,
        bias_ns=observations[-1].bias_ns,
        uncertainty_ns=max(each.uncertainty_ns for each in observations),
        class_calls=tuple(int(number) for number in np.sum(rows, axis=0)) if rows else (),
        noise=dispersion(rows),
    )


def _too_few(observations: Sequence[Observation], settings: MiningSettings) -> Conclusion:
    """Return what so few observations say: nothing yet, whatever their borders."""
    judged = [each for each in observations if each.timed >= settings.minimum_calls]
    return Conclusion(
        chain=len(judged),
        start_ns=judged[0].start_ns if judged else None,
        end_ns=judged[-1].end_ns if judged else None,
        bias_ns=observations[-1].bias_ns,
        uncertainty_ns=max(each.uncertainty_ns for each in observations),
        class_calls=(sum(each.timed for each in judged),) if judged else (),
    )


def utility_of(conclusion: Conclusion, now_ns: int) -> float:
    """Return how much is to be learned by observing again: 1 while there is no chain that counts."""
    if not conclusion.stable:
        return 1.0
    return utility(now_ns, conclusion.start_ns, conclusion.end_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Did a later observation agree with one thing asserted of the function?"""

    subject: str
    """Expression of the behaviour, ``true`` for all calls together."""
    verdict: str
    """holds, violated, unknown."""
    calls: int = 0
    p_value: float = 1.0
    """Of shares that differ so much although the assertion is true."""
    shares: tuple[float, ...] = ()
    """Class shares of the observation."""


def check(
    seen: Observation, result: JobResult | None, learned: Conclusion, fits: bool, settings: MiningSettings
) -> tuple[Check, ...]:
    """Check a later observation against what is asserted.

    Parameters
    ----------
    seen : Observation
    result : JobResult, optional
        What call paths explain; without it only the classes of all calls together are asserted.
    learned : Conclusion
        What the function was found to be when it was stable.
    fits : bool
        Does the observation continue a chain? With a single class this is all that can be asked.
    settings : MiningSettings
    """
    if result is None and not learned.borders:
        verdict = Verdict.HOLDS if fits else Verdict.VIOLATED
        return (Check(subject="true", verdict=verdict.value, calls=seen.timed, shares=(1.0,)),)
    if result is None:
        claims = [("true", Expected(formula=((),), class_calls=learned.class_calls))]
        edges, bias_ns, noise = learned.edges, learned.bias_ns, learned.noise
    else:
        claims = [("true", Expected(formula=((),), class_calls=result.class_calls))]
        claims += [
            (each.expression, Expected(formula=each.formula, class_calls=each.class_calls))
            for each in result.behaviours
            if len(result.behaviours) > 1
        ]
        edges, bias_ns, noise = result.borders, result.bias_ns, result.noise
    checks = verification.check(
        seen,
        [claim for _, claim in claims],
        shifted(edges, bias_ns, seen.bias_ns),
        shared=shared_names(each.path for each in result.paths) if result else frozenset(),
        noise=noise,
        settings=settings,
    )
    return tuple(
        Check(
            subject=subject,
            verdict=each.verdict.value,
            calls=each.calls,
            p_value=each.p_value,
            shares=each.seen,
        )
        for (subject, _), each in zip(claims, checks, strict=True)
    )


def shifted(edges: tuple[int, ...], was_ns: float, is_ns: float) -> tuple[int, ...]:
    """Move borders found under one cost of the probes to durations measured under another."""
    if abs(is_ns - was_ns) < 1.0:
        return edges
    durations = BUCKET_EDGES[list(edges)] + (is_ns - was_ns)
    return tuple(int(bucket) for bucket in bucket_of(np.round(durations)))
