"""Impact factors and autocorrelations follow theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from specmine.mining.regression.impact_factor import (
    autocorrelation,
    expected_impact,
    impact_factor,
    is_dependent,
)


@pytest.mark.parametrize(("ratio", "slack"), [(0.0, 0.02), (0.4583, 0.03), (1.0, 0.1), (2.41, 0.25), (25.79, 2.0)])
def test_impact_factors_follow_theory(ratio: float, slack: float) -> None:
    """sqrt(1 + ratio^2) for additive normal effects that lie where they should; 1 once they are centred."""
    rng = np.random.default_rng(3)
    shifts = ratio * stats.norm.ppf((np.arange(100) + 0.5) / 100)
    runs = [shift + rng.normal(0, 1, 1000) for shift in shifts]
    assert impact_factor(runs, rng, 1000) == pytest.approx(expected_impact(ratio**2, 1.0), abs=slack)
    assert impact_factor([run - run.mean() for run in runs], rng, 1000) == pytest.approx(1.0, abs=0.03)


def test_spread_that_differs_stays_after_centring() -> None:
    """Lifetimes with deviations of their own keep an impact factor above 1.15."""
    rng = np.random.default_rng(4)
    runs = [rng.normal(0, np.exp(rng.normal(0, 0.5)), 1000) for _ in range(100)]
    assert impact_factor([run - run.mean() for run in runs], rng, 1000) > 1.15


def test_impact_factors_of_constant_runs() -> None:
    """Nothing varies: 1; only lifetimes vary: infinite; too little data is refused."""
    rng = np.random.default_rng(1)
    assert impact_factor([[5.0] * 10] * 4, rng, 50) == 1.0
    assert impact_factor([[float(k)] * 10 for k in range(4)], rng, 50) == np.inf
    with pytest.raises(ValueError, match="3 lifetimes"):
        impact_factor([[1.0, 2.0]] * 2, rng)
    with pytest.raises(ValueError, match="calls of each"):
        impact_factor([[1.0, 2.0]] * 8, rng)


def test_autocorrelation_of_a_known_pattern() -> None:
    """10, 12, 11, 13 repeated: -0.8, 0.6, -0.8, 1; shuffled there is none."""
    rng = np.random.default_rng(6)
    series = np.tile([10.0, 12.0, 11.0, 13.0], 250) + rng.normal(0, 0.01, 1000)
    assert autocorrelation(series, 4) == pytest.approx([-0.8, 0.6, -0.8, 1.0], abs=0.01)
    assert is_dependent(series)
    assert not is_dependent(rng.permutation(series))
    assert autocorrelation([1.0, 1.0, 1.0], 2).tolist() == [0.0, 0.0]
