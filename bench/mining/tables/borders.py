"""How often a stable border is false, and how often a true one is found: ours and other methods at one false rate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.mining.tables.alternatives import METHODS
from bench.mining.tables.distributions import DIRT, FAMILIES, Cdf, Chances, chances_of, history, parted, sum_of_history
from specmine.mining.borders.detection import borders
from specmine.mining.borders.stability import StableBorder, chain
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

S = MiningSettings()
SIZES = (200, 1_000, 10_000, 100_000, 1_000_000)
OURS, ONE = "specmine", "specmine, one right"
_FALSE = 0.01  # rate at which the thresholds of the alternatives are set, in the family that is worst for each
_NULLS = 300


def shared_borders(observations: Sequence[Observation]) -> tuple[StableBorder, ...]:
    """Return the stable borders alone: what each observation has for itself does not matter to them."""
    return chain(observations, settings=S, found=[()] * len(observations)).borders


def upper_bound(hits: int, of: int, level: float = 0.99) -> float:
    """Return the upper confidence bound of a rate (Clopper and Pearson 1934)."""
    return float(stats.beta.ppf(level, hits + 1, of - hits)) if hits < of else 1.0


def false_rates(
    cases: int, families: Sequence[str] = tuple(FAMILIES), seen: Sequence[str] = tuple(DIRT)
) -> Iterator[list[object]]:
    """Yield rows: family, as seen, false stable borders by size in percent with the worst upper 99 % bound."""
    hits = total = 0
    for family, dirt in itertools.product(families, seen):
        chances = DIRT[dirt](FAMILIES[family])
        rates, worst = [], 0.0
        for number, calls in enumerate(SIZES):
            rng = np.random.default_rng([2, number])
            count = sum(_is_false(rng, chances, calls) for _ in range(cases))
            rates.append(f"{100 * count / cases:.2f}".rstrip("0").rstrip("."))
            worst = max(worst, upper_bound(count, cases))
            hits, total = hits + count, total + cases
        yield [family, dirt, *rates, f"{100 * worst:.2f}"]
    yield ["all", f"{hits} of {total:,}", *[""] * len(SIZES), f"{100 * upper_bound(hits, total):.3f}"]


def _is_false(rng: np.random.Generator, chances: Chances, calls: int) -> bool:
    """Draw a history and return whether it has a stable border; its observations only if their sum has one."""
    together = sum_of_history(rng, chances, calls)
    if not borders(together, settings=S, z=S.stable_z):
        return False
    return bool(shared_borders(parted(rng, together)))


def true_rates(cases: int) -> Iterator[list[object]]:
    """Yield rows: weight of the smaller of two normal classes, distance, how often its border is stable, by size."""
    for weight, apart in ((0.02, 6.0), (0.05, 5.0), (0.1, 4.0), (0.1, 4.5), (0.2, 3.5), (0.2, 4.0), (0.5, 3.0)):
        mixture = Mixture(weights=(1 - weight, weight), apart=apart)
        chances, rates = mixture.chances(), []
        for number, calls in enumerate(SIZES):
            rng = np.random.default_rng([3, number])
            hits = sum(
                found(mixture, [b.cdf for b in shared_borders(history(rng, chances, calls))]) for _ in range(cases)
            )
            rates.append(f"{100 * hits / cases:.0f}")
        yield [weight, apart, *rates]


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Classes of one shape at equal distances."""

    weights: tuple[float, ...]
    apart: float
    """Distance of neighbouring means, in standard deviations of the lower class."""
    tails: str = "normal"

    def chances(self) -> Chances:
        """Return the chance of each bucket."""
        parts = [self._part(i) for i in range(len(self.weights))]
        weighted = list(zip(self.weights, parts, strict=True))
        return chances_of(lambda x: np.sum([weight * part(x) for weight, part in weighted], axis=0))

    @property
    def borders(self) -> tuple[float, ...]:
        """CDF values of the true borders."""
        return tuple(float(v) for v in np.cumsum(self.weights)[:-1])

    @property
    def reach(self) -> float:
        """How far from the truth a border may be: half the smallest class, 5 % at most."""
        return min(0.05, 0.5 * min(self.weights))

    def _part(self, index: int) -> Cdf:
        centre, sd = 2e4 + index * self.apart * 1e3, 1e3
        if self.tails == "normal":
            return stats.norm(centre, sd).cdf
        if self.tails == "t, 3 df":  # of the same standard deviation
            return stats.t(3, centre, sd / np.sqrt(3.0)).cdf
        sigma = np.sqrt(np.log1p((sd / centre) ** 2)) if self.tails == "lognormal" else 0.0
        if sigma:
            return stats.lognorm(sigma, scale=centre / np.exp(0.5 * sigma**2)).cdf
        return stats.expon(centre - sd, sd).cdf  # a sharp beginning and a long tail, as services have them


