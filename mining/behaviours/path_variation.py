"""How much the call paths of one behaviour vary among themselves, beyond the draw of their calls.

Two paths of one behaviour have not quite the same class shares: each has its own arguments and data. Their shares are
taken as drawn from a Dirichlet distribution around those of the behaviour, as the shares of a path are from window to
window (``statistics/design_effect.py``). Its one number is the standard deviation of a share. It is estimated from
paths that are in one behaviour. Where these are few, the usual variation decides: a scaled inverse chi-squared prior,
as for the variances of many genes (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.statistics.class_shares import Dispersion
from specmine.mining.statistics.distributions import f_sf
from specmine.mining.statistics.gamma import log_gamma, log_sum_exp

from .path_clustering import Rows

DEVIATIONS: NDArray[np.float64] = np.geomspace(0.005, 0.45, 40)
"""Standard deviations that are considered."""
_LEAST_VARIANCE = 0.05  # of one call: a share of 5 % or less varies as much as one of 5 %
_MOST_CORRELATION = 0.9
_STEPS = 8  # from a group's mean shares to its most probable ones
_NEVER = 1e-12  # share of a class that a group cannot have


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualVariation:
    """How much the paths of a behaviour usually vary: what other functions show."""

    deviation: float = 0.03
    """Standard deviation of a class share."""
    freedom: float = 8.0
    """How many degrees of freedom of a function's own paths it is worth."""

    def log_prior(self) -> NDArray[np.float64]:
        """Return the logarithm of the prior probability of each of ``DEVIATIONS``."""
        ratio = np.maximum(DEVIATIONS / self.deviation, 1.0) ** 2
        logs = -0.5 * self.freedom * (np.log(ratio) + 1 / ratio)
        return np.asarray(logs - log_sum_exp(logs))


@dataclass(frozen=True, slots=True, eq=False)
class PathVariation:
    """Groups of paths, with the probability of each standard deviation between paths of one group."""

    rows: Rows
    labels: NDArray[np.intp]
    """Group of each path, from 0 without gaps."""
    log_posterior: NDArray[np.float64]
    """Of each deviation, given the paths and the usual variation."""
    evidence: float
    """Log likelihood of all calls, averaged over deviations and over the shares of the groups (``path_variation``)."""

    @property
    def deviation(self) -> float:
        """Square root of the mean variance."""
        return math.sqrt(float(np.exp(self.log_posterior) @ DEVIATIONS**2))

    def log_likelihoods(self) -> NDArray[np.float64]:
        """Return the log likelihood of each path's calls in its group, shape (deviations, paths)."""
        logs = []
        for deviation in DEVIATIONS.tolist():
            shares, correlations = _groups(self.rows, self.labels, deviation)
            logs.append(_dirichlet_multinomial(self.rows, shares[self.labels], 1 / correlations[self.labels] - 1))
        return np.array(logs)

    def p_value(self, noise: Dispersion, groups: tuple[int, ...] | None = None) -> float:
        """Return how probable differences between groups as large as these are if paths only vary on their own.

        Parameters
        ----------
        noise : Dispersion
            Of independent calls.
        groups : tuple of int, optional
            Those compared; all unless given.

        Notes
        -----
        Pearson's chi-squared between the groups, over calls that are independent although they share a path, averaged
        over the posterior of the deviation. Where paths have many calls, this is the F test of an analysis of variance
        with the paths as units, and the residual variance is moderated by the usual one (Smyth 2004). The noise is a
        part of that variance only: the smaller the part, the more degrees of freedom remain (Satterthwaite, Biometrics
        Bulletin 2, 1946).
        """
        total, drawn = 0.0, self.rows / noise.factor
        for deviation, weight in zip(DEVIATIONS.tolist(), np.exp(self.log_posterior).tolist(), strict=True):
            if weight < 1e-9:
                continue
            independent = independent_of_path(drawn, self.labels, deviation)
            # of the variance of a path's shares the draw of its calls is this part
            part = independent.sum(axis=1) / np.maximum(drawn.sum(axis=1), 1e-9)
            of_draw = float(independent.sum(axis=1) @ part) / max(float(independent.sum()), 1e-9)
            sums = _sums(independent, self.labels)
            sums = sums if groups is None else sums[list(groups)]
            sums = sums[:, sums.sum(axis=0) > 0]
            df = (len(sums) - 1) * (sums.shape[1] - 1)
            if not df:
                return 1.0
            expected = np.outer(sums.sum(axis=1), sums.sum(axis=0)) / sums.sum()
            chi2 = float(((sums - expected) ** 2 / expected).sum())
            total += weight * f_sf(chi2 / df, df, noise.freedom / max(of_draw, 1e-9) ** 2)
        return total

    def by_lot(self) -> NDArray[np.float64]:
        """Return the log likelihood of each path's calls if its group is drawn by lot, shape (deviations, paths).

        The chance of a group is its share of the paths.
        """
        chance = np.log(np.bincount(self.labels) / len(self.labels))
        every = np.unique(self.labels)
        logs = []
        for deviation in DEVIATIONS.tolist():
            shares, correlations = _groups(self.rows, self.labels, deviation)
            each = [
                _dirichlet_multinomial(self.rows, shares[[group]], 1 / correlations[[group]] - 1) for group in every
            ]
            logs.append(log_sum_exp(np.array(each) + chance[every][:, None], axis=0))
        return np.array(logs)


