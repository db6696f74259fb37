"""What probes cost, from pairs of phases with and without them: an estimate with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import HuberRegressor

ENOUGH = 4
"""Pairs for each kind of reference work, from which on they are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """CPU seconds per unit of work with probes and without, in two phases that follow each other."""

    on: float
    off: float
    reference: tuple[float, ...] = ()
    """Of each kind of reference work, the CPU time with probes over that without (hostspeed.py)."""

    @property
    def loss(self) -> float:
        """What the probes cost, as a share of the unwatched CPU time."""
        return self.on / self.off - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """An estimate over pairs, with the ends of its 95 % interval; as shares."""

    pairs: int
    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2


def loss_of(pairs: Iterable[Pair]) -> Loss:
    """Return the loss as it was measured."""
    return _estimate(_logs(pairs))


def adjusted_loss_of(pairs: Sequence[Pair]) -> Loss | None:
    """Return the loss after what the host's speed explains is taken out; None without enough pairs that know it.

    The reference work is the same with probes and without, and they do not touch it: its ratio is the host's alone.
    What is taken out is its product with slopes fitted over all pairs (control variates: Deng, Xu, Kohavi, Walker,
    "Improving the sensitivity of online controlled experiments", WSDM 2013, section 3), by Huber's loss, since both
    have heavy tails. The interval is wider by what the slopes cost in degrees of freedom.
    """
    known = [p for p in pairs if p.reference]
    if not known or len(known) < ENOUGH * (1 + len(known[0].reference)):
        return None
    logs, speed = _logs(known), np.log([p.reference for p in known])
    scale = speed.std(axis=0)
    kinds = scale > 0
    fitted = HuberRegressor(alpha=0.0, max_iter=1000, tol=1e-8).fit(speed[:, kinds] / scale[kinds], logs)
    rest = logs - speed[:, kinds] / scale[kinds] @ fitted.coef_
    count = len(logs)
    return _estimate(rest, wider=float(np.sqrt((count - 1) / (count - 1 - kinds.sum()))))


def reference_of(pairs: Sequence[Pair]) -> list[Loss]:
    """Return what the probes did to the reference work, kind by kind: nothing, if it may be used."""
    known = np.log([p.reference for p in pairs if p.reference])
    return [_estimate(kind) for kind in known.T]


def _logs(pairs: Iterable[Pair]) -> NDArray[np.float64]:
    return np.log([p.on / p.off for p in pairs])


def _estimate(logs: NDArray[np.float64], wider: float = 1.0) -> Loss:
    """Return the Hodges-Lehmann estimate of the middle and its interval by Wilcoxon's signed-rank test.

    A host whose speed changes by the second gives logarithms of ratios with heavy tails: the median of their pairwise
    means bears them, the mean does not. Hollander, Wolfe, Nonparametric Statistical Methods, section 3.2 and 3.3,
    large-sample form.
    """
    count = len(logs)
    rows, columns = np.triu_indices(count)
    walsh = np.sort((logs[rows] + logs[columns]) / 2)
    middle, deviation = count * (count + 1) / 4, np.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    cut = max(0, int(middle - stats.norm.ppf(0.975) * deviation))
    center = np.median(walsh)
    low, high = (center + (walsh[at] - center) * wider for at in (cut, -1 - cut))
    value, low, high = np.expm1([center, low, high])
    return Loss(pairs=count, value=float(value), low=float(low), high=float(high))
