"""Variance components are unbiased whatever the design, and agree with the papers' worked values."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.regression.variance_components import Component, Leaf, components

Design = list[tuple[int, int, int]]  # build, lifetime, calls


def leaves_of(design: Design, values: NDArray[np.float64]) -> list[Leaf]:
    """Return the leaves of a design whose calls have these values, in its order."""
    found, at = [], 0
    for build, lifetime, calls in design:
        part = values[at : at + calls]
        at += calls
        variance = float(part.var(ddof=1)) if calls > 1 else 0.0
        found.append(Leaf(labels=(build, lifetime), calls=calls, mean=float(part.mean()), variance=variance))
    return found


def variances(found: Sequence[Component]) -> list[float]:
    """Return the estimates."""
    return [each.variance for each in found]


def test_the_worked_example() -> None:
    """Two builds, lifetimes and calls each: 62, 19, 2."""
    data = [[[10.0, 12.0], [14.0, 16.0]], [[20.0, 22.0], [28.0, 30.0]]]
    design = [(build, lifetime, 2) for build in (0, 1) for lifetime in (0, 1)]
    found = components(leaves_of(design, np.array(data).ravel()))
    assert variances(found) == pytest.approx([62.0, 19.0, 2.0], abs=1e-12)


def test_two_levels_of_the_first_paper() -> None:
    """{1,2,3}, {3,4,5}, {8,9,10}: S_X^2 = 1, S_A^2 = 13, so the unbiased between-run variance is 13 - 1/3."""
    values = np.array([1, 2, 3, 3, 4, 5, 8, 9, 10], dtype=np.float64)
    runs = [Leaf(labels=(k,), calls=3, mean=float(v.mean()), variance=float(v.var(ddof=1)))
            for k, v in enumerate(values.reshape(3, 3))]  # fmt: skip
    assert variances(components(runs)) == pytest.approx([13 - 1 / 3, 1.0])


@pytest.mark.parametrize("seed", range(4))
def test_estimates_are_unbiased_for_any_design(seed: int) -> None:
    """Exactly, by algebra: the expectation of each quadratic form under known variances is that variance."""
    rng = np.random.default_rng(seed)
    design = [(build, life, int(rng.integers(2, 6))) for build in range(3) for life in range(int(rng.integers(1, 4)))]
    labels = [(build, (build, life)) for build, life, calls in design for _ in range(calls)]
    size = len(labels)
    basis = np.eye(size)
    single = [np.array(variances(components(leaves_of(design, basis[i])))) for i in range(size)]
    truth = np.array([4.0, 1.0, 9.0])
    expected = np.zeros(3)
    for i in range(size):
        for j in range(i, size):
            form = (
                single[i]
                if i == j
                else (np.array(variances(components(leaves_of(design, basis[i] + basis[j])))) - single[i] - single[j])
            )
            same = np.array([labels[i][0] == labels[j][0], labels[i][1] == labels[j][1], i == j])
            expected += form * float(truth @ same)
    assert expected == pytest.approx(truth, rel=1e-9)


def test_balanced_estimates_are_those_of_a_mixed_model() -> None:
    """REML of statsmodels gives the same numbers where all are above 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pd: Any = importlib.import_module("pandas")
        smf: Any = importlib.import_module("statsmodels.formula.api")

        rng = np.random.default_rng(11)
        rows = []
        for build in range(6):
            one = rng.normal(0, 3)
            for life in range(5):
                two = rng.normal(0, 2)
                rows += [(build, life, 100 + one + two + rng.normal(0, 1)) for _ in range(6)]
        frame = pd.DataFrame(rows, columns=["build", "life", "y"])
        fitted = smf.mixedlm("y ~ 1", frame, groups="build", re_formula="1", vc_formula={"life": "0 + C(life)"}).fit()
    design = [(build, life, 6) for build in range(6) for life in range(5)]
    found = variances(components(leaves_of(design, frame["y"].to_numpy(dtype=np.float64))))
    expected = [float(fitted.cov_re.iloc[0, 0]), float(fitted.vcomp[0]), float(fitted.scale)]
    assert found == pytest.approx(expected, rel=2e-3)


def test_what_adds_nothing_can_be_negative_and_counts_as_none() -> None:
    """Lifetimes more alike than their calls allow: the estimate is negative, the variance used 0."""
    values = np.array([1.0, 9.0] * 6)
    design = [(0, life, 2) for life in range(6)]
    build, lifetime, call = components(leaves_of(design, values))
    assert np.isnan(build.variance)
    assert lifetime.variance == pytest.approx(-16.0)
    assert lifetime.at_least_zero == 0.0
    assert call.variance == pytest.approx(32.0)
    assert (call.freedom, call.groups) == (6.0, 12)


def test_large_means_lose_no_digits() -> None:
    """A common offset changes nothing."""
    rng = np.random.default_rng(2)
    design = [(build, life, 4) for build in range(2) for life in range(3)]
    values = rng.normal(0, 1, 24)
    assert variances(components(leaves_of(design, values + 1e9))) == pytest.approx(
        variances(components(leaves_of(design, values))), rel=1e-5
    )