def path_variation(rows: Rows, labels: NDArray[np.intp], usual: UsualVariation) -> PathVariation:
    """Return how much the paths of groups vary among themselves.

    Parameters
    ----------
    rows : ndarray of float64, shape (paths, classes)
        In independent calls (``DesignEffect.independent_calls``).
    labels : ndarray of int, shape (paths,)
        Group of each path, from 0 without gaps.
    usual : UsualVariation

    Notes
    -----
    Paths have Dirichlet-multinomial counts. The shares of a group are integrated out, as in restricted maximum
    likelihood (Patterson and Thompson, Biometrika 58, 1971). A single path shows where its group lies, and nothing
    of the variation. So a group counts by the likelihood of its other paths, given one of them. This is averaged over
    that one, by calls. Without it, paths with no call in a class would seem to vary as much as is possible.

    The evidence takes a group's shares as within the classes that it has calls in. Each set of so many classes is
    equally probable.
    """
    alone, sums = np.arange(len(rows)), _sums(rows, labels)
    first = rows.sum(axis=1) / np.maximum(sums.sum(axis=1)[labels], 1e-9)
    every, seen = np.ones(sums.shape, dtype=bool), sums > 0
    posterior, evidence = usual.log_prior(), usual.log_prior()
    for number, deviation in enumerate(DEVIATIONS.tolist()):
        whole = float(_integrated(rows, labels, deviation, every).sum())
        posterior[number] += whole - float(first @ _integrated(rows, alone, deviation, np.ones(rows.shape, dtype=bool)))
        evidence[number] += whole if seen.all() else float(_integrated(rows, labels, deviation, seen).sum())
    sets = sum(math.log(math.comb(rows.shape[1], int(number))) for number in seen.sum(axis=1))
    return PathVariation(
        rows, labels, np.asarray(posterior - log_sum_exp(posterior)), float(log_sum_exp(evidence)) - sets
    )


def _integrated(
    rows: Rows, labels: NDArray[np.intp], deviation: float, possible: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the log likelihood of the paths of each group, over all shares of the group in its possible classes.

    Notes
    -----
    Laplace's approximation under Jeffreys' prior, but for a constant. The most probable shares are searched by
    expectation and maximization. The unknowns are which calls of a path are drawn from the group's shares, not alike
    another call of the path (Blackwell and MacQueen, Annals of Statistics 1, 1973).
    """
    correlation = _correlations(_mean_shares(rows, labels), deviation)[labels]
    precision = 1 / correlation - 1
    calls = _sums(_each_worth(rows, correlation), labels)
    shares = calls / np.maximum(calls.sum(axis=1, keepdims=True), 1e-9)
    for _ in range(_STEPS):
        around = precision[:, None] * shares[labels]
        drawn = np.minimum(rows, 1 + around * np.log((rows + around + 0.5) / (around + 0.5)))
        draws = _sums(drawn, labels) + 0.5 * possible
        shares = draws / np.maximum(draws.sum(axis=1, keepdims=True), 1e-9)
    each = _dirichlet_multinomial(rows, np.maximum(shares, _NEVER)[labels], precision)
    free = np.maximum(possible.sum(axis=1) - 1, 0)
    known = 0.5 * free * np.log(np.maximum(calls.sum(axis=1), 1.0))
    return np.asarray(_sums(each[:, None], labels)[:, 0] - known)


def independent_of_path(rows: Rows, labels: NDArray[np.intp], deviation: float) -> Rows:
    """Return class counts of paths, shape (paths, classes), in calls that are independent although they share a path.

    Parameters
    ----------
    rows : ndarray of float64, shape (paths, classes)
        In independent calls (``DesignEffect.independent_calls``).
    labels : ndarray of int, shape (paths,)
        Group of each path, from 0 without gaps.
    deviation : float
        Of a share between paths of one group.

    Notes
    -----
    The design effect of n calls is 1 + (n - 1) correlation (Williams, Applied Statistics 31, 1982). The correlation of
    the calls of a path is the variance between paths in units of that of a single call.
    """
    return _each_worth(rows, _correlations(_mean_shares(rows, labels), deviation)[labels])


def _mean_shares(rows: Rows, labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the class shares of each group as the mean over its paths: that over calls follows one path."""
    each = _sums(rows / np.maximum(rows.sum(axis=1), 1.0)[:, None], labels)
    return np.asarray(each / np.maximum(each.sum(axis=1, keepdims=True), 1e-9))


def _each_worth(rows: Rows, correlation: NDArray[np.float64]) -> Rows:
    """Return the calls of each path, divided by their design effect."""
    return np.asarray(rows / (1 + np.maximum(rows.sum(axis=1) - 1, 0) * correlation)[:, None])


def _groups(rows: Rows, labels: NDArray[np.intp], deviation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the class shares of each group, and the correlation of the calls of its paths."""
    sums = _sums(independent_of_path(rows, labels, deviation), labels) + 0.5
    shares = sums / sums.sum(axis=1, keepdims=True)
    return shares, _correlations(shares, deviation)


def _correlations(shares: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return the correlation of the calls of a path in groups of these class shares."""
    variance = np.maximum((shares * (1 - shares)).max(axis=1), _LEAST_VARIANCE)
    return np.asarray(np.minimum(deviation**2 / variance, _MOST_CORRELATION))


def _sums(rows: Rows, labels: NDArray[np.intp]) -> NDArray[np.float64]:
    sums = np.zeros((int(labels.max(initial=0)) + 1, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums


def _dirichlet_multinomial(
    rows: Rows, shares: NDArray[np.float64], precision: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log likelihood of each row's sequence of classes, given the mean shares of its path."""
    around = precision[:, None] * shares
    each = (log_gamma(around + rows) - log_gamma(around)).sum(axis=1)
    return np.asarray(log_gamma(precision) - log_gamma(precision + rows.sum(axis=1)) + each)
