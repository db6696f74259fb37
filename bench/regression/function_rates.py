"""How often is an unchanged function called a change when its parts are compared, and which changes are found?

    .venv/bin/python -m bench.regression.function_rates [TABLE...]

It makes tables of docs/measured/change.md from seeded draws: aa, power. Needs no root.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.regression.error_rates import EFFECTS
from specmine.mining.comparison.function_comparison import compare_function
from specmine.mining.comparison.function_parts import parts_of
from specmine.mining.regression.comparison import Change, LifetimeSample, Rule
from specmine.mining.regression.sample import sample_of_durations

Floats = NDArray[np.float64]
DRAWS, POWER_DRAWS = 1_000, 300
CALLS = 300
RULE = Rule()
SLOW_SHARE = 0.3
CHANGED = (Change.WORSE, Change.BETTER)


def calls_of(rng: np.random.Generator, effect: float, own: float, slow: float, *, classes: int) -> Floats:
    """Return the calls of one lifetime: of one class, or of a second one sixteen times as long, with its own effect."""
    durations = 10e3 * effect * rng.lognormal(0.0, 0.1 if classes > 1 else 0.3, CALLS)
    if classes > 1:
        durations = np.where(rng.random(CALLS) < SLOW_SHARE, 16.0 * own * slow * durations, durations)
    return durations


def side(
    rng: np.random.Generator, effects: Floats, own: Floats, slow: float = 1.0, *, classes: int
) -> list[LifetimeSample]:
    """Return lifetimes with these effects of the restart."""
    return [
        LifetimeSample(lifetime=str(at), host="", sample=sample_of_durations(
            calls_of(rng, float(effect), float(more), slow, classes=classes)))
        for at, (effect, more) in enumerate(zip(effects, own, strict=True))
    ]  # fmt: skip


def equal_sides() -> None:
    """A/A at 5 %: per cent of unchanged functions called a change, by the median alone and by all parts."""
    kinds: dict[str, tuple[int, bool]] = {"one class": (1, False), "two classes": (2, False), "own effects": (2, True)}
    print(f"{'effect':15} {'a side':>8} " + " ".join(f"{f'{name}: median, parts':>30}" for name in kinds))
    for effect, draw in EFFECTS.items():
        for count in (3, 5, 10):
            cells = []
            for classes, separate in kinds.values():
                rng = np.random.default_rng(21)
                alone = whole = 0
                for _ in range(DRAWS):
                    sides = []
                    for _ in range(2):
                        own = draw(rng, (count,)) if separate else np.ones(count)
                        sides.append(side(rng, draw(rng, (count,)), own, classes=classes))
                    found = compare_function(parts_of(sides[0], sides[1], RULE), RULE)
                    alone += found.whole.verdict in CHANGED
                    whole += found.verdict in CHANGED
                cells.append(f"{100 * alone / DRAWS:22.1f}, {100 * whole / DRAWS:5.1f} ")
            print(f"{effect:15} {f'{count}, {count}':>8} " + " ".join(cells), flush=True)


def power() -> None:
    """Per cent of changes found worse, by the median alone and by all parts; restarts differ by 1 %."""
    changes: dict[str, Callable[[np.random.Generator, Floats, Floats], list[LifetimeSample]]] = {
        "all calls + 5 %": lambda rng, effects, own: side(rng, 1.05 * effects, own, classes=1),
        "slow class + 5 %": lambda rng, effects, own: side(rng, effects, own, 1.05, classes=2),
        "slow class + 10 %": lambda rng, effects, own: side(rng, effects, own, 1.1, classes=2),
        "slow class + 50 %": lambda rng, effects, own: side(rng, effects, own, 1.5, classes=2),
    }
    print(f"{'change':18} {'a side':>8} {'median':>8} {'parts':>8}")
    for name, changed in changes.items():
        for count in (3, 5, 10):
            rng = np.random.default_rng(22)
            alone = whole = 0
            for _ in range(POWER_DRAWS):
                effects, own = np.exp(rng.normal(0, 0.01, (2, count))), np.ones(count)
                base = side(rng, effects[0], own, classes=1 if name.startswith("all") else 2)
                found = compare_function(parts_of(base, changed(rng, effects[1], own), RULE), RULE)
                alone += found.whole.verdict is Change.WORSE
                whole += found.verdict is Change.WORSE
            print(
                f"{name:18} {f'{count}, {count}':>8} {100 * alone / POWER_DRAWS:8.1f} {100 * whole / POWER_DRAWS:8.1f}",
                flush=True,
            )


TABLES = {"aa": equal_sides, "power": power}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        print(f"== {name}: {TABLES[name].__doc__}")
        TABLES[name]()
