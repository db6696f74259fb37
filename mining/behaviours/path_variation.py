"""How much the call paths of one behaviour vary among themselves, beyond the draw of their calls.

Two paths of one behaviour have not quite the same class shares: each has its own arguments and data. Their shares are
taken as drawn from a Dirichlet distribution around those of the behaviour, as the shares of a path are from window to
window (``statistics/design_effect.py``). Its one number is the standard deviation of a share. It is estimated from
paths that are in one behaviour. Where these are few, the usual variation decides: a scaled inverse chi-squared prior,
as for the variances of many genes (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004).
"""

from __future__ import annotations

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
    log_likelihoods: NDArray[np.float64]
    """Of each path's calls in its group, shape (deviations, paths)."""
    log_posterior: NDArray[np.float64]
    """Of each deviation, given the paths and the usual variation."""

    @property
    def deviation(self) -> float:
        """The most probable standard deviation."""
        return float(DEVIATIONS[int(self.log_posterior.argmax())])

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
    The likelihood is that of Dirichlet-multinomial counts. The shares of the groups are integrated out approximately,
    as in restricted maximum likelihood: a group of a single path says nothing about the variation.
    """
    logs, restricted = [], []
    for deviation in DEVIATIONS.tolist():
        shares, correlations = _groups(rows, labels, deviation)
        logs.append(_dirichlet_multinomial(rows, shares[labels], 1 / correlations[labels] - 1))
        calls = _sums(independent_of_path(rows, labels, deviation), labels).sum(axis=1)
        restricted.append(-0.5 * (rows.shape[1] - 1) * float(np.log(np.maximum(calls, 1e-9)).sum()))
    log_likelihoods = np.array(logs)
    posterior = usual.log_prior() + log_likelihoods.sum(axis=1) + np.array(restricted)
    return PathVariation(rows, labels, log_likelihoods, np.asarray(posterior - log_sum_exp(posterior)))


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
    calls = rows.sum(axis=1)
    each = _sums(rows / np.maximum(calls, 1.0)[:, None], labels)  # mean over paths: that over calls follows one path
    correlation = _correlations(each / np.maximum(each.sum(axis=1, keepdims=True), 1e-9), deviation)[labels]
    return np.asarray(rows / (1 + np.maximum(calls - 1, 0) * correlation)[:, None])


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
