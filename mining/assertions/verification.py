"""Does a later observation agree with an assertion: in all its calls, and over each behaviour's paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion, agreement
from specmine.model.observation import Observation

from .expression import Formula, evaluate, named_edges


class Verdict(StrEnum):
    """What an observation says about an assertion."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"

    @staticmethod
    def of_all(verdicts: Iterable[str]) -> Verdict:
        """Return the verdict on a whole: violated if any part is, else holds if any part does, else unknown."""
        every = set(verdicts)
        return next((one for one in (Verdict.VIOLATED, Verdict.HOLDS) if one in every), Verdict.UNKNOWN)


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
    """Of shares that differ so much although the claim holds."""
    difference: float
    """Largest difference of a class share."""
    expected: tuple[float, ...]
    seen: tuple[float, ...]
    """Shares of the calls seen; all 0 if there were none."""
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
        Later than those learned from. Claims about paths need kind PATH, else they are unknown.
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
        One per claim. Violated: the shares differ significantly and by at least ``minimum_difference``.
        Unknown: too few calls to see such a difference. Incomplete paths speak for no formula but ``true``.
    """
    rows = []
    named = [(named_edges(one.path, shared), one) for one in observation.paths if one.path.complete]
    for claim in expected:
        if claim.formula == ((),):
            rows.append(observation.histogram.class_counts(edges))
        else:
            row = np.zeros(len(edges) + 1, dtype=np.int64)
            for own, one in named:
                if evaluate(claim.formula, own):
                    row += one.histogram.class_counts(edges)
            rows.append(row)
    level = settings.level / max(len(expected), 1)
    return tuple(
        _checked(claim.class_calls, row.tolist(), noise, level, settings)
        for claim, row in zip(expected, rows, strict=True)
    )


def overall(checks: Sequence[Check]) -> Verdict:
    """Return the verdict on the whole: violated beats holds beats unknown."""
    verdicts = {check.verdict for check in checks}
    for verdict in (Verdict.VIOLATED, Verdict.HOLDS):
        if verdict in verdicts:
            return verdict
    return Verdict.UNKNOWN


def _checked(
    learned: Sequence[int], seen: Sequence[int], noise: Dispersion, level: float, settings: MiningSettings
) -> Check:
    expected, found = _shares(learned), _shares(seen)
    difference = max((abs(a - b) for a, b in zip(expected, found, strict=True)), default=0.0)
    p_value = agreement(learned, seen, noise)
    if min(sum(seen), sum(learned)) < settings.minimum_calls:
        verdict = Verdict.UNKNOWN
    elif p_value < level and difference >= settings.minimum_difference:
        verdict = Verdict.VIOLATED
    else:
        verdict = Verdict.HOLDS
    return Check(
        verdict=verdict,
        p_value=p_value,
        difference=difference,
        expected=expected,
        seen=found,
        calls=sum(seen),
    )


def _shares(row: Sequence[int]) -> tuple[float, ...]:
    return tuple(n / max(sum(row), 1) for n in row)