def found(mixture: Mixture, places: Sequence[float]) -> bool:
    """Return whether each true border is met, and no other is stated."""
    return len(places) == len(mixture.borders) and all(
        min((abs(b - true) for b in places), default=1.0) <= mixture.reach for true in mixture.borders
    )


def _right(mixture: Mixture, places: Sequence[float]) -> list[float]:
    return [p for p in places if min(abs(p - true) for true in mixture.borders) <= mixture.reach]


def sum_of(observations: Sequence[Observation]) -> NDArray[np.float64]:
    """Return the counts of all together, shape (BUCKETS,)."""
    return Histogram.sum(one.histogram for one in observations).dense.astype(np.float64)


def thresholds(calls: int) -> dict[str, float]:
    """Return the statistic of each alternative that is exceeded at ``_FALSE`` in the family worst for it."""
    worst = dict.fromkeys(METHODS, -np.inf)
    for family in FAMILIES:
        rng = np.random.default_rng(6)
        nulls = [sum_of(history(rng, chances_of(FAMILIES[family]), calls)) for _ in range(_NULLS)]
        for name, method in METHODS.items():
            values = [method(counts)[0] for counts in nulls]
            worst[name] = max(worst[name], float(np.quantile(values, 1 - _FALSE)))
    return worst


def power(mixtures: Sequence[Mixture], cases: int, calls: int, limits: dict[str, float]) -> Iterator[list[object]]:
    """Yield for each mixture how often each method finds its borders, ours first, and how often ours has a right one.

    Ours and the Gaussian mixture must name all borders and no other. The dip test names no place: every rejection
    counts. Jenks breaks and kernel valleys name one border: it is enough that this one is right, as in the last column.
    """
    for mixture in mixtures:
        rng, chances = np.random.default_rng(7), mixture.chances()
        hits = dict.fromkeys((OURS, *METHODS, ONE), 0)
        for _ in range(cases):
            past = history(rng, chances, calls)
            own = [b.cdf for b in shared_borders(past)]
            hits[OURS] += found(mixture, own)
            hits[ONE] += bool(_right(mixture, own))
            counts = sum_of(past)
            for name, method in METHODS.items():
                value, places = method(counts)
                right = found(mixture, places) if name.startswith("Gauss") else bool(_right(mixture, places))
                placed = not places or right
                hits[name] += value > limits[name] and placed
        yield [hits[name] / cases for name in hits]


TWO = tuple(
    Mixture(weights=(1 - weight, weight), apart=apart)
    for weight, apart in itertools.product((0.02, 0.05, 0.1, 0.2, 0.5), (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0))
)
MORE = (
    *(Mixture(weights=(1 / k,) * k, apart=apart) for k in (3, 4, 5) for apart in (3.0, 4.0, 6.0)),
    *(Mixture(weights=(0.6, 0.3, 0.1), apart=apart) for apart in (4.0, 5.0, 6.0)),
    *(Mixture(weights=(0.7, 0.2, 0.08, 0.02), apart=apart) for apart in (5.0, 6.0, 8.0)),
    *(
        Mixture(weights=weights, apart=apart, tails=tails)
        for tails in ("lognormal", "t, 3 df", "shifted exponential")
        for weights in ((0.5, 0.5), (0.9, 0.1), (0.98, 0.02))
        for apart in (3.0, 4.0, 6.0, 8.0)
    ),
)


def drawn(rows: Sequence[tuple[Mixture, Sequence[float]]], path: Path) -> None:
    """Draw the power over the separation, a panel for each weight."""
    import matplotlib  # noqa: PLC0415  (for this picture only)

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "specmine"
    from matplotlib import pyplot  # noqa: PLC0415

    weights = sorted({mixture.weights[1] for mixture, _ in rows})
    figure, panels = pyplot.subplots(1, len(weights), figsize=(3 * len(weights), 3), sharey=True)
    for panel, weight in zip(panels, weights, strict=True):
        own = [(mixture.apart, values) for mixture, values in rows if mixture.weights[1] == weight]
        for index, name in enumerate((OURS, *METHODS)):
            panel.plot(
                [apart for apart, _ in own],
                [values[index] for _, values in own],
                label=name,
                linewidth=2.5 if index == 0 else 1,
                marker="." if index == 0 else None,
            )
        panel.set_title(f"smaller class {weight:.0%}", fontsize=9)
        panel.set_xlabel("standard deviations apart", fontsize=8)
    panels[0].set_ylabel("found", fontsize=8)
    panels[0].legend(fontsize=6, loc="upper left")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
