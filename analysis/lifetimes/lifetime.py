"""One function in one lifetime: what comparisons, checks and reports work on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from specmine.mining.assertions.expression import Formula, asks_blocked, callees_in, evaluate, is_inside
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import Floats, Sample
from specmine.model.histogram import Histogram
from specmine.model.host.environment import Environment

PREFIX = 256
"""Durations of each lifetime that are stored in their order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionLifetime:
    """One function in one lifetime."""

    function: str
    module: str
    build: str
    """Build-id, or the label in a CSV."""
    label: str | None
    host: str
    lifetime: str
    start_ns: int
    """When it began, UTC; 0: unknown."""
    end_utc_ns: int = 0
    """When the newest of these calls were observed, UTC; 0: unknown."""
    sample: Sample
    rate: float | None = None
    """Calls per watched second."""
    warmup: int = 0
    """Calls left out as warm-up."""
    path: tuple[str, ...] = ()
    """The call path that these calls came over, if lifetimes are split by path."""
    inside: frozenset[tuple[str, str]] | None = None
    """What happened in these calls, as edges by all names (``named_edges_of``), if lifetimes are split by it."""
    timed: frozenset[str] = frozenset()
    """Callees of which that is known."""
    tells_blocked: bool = False
    """And it is known where these calls were blocked."""
    window: int = 0
    """Start of the window, if lifetimes are split by window."""
    histogram: Histogram | None = None
    """Of a window: its durations as they were measured, the probes' own cost included."""
    bias_ns: float = 0.0
    """That cost."""
    off_cpu_ns: tuple[float, float] | None = None
    """Of a window: time waiting for a CPU, and blocked, summed over its calls, ns; None: not known."""
    first_ns: Floats | None = None
    """The first durations in their order, ns, if the source has an order."""
    drawn_ns: Floats | None = None
    """A fair sample of the durations, ns, in any order; at most ``PREFIX``."""
    environment: Environment | None = None
    """What was known of the host when it ended."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same function in another build."""
        return self.function, self.module

    @property
    def shown(self) -> str:
        """The build as people call it."""
        return self.label or self.build[:12]

    def fulfils(self, formula: Formula) -> bool:
        """Return whether it is known that these calls fulfil a formula, by their path or by what happened in them."""
        if is_inside(formula):
            known = callees_in(formula) <= self.timed and (self.tells_blocked or not asks_blocked(formula))
            return self.inside is not None and known and evaluate(formula, self.inside)
        return bool(self.path) and evaluate(formula, frozenset(pairwise(self.path)))

    def as_sample(self) -> LifetimeSample:
        """Return what the comparison needs."""
        return LifetimeSample(lifetime=self.lifetime, host=self.host, sample=self.sample, rate=self.rate)
