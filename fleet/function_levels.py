"""The medians of a function on the hosts of a fleet, and which of its builds is new. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

LATELY = timedelta(minutes=30)
"""A host is compared with itself: what was observed so lately with what was before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPair:
    """Two builds of which hosts run one or the other."""

    base: str
    new: str
    since: datetime
    """When the new one was first seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLevels:
    """The hosts' medians of one function."""

    name: str
    module: str
    pair: BuildPair | None = None
    levels: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(build, host) to the logarithm of the median, s: since the new build came, if there is one."""
    before: Mapping[str, float] = field(default_factory=dict)
    """The same of the old build before that, by host."""
    changes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(build, host) to how much the logarithm of the median grew: of the last ``LATELY`` over what was before it."""
    lifetimes: int = 0


def newest_pair(first_seen: Mapping[str, datetime], hosts: Mapping[str, int]) -> BuildPair | None:
    """Return the build that came last and the one that most other hosts run; None if there is only one.

    Parameters
    ----------
    first_seen : mapping from build to datetime
    hosts : mapping from build to int
        That run it.
    """
    if len(first_seen) < 2:
        return None
    new = max(first_seen, key=lambda build: (first_seen[build], build))
    base = max((build for build in first_seen if build != new), key=lambda build: (hosts[build], build))
    return BuildPair(base=base, new=new, since=first_seen[new])
