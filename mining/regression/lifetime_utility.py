"""How much more calls of the running lifetimes would add to what is known, and how much only new lifetimes would.

A function's windows in one lifetime share its initial state. Once the medians of lifetimes differ by much more than
those of windows inside one, more windows of a lifetime that has some do not narrow what is known of the build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specmine.mining.statistics.distributions import f_quantile

from .sequential_test import Moments

MOST_LIFETIMES = 32
"""So many of the latest lifetimes are held."""
FEWEST_LIFETIMES = 3
NEGLIGIBLE = 0.1
"""Windows are enough once what they add to the variance is so small a part of what lifetimes add."""
LEVEL = 0.9
"""Of the lower bound of the variance between lifetimes: random variation alone must not stop the observation."""
_MOST_FREEDOM = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """Medians of the windows of one function in each of its latest lifetimes, oldest lifetime first."""

    moments: tuple[tuple[str, Moments], ...] = field(default=())
    """Lifetime, and its windows' log medians."""

    def windows(self, lifetime: str) -> int:
        """Return the number of windows of a lifetime."""
        return next((each.count for name, each in self.moments if name == lifetime), 0)


def with_window(seen: Lifetimes, lifetime: str, log_median: float) -> Lifetimes:
    """Return it with one more window of a lifetime."""
    known = dict(seen.moments)
    known[lifetime] = known.get(lifetime, Moments()).with_value(log_median)
    return replace(seen, moments=tuple(known.items())[-MOST_LIFETIMES:])


def windows_worth(seen: Lifetimes) -> float:
    """Return after how many windows of one lifetime more of them narrow a comparison of builds by less than 5 %.

    Returns
    -------
    float
        Infinite while it is not sure that lifetimes differ at all.

    Notes
    -----
    With k windows a lifetime's median has the variance B + W / k, B between lifetimes and W between windows of
    one. W / k falls below ``NEGLIGIBLE`` B at k = (W / B) / NEGLIGIBLE. B / W is taken at its lower bound of 90 %,
    from the F distribution of the mean squares of a one-way layout; for unequal numbers of windows with n0 in place
    of n (Thomas and Hultquist, Interval estimation for the unbalanced case of the one-way random effects model,
    1978, have the exact form).
    """
    groups = [each for _, each in seen.moments]
    total = sum(each.count for each in groups)
    between, inside = len(groups) - 1, total - len(groups)
    if len(groups) < FEWEST_LIFETIMES or inside < 1:
        return float("inf")
    mean = sum(each.count * each.mean for each in groups) / total
    mean_between = sum(each.count * (each.mean - mean) ** 2 for each in groups) / between
    mean_inside = sum(each.squares for each in groups) / inside
    if mean_inside <= 0.0:
        return 1.0 if mean_between > 0.0 else float("inf")
    usual = (total - sum(each.count**2 for each in groups) / total) / between
    ratio = (mean_between / mean_inside / f_quantile(LEVEL, between, min(inside, _MOST_FREEDOM)) - 1.0) / usual
    return 1.0 / (NEGLIGIBLE * ratio) if ratio > 0.0 else float("inf")


def utility_over_lifetimes(found: float, seen: Lifetimes, running: Mapping[str, bool]) -> float:
    """Return a function's utility, given which lifetimes could be observed now.

    Parameters
    ----------
    found : float
        Utility from the age of what is known, in [0, 1].
    seen : Lifetimes
    running : mapping of str to bool
        Lifetimes that could be observed, and whether they began lately: an old one without a window may never call
        the function. None: nothing is known of them, and the utility is as it was found.

    Returns
    -------
    float
        In [0, 1]. The next window is of a lifetime chosen at random. With the share of those that were not
        observed enough it may teach something of the build, as much as was found; with the share of young ones of
        which there is no window at all it is the first of another draw, which is worth most.
    """
    if not running:
        return found
    counts = [seen.windows(each) for each in running]
    fresh = sum(young and not count for count, young in zip(counts, running.values(), strict=True)) / len(counts)
    if found <= fresh:
        return fresh
    enough = windows_worth(seen)
    return max(fresh, found * sum(each < enough for each in counts) / len(counts))
