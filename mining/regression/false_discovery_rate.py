"""Many functions at once: the share of false ones among the changes reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def q_values(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values: rejecting q <= a keeps the false discovery rate at a.

    Notes
    -----
    Benjamini and Hochberg, Controlling the false discovery rate, 1995; for independent or positively
    dependent tests.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    adjusted = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    found = np.empty_like(adjusted)
    found[order] = adjusted
    return [float(value) for value in found]


def e_discoveries(log_e_values: Mapping[str, float], tests: int, rate: float) -> frozenset[str]:
    """Return which hypotheses to reject so that the false discovery rate is at most ``rate``.

    Parameters
    ----------
    log_e_values : mapping from hypothesis to float
        Natural logarithms of e-values; those rejected before stay at the value at which they were rejected.
    tests : int
        Hypotheses in all, at least as many as have a value.
    rate : float

    Notes
    -----
    e-BH: the k largest with e >= tests / (rate k). It needs no independence (Wang and Ramdas, False discovery
    rate control with e-values, 2022). Frozen at its rejection, each value is an e-process at a stopping time of
    its own, so the rate holds for all rejections ever made, however often one looks.
    """
    if tests < len(log_e_values):
        raise ValueError(f"{len(log_e_values)} values of {tests} tests")
    ordered = sorted(log_e_values.items(), key=lambda each: (-each[1], each[0]))
    last = 0
    for k, (_, value) in enumerate(ordered, start=1):
        if value >= np.log(tests / (rate * k)):
            last = k
    return frozenset(key for key, _ in ordered[:last])
