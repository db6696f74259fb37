"""Whether a later observation agrees with an assertion: in all its calls, and over the paths of each behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specmine.mining.levels.verdict import shares_verdict
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion, agreement
from specmine.model.observation import Observation
from specmine.model.verdict import Verdict

from .behaviour_windows import calls_of_formula
from .expression import Formula

SHARE_MARGIN = 0.1
"""A class share that moved by less does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One claim of an assertion: the class shares of the calls over paths that fulfil a formula."""

    formula: Formula
    """``((),)`` for all calls."""
    class_calls: tuple[int, ...]
    """The calls it was learned from, per class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The verdict on one claim, with its evidence."""

    verdict: Verdict
    p_value: float
    """Probability of shares that differ so much if the claim holds."""
    difference: float
    """Largest difference of a class share."""
    expected: tuple[float, ...]
    shares: tuple[float, ...]
    """Class shares of the observation; all 0 without calls."""
    calls: int


def check(
    observation: Observation,
    expected: Sequence[Expected],
    edges: Sequence[int],
    *,
    shared: frozenset[str] = frozenset(),
    noise: Dispersion,
    settings: MiningSettings,
) -> tuple[Check, ...]:
    """Check an observation against the claims of an assertion.

    Parameters
    ----------
    observation : Observation
        Later than those of the assertion. Claims about paths need kind PATH, claims about callees that these were
        timed; else they are unknown.
    expected : sequence of Expected
        The claims: usually all calls first, then each behaviour.
    edges : sequence of int
        First bucket of each class but the lowest.
    shared : frozenset of str
        Names that formulas show with their module (``shared_names``).
    noise : Dispersion
        Between windows, as learned (``dispersion``, ``Explanation.noise``).
    settings : MiningSettings
        ``level`` (divided by the number of claims), ``minimum_difference``, ``minimum_calls``.

    Returns
    -------
    tuple of Check
        One per claim. ``share_verdict`` says which. Incomplete paths count only for the formula ``true``.
    """
    rows = [calls_of_formula(observation, claim.formula, shared).class_counts(edges) for claim in expected]
    level = settings.level / max(len(expected), 1)
    return tuple(
        _checked(claim.class_calls, row.tolist(), noise, level, settings)
        for claim, row in zip(expected, rows, strict=True)
    )


def share_verdict(
    learned: Sequence[int], observed: Sequence[int], noise: Dispersion, level: float, settings: MiningSettings
) -> Verdict:
    """Return the verdict on class shares.

    Violated: they differ significantly, and one by at least ``minimum_difference``. Holds: no share can have moved by
    ``SHARE_MARGIN``, in units of the dispersion. Else unknown.
    """
    verdict = shares_verdict(learned, observed, noise, level=level, margin=settings.minimum_difference)
    if verdict is Verdict.UNKNOWN:
        wider = shares_verdict(learned, observed, noise, level=level, margin=SHARE_MARGIN)
        return wider if wider is Verdict.HOLDS else verdict
    return verdict


def _checked(
    learned: Sequence[int], observed: Sequence[int], noise: Dispersion, level: float, settings: MiningSettings
) -> Check:
    expected, shares = _shares(learned), _shares(observed)
    verdict = Verdict.UNKNOWN
    if min(sum(observed), sum(learned)) >= settings.minimum_calls:
        verdict = share_verdict(learned, observed, noise, level, settings)
    return Check(
        verdict=verdict,
        p_value=agreement(learned, observed, noise),
        difference=max((abs(a - b) for a, b in zip(expected, shares, strict=True)), default=0.0),
        expected=expected,
        shares=shares,
        calls=sum(observed),
    )


def _shares(row: Sequence[int]) -> tuple[float, ...]:
    return tuple(n / max(sum(row), 1) for n in row)
