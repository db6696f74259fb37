"""Hosts that stand out: how much longer calls take on a host than on the others, over all its functions of one build.

A host's fault moves all functions that it runs; a build's fault moves some functions on all hosts that run it. So a
host's factor is the median, over functions, of its distance from the other hosts with the same build. Of changes of
levels it tells the hosts that have changed more than the others: there it does not matter how much hosts differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

FEWEST_HOSTS = 3
"""Hosts with a function of the same build, without which nobody can stand out."""
FEWEST_FUNCTIONS = 3
"""Functions by which a host is judged; a fleet that has fewer is judged by all of them."""
FARTHEST = 5.0
"""Scales from the median host, beyond which a host stands out."""
LEAST_SCALE = 0.05
"""Hosts of a fleet differ by at least so much (log): between few that are alike by chance nobody stands out."""
MAD_TO_SIGMA = 1.4826
Levels = Mapping[tuple[str, str], float]
"""(function of a build, host) to the logarithm of a duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFactor:
    """How a host's durations compare with those of the others."""

    host: str
    log_factor: float
    functions: int
    """By how many it is judged."""
    slower_in: int
    """In how many of them its distance has the sign of the factor."""
    scales: float
    """Distance from the median host in scales of the fleet."""

    @property
    def stands_out(self) -> bool:
        """Whether no other host comes near."""
        return abs(self.scales) > FARTHEST


def host_factors(levels: Levels) -> list[HostFactor]:
    """Return the factor of each host, those farthest out first.

    Parameters
    ----------
    levels : mapping
        (function of a build, host) to the logarithm of its median duration, or to the difference of two.

    Notes
    -----
    The scale is the median absolute deviation of the hosts' factors, at least ``LEAST_SCALE``.
    """
    distances = _distances(levels)
    known = {host: values for host, values in distances.items() if len(values) >= FEWEST_FUNCTIONS}
    if not known:
        known = distances
    factors = {host: float(np.median(values)) for host, values in known.items()}
    if len(factors) < FEWEST_HOSTS:
        return []
    middle = float(np.median(list(factors.values())))
    scale = max(LEAST_SCALE, MAD_TO_SIGMA * float(np.median([abs(each - middle) for each in factors.values()])))
    found = [
        HostFactor(
            host=host, log_factor=factor - middle, functions=len(known[host]),
            slower_in=sum((each - middle) * (factor - middle) > 0 for each in known[host]),
            scales=(factor - middle) / scale,
        )
        for host, factor in factors.items()
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-abs(each.scales), each.host))


def _distances(levels: Levels) -> dict[str, list[float]]:
    """Return how far each host lies from the median of the hosts, function by function."""
    by_function: dict[str, dict[str, float]] = {}
    for (function, host), value in levels.items():
        by_function.setdefault(function, {})[host] = value
    found: dict[str, list[float]] = {}
    for _, of_hosts in sorted(by_function.items()):
        if len(of_hosts) >= FEWEST_HOSTS:
            middle = float(np.median(list(of_hosts.values())))
            for host, value in of_hosts.items():
                found.setdefault(host, []).append(value - middle)
    return found
