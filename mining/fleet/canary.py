"""A build on some hosts against the build that other hosts run at the same time.

The control is concurrent: what load and time of day do, they do to both. Where hosts of both groups were seen before
the new build came, each host is first compared with itself: then it does not matter how much hosts differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .trimmed import FEWEST, TRIM, difference, trimmed_mean


class Finding(StrEnum):
    """What hosts say about a build."""

    WORSE = "worse"
    BETTER = "better"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryComparison:
    """A function in a new build against the same function in the old one, over hosts."""

    finding: Finding
    ratio: float | None
    """New over old; None if a group has no host."""
    interval: tuple[float, float] | None
    hosts: tuple[int, int]
    """That run the old and the new build."""
    agreeing: int
    """Hosts of the new build that lie on the same side of the control as their mean."""
    p_value: float | None
    method: str
    """changes: each host against itself before; levels: hosts against other hosts; none."""
    reason: str


def compare_canary(
    control: Mapping[str, float],
    canary: Mapping[str, float],
    before: Mapping[str, float],
    *,
    level: float = 0.95,
    tolerance: float = 0.02,
    trim: float = TRIM,
) -> CanaryComparison:
    """Compare two groups of hosts.

    Parameters
    ----------
    control, canary : mapping from host to float
        Logarithm of the median duration with the old and the new build, over the same time. A host in both counts as
        one of the new build.
    before : mapping from host to float
        The same with the old build, before the new one came; of whichever hosts it is known.
    level : float
        Of the interval.
    tolerance : float
        Equivalent: the interval lies within [1 / (1 + t), 1 + t].
    trim : float
        Share of the hosts left out at either end.

    Notes
    -----
    Hosts are draws, so their number decides, not that of their calls. The trimmed means are compared by Yuen's test.
    """
    control = {host: value for host, value in control.items() if host not in canary}
    groups, method = (control, canary), "levels"
    known = tuple({host: group[host] - before[host] for host in group if host in before} for group in groups)
    if min(map(len, known)) >= FEWEST:
        groups, method = (known[0], known[1]), "changes"
    hosts = len(groups[0]), len(groups[1])
    means = [trimmed_mean(list(group.values()), trim) for group in groups]
    if means[0] is None or means[1] is None:
        ratio = _ratio(*groups) if min(hosts) else None
        few = "the old build" if hosts[0] < hosts[1] else "the new build"
        return CanaryComparison(
            finding=Finding.UNDECIDED, ratio=ratio, interval=None, hosts=hosts, agreeing=0, p_value=None, method="none",
            reason=f"{few} runs on {min(hosts)} of the hosts: fewer than {FEWEST} cannot be told from their hosts",
        )  # fmt: skip
    found = difference(means[0], means[1])
    low, high = (math.exp(each) for each in found.interval(level))
    limit = 1.0 + tolerance
    if 1.0 / limit <= low and high <= limit:
        finding = Finding.EQUIVALENT
    elif low > 1.0:
        finding = Finding.WORSE
    elif high < 1.0:
        finding = Finding.BETTER
    else:
        finding = Finding.UNDECIDED
    agreeing = sum((each - means[0].mean) * found.value > 0 for each in groups[1].values())
    return CanaryComparison(
        finding=finding, ratio=math.exp(found.value), interval=(low, high), hosts=hosts, agreeing=agreeing,
        p_value=found.p_value, method=method, reason=_reason(finding, tolerance),
    )  # fmt: skip


def _ratio(control: Mapping[str, float], canary: Mapping[str, float]) -> float:
    return math.exp(float(np.mean(list(canary.values())) - np.mean(list(control.values()))))


def _reason(finding: Finding, tolerance: float) -> str:
    match finding:
        case Finding.EQUIVALENT:
            return f"any change is smaller than {100 * tolerance:.3g} %"
        case Finding.UNDECIDED:
            return "the interval holds both no change and one that matters"
    return "beyond what hosts differ by"
