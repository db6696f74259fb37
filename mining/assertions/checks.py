"""Checks of later observations against the assertions on a function, and how many in a row violate them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmine.mining.borders.inference import Inference
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import shifted_edges
from specmine.model.observation import Observation
from specmine.model.verdict import Verdict

from . import verification
from .explanation import Explanation
from .expression import shared_names
from .verification import Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Whether a later observation agrees with one assertion on the function."""

    subject: str
    """Expression of the behaviour, ``true`` for all calls together."""
    verdict: str
    """holds, violated, unknown."""
    calls: int = 0
    p_value: float = 1.0
    """Probability of shares that differ so much if the assertion is true."""
    shares: tuple[float, ...] = ()
    """Class shares of the observation."""


def check(
    observation: Observation, result: Explanation | None, learned: Inference, fits: bool, settings: MiningSettings
) -> tuple[Check, ...]:
    """Check a later observation against the assertions on its function.

    Parameters
    ----------
    observation : Observation
    result : Explanation, optional
        How call paths explain the classes; without it only the classes of all calls together are asserted.
    learned : Inference
        The inference when the function became stable.
    fits : bool
        True if the observation continues a chain. With a single class only this can be checked.
    settings : MiningSettings
    """
    if result is None and not learned.borders:
        verdict = Verdict.HOLDS if fits else Verdict.VIOLATED
        return (Check(subject="true", verdict=verdict.value, calls=observation.timed, shares=(1.0,)),)
    if result is None:
        claims = [("true", Expected(formula=((),), class_calls=learned.class_calls))]
        edges, bias_ns, noise = learned.edges, learned.bias_ns, learned.noise
    else:
        claims = [("true", Expected(formula=((),), class_calls=result.class_calls))]
        claims += [
            (behaviour.expression, Expected(formula=behaviour.formula, class_calls=behaviour.class_calls))
            for behaviour in result.behaviours
            if len(result.behaviours) > 1
        ]
        edges, bias_ns, noise = result.borders, result.bias_ns, result.noise
    checks = verification.check(
        observation,
        [claim for _, claim in claims],
        shifted_edges(edges, bias_ns, observation.bias_ns),
        shared=shared_names(path.path for path in result.paths) if result else frozenset(),
        noise=noise,
        settings=settings,
    )
    return tuple(
        Check(
            subject=subject,
            verdict=verified.verdict.value,
            calls=verified.calls,
            p_value=verified.p_value,
            shares=verified.shares,
        )
        for (subject, _), verified in zip(claims, checks, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether the newest observations agree with the assertions on a function."""

    checks: tuple[Check, ...] = ()
    """The last check of each assertion."""
    checked_ns: int | None = None
    violations: int = 0
    """Consecutive observations that violate the assertion."""
    judged_ns: int | None = None
    """When an observation was last compared with the assertions; others since then were only looked at for changes."""


def with_check(
    before: Verification,
    observation: Observation,
    result: Explanation | None,
    learned: Inference | None,
    chain: Inference | None,
    settings: MiningSettings,
) -> Verification:
    """Check an observation; one of too few calls only updates ``checked_ns``.

    Parameters
    ----------
    before : Verification
    observation : Observation
    result : Explanation, optional
        How call paths explain the classes.
    learned : Inference, optional
        The inference when the function became stable.
    chain : Inference, optional
        The inference from the newest observations, this one included.
    settings : MiningSettings
    """
    if observation.timed < settings.minimum_calls:
        return replace(before, checked_ns=observation.end_ns)
    if learned is None or chain is None:
        return before
    checks = check(observation, result, learned, chain.chain > 0, settings)
    violated = any(one.verdict == "violated" for one in checks)
    violations = before.violations + 1 if violated else 0
    return Verification(
        checks=checks, checked_ns=observation.end_ns, violations=violations, judged_ns=observation.end_ns
    )
