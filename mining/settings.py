"""All defaults of the mining in one frozen value; docs/mining.md gives the reason for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningSettings:
    """Parameters of partitioning, stability, grouping and checking. ValueError if one is out of range."""

    match_threshold: float = 0.01
    """Borders whose CDF values differ by less are one; at most half the smallest class to find."""
    minimum_calls: int = 200
    """An observation of fewer timed calls is ignored."""
    resolution_ns: float = 50.0
    """Smaller differences in duration are measurement noise; classes closer than this get no border."""
    window_shares: tuple[float, ...] = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0)
    """Shares of calls in the window of a valley, in units of ``match_threshold``; peaks have 1.8 times as much."""
    minimum_depth: float = 0.15
    """How far, as a share of the lower peak, the density must fall between two classes."""
    stable_z: float = 2.8
    """Least depth of a valley in all newest observations together, in standard errors, for a stable border."""
    firm_z: float = 4.0
    """The same in one observation; a border that is not stable and occurs twice in a row ends the chain."""

    recent: int = 10
    """Number of newest observations from which stable borders are inferred."""
    stable_share: float = 0.6
    """A border is stable if at least this share of them has it."""
    chain_observations: int = 5
    """Least length of a chain that counts as stable."""
    level: float = 0.01
    """False positive rate of the tests for equal class shares."""
    missing_limit: int = 3
    """A stable border missing from so many observations in a row ends the chain."""
    sample_limit: int = 200
    """Observations after which a function without a chain becomes unstable."""

    minimum_difference: float = 0.05
    """Groups of call paths that differ by less in every class share are one."""
    path_calls: int = 10
    """A call path of fewer calls forms no group."""
    maximum_groups: int = 8
    """Largest k in the grouping of call paths."""
    search_limit: int = 500_000
    """Pairs of paths that the search for the fewest call edges may compare; then it returns a good set."""

    def __post_init__(self) -> None:
        """Raise ValueError with the name of a value that is out of range."""
        for name in ("match_threshold", "minimum_depth", "stable_share", "level", "minimum_difference"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name} lies between 0 and 1, not {value}")
        for name in (
            "minimum_calls", "recent", "chain_observations", "missing_limit",
            "sample_limit", "path_calls", "maximum_groups", "search_limit",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.resolution_ns < 0:
            raise ValueError(f"resolution_ns is at least 0, not {self.resolution_ns}")
        if not self.window_shares or not all(0 < s * self.match_threshold < 0.5 for s in self.window_shares):
            raise ValueError(f"window_shares x match_threshold lies between 0 and 0.5: {self.window_shares}")
