"""Time of functions divided among those that call them, directly or through others. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from .profile import Profile

MOST_CALLS = 64
"""Calls one above the other that are followed; recursion ends there."""
LEAST_PART = 1e-3
"""Of a function's time; less is not followed to its callers."""


def carried_up(
    times: Mapping[str, float], going_up: Iterable[str], profiles: Mapping[str, Profile]
) -> dict[str, float]:
    """Return how much of some functions' time each function has in its calls.

    Samples tell the time of a function through each of its direct callers. What is looked at is divided alike.

    Parameters
    ----------
    times : mapping of str to float
        What is looked at of the time of some functions, by key, ns. These have no more than that: what comes up to one
        of them ends there.
    going_up : iterable of str
        Those of them whose time their callers have, too.
    profiles : mapping of str to Profile
        By key; functions without one end it.

    Returns
    -------
    dict
        By key, ns.
    """
    found, ahead = dict(times), defaultdict[str, float](float)
    for key in going_up:
        _divide(ahead, profiles.get(key), times[key])
    for _ in range(MOST_CALLS):
        here, ahead = ahead, defaultdict(float)
        for key, time_ns in here.items():
            profile = profiles.get(key)
            if profile is None or key in times or time_ns < LEAST_PART * profile.inclusive_ns:
                continue
            found[key] = found.get(key, 0.0) + time_ns
            _divide(ahead, profile, time_ns)
        if not ahead:
            break
    return found


def _divide(amounts: dict[str, float], profile: Profile | None, time_ns: float) -> None:
    if profile is None:
        return
    total = max(sum(through_ns for _, through_ns in profile.callers), profile.inclusive_ns)
    for key, through_ns in profile.callers:
        amounts[key] += time_ns * through_ns / total
