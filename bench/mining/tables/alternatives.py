"""Other ways to find classes of durations, as the literature has them, on the same histograms as ours.

Each returns a statistic that grows with the evidence for more than one class, and where it would put borders (shares
of calls below). All see log durations, a bucket's calls at its middle, spread over it where values must be distinct.
"""

from __future__ import annotations

from collections.abc import Callable

import diptest
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from specmine.model.buckets import BUCKET_EDGES

Found = tuple[float, list[float]]
Method = Callable[[NDArray[np.float64]], Found]

_LOG = np.log(BUCKET_EDGES)
_MIDDLE = 0.5 * (_LOG[1:] + _LOG[:-1])
_GRID = 1024


def hartigan_dip(counts: NDArray[np.float64]) -> Found:
    """Hartigan and Hartigan 1985: the dip times sqrt(n); it detects more than one mode, but gives no place."""
    filled = np.flatnonzero(counts)
    each = counts[filled].astype(np.int64)
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in each])
    at = np.repeat(filled, each)
    values = _LOG[at] + place * (_LOG[at + 1] - _LOG[at])
    return float(diptest.dipstat(values) * np.sqrt(values.size)), []


def gaussian_mixture(counts: NDArray[np.float64], most: int = 6) -> Found:
    """Gaussian mixture by EM, k from 1 to 6 by BIC: the gain in BIC over one class; borders at equal responsibility."""
    filled = np.flatnonzero(counts)
    x, w = _MIDDLE[filled], counts[filled]
    fits = [_em(x, w, k) for k in range(1, most + 1)]
    best = min(fits, key=lambda fit: fit[0])
    owner = best[1].argmax(axis=0)
    below = np.cumsum(w) / w.sum()
    return fits[0][0] - best[0], [float(below[i]) for i in np.flatnonzero(np.diff(owner))]


def _em(x: NDArray[np.float64], w: NDArray[np.float64], k: int) -> tuple[float, NDArray[np.float64]]:
    total = w.sum()
    below = np.cumsum(w) / total
    mean = np.interp((np.arange(k) + 0.5) / k, below, x)
    variance = np.full(k, np.average((x - np.average(x, weights=w)) ** 2, weights=w) / k**2 + 3e-4)
    weight = np.full(k, 1 / k)
    last = -np.inf
    for _ in range(200):
        logs = -0.5 * ((x - mean[:, None]) ** 2 / variance[:, None] + np.log(2 * np.pi * variance[:, None]))
        logs += np.log(weight[:, None])
        top = logs.max(axis=0)
        density = np.exp(logs - top)
        norm = density.sum(axis=0)
        likelihood = float((w * (top + np.log(norm))).sum())
        share = density / norm
        own = share * w
        mass = np.maximum(own.sum(axis=1), 1e-9)
        weight, mean = mass / total, (own * x).sum(axis=1) / mass
        variance = (own * (x - mean[:, None]) ** 2).sum(axis=1) / mass + 3e-4  # no class is narrower than half a bucket
        if likelihood - last < 1e-6 * total:
            break
        last = likelihood
    return -2 * likelihood + (3 * k - 1) * np.log(total), share


def kernel_valley(counts: NDArray[np.float64]) -> Found:
    """Kernel density with Silverman's rule of thumb (1986, equation 3.31): the relative depth of its deepest valley."""
    grid, density, step = _binned(counts)
    below = np.cumsum(density) / density.sum()
    sd = np.sqrt(np.average((grid - np.average(grid, weights=density)) ** 2, weights=density))
    quartiles = np.interp((0.25, 0.75), below, grid)
    width = 0.9 * min(sd, (quartiles[1] - quartiles[0]) / 1.34) * counts.sum() ** -0.2
    return _deepest(gaussian_filter1d(density, max(width / step, 0.3)), below)


def critical_bandwidth(counts: NDArray[np.float64]) -> Found:
    """Silverman 1981: the least bandwidth that leaves one mode, in units of the interquartile range."""
    grid, density, step = _binned(counts)
    below = np.cumsum(density) / density.sum()
    quartiles = np.interp((0.25, 0.75), below, grid)
    low, high = 0.3, _GRID / 2.0
    for _ in range(12):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if _modes(gaussian_filter1d(density, middle)) > 1 else (low, middle)
    smooth = gaussian_filter1d(density, low)
    return low * step / float(quartiles[1] - quartiles[0]), _deepest(smooth, below)[1]


def jenks_breaks(counts: NDArray[np.float64]) -> Found:
    """Jenks natural breaks into two: the goodness of variance fit."""
    filled = np.flatnonzero(counts)
    x, w = _MIDDLE[filled], counts[filled]
    n, s, q = np.cumsum(w), np.cumsum(w * x), np.cumsum(w * x * x)
    within = (q - s**2 / n)[:-1] + ((q[-1] - q) - (s[-1] - s) ** 2 / np.maximum(n[-1] - n, 1e-9))[:-1]
    best = int(np.argmin(within))
    return 1 - float(within[best] / (q[-1] - s[-1] ** 2 / n[-1])), [float(n[best] / n[-1])]


def _binned(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    below = np.concatenate(([0.0], np.cumsum(counts)))
    low, high = np.interp((0.001 * below[-1], 0.999 * below[-1]), below, _LOG)
    edges = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), _GRID + 1)
    return 0.5 * (edges[1:] + edges[:-1]), np.diff(np.interp(edges, _LOG, below)), float(edges[1] - edges[0])


def _modes(density: NDArray[np.float64]) -> int:
    rise = np.sign(np.diff(density))
    rise = rise[rise != 0]
    return int(((rise[:-1] > 0) & (rise[1:] < 0)).sum())


def _deepest(density: NDArray[np.float64], below: NDArray[np.float64]) -> Found:
    """Return the depth of the deepest valley between classes of at least 1.5 %, and where it is."""
    left, right = np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1]
    depth = np.where((below > 0.015) & (below < 0.985), 1 - density / np.minimum(left, right), 0.0)
    at = int(np.argmax(depth))
    return float(depth[at]), [float(below[at])]


METHODS: dict[str, Method] = {
    "dip test": hartigan_dip,
    "Gaussian mixture, BIC": gaussian_mixture,
    "kernel valleys": kernel_valley,
    "critical bandwidth": critical_bandwidth,
    "Jenks breaks": jenks_breaks,
}
