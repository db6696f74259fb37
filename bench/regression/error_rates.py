"""How often do comparisons between builds err, and which changes do they find?

    .venv/bin/python -m bench.regression.error_rates [TABLE...]

It makes the tables of docs/measured/change.md from seeded draws. Needs no root.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from specmine.mining.comparison.function_comparison import compare_function
from specmine.mining.comparison.function_parts import parts_of
from specmine.mining.regression.alarm import discoveries
from specmine.mining.regression.comparison import Change, LifetimeSample, Rule, compare
from specmine.mining.regression.ratio_estimate import ratio_estimate
from specmine.mining.regression.sample import TRIMMED_SHARE, sample_of_durations
from specmine.mining.regression.sample_size import smallest_detectable
from specmine.mining.regression.sequential_test import begin, with_lifetime

Floats = NDArray[np.float64]
DRAWS = 4_000
CALLS = 200

EFFECTS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "normal 5 %": lambda rng, shape: np.exp(rng.normal(0, 0.05, shape)),
    "uniform +-30 %": lambda rng, shape: rng.uniform(0.7, 1.3, shape),
    "exponential": lambda rng, shape: 1 + rng.exponential(0.2, shape),
    "slow mode 15 %": lambda rng, shape: (
        np.where(rng.random(shape) < 0.15, 1.5, 1.0) * np.exp(rng.normal(0, 0.02, shape))
    ),
}
SUMMARIES: dict[str, Callable[[Floats], Floats]] = {
    "mean": lambda calls: calls.mean(axis=-1),
    "median": lambda calls: np.median(calls, axis=-1),
    "trimmed": lambda calls: np.asarray(stats.trim_mean(calls, TRIMMED_SHARE, axis=-1)),
    "p90": lambda calls: np.quantile(calls, 0.9, axis=-1),
    "p99": lambda calls: np.quantile(calls, 0.99, axis=-1),
}


def lifetimes(rng: np.random.Generator, effect: str, draws: int, count: int) -> Floats:
    """Return durations of shape (draws, count, CALLS): skewed calls times a factor of their lifetime."""
    return EFFECTS[effect](rng, (draws, count, 1)) * rng.lognormal(10, 0.3, (draws, count, CALLS))


def rejects(base: Floats, new: Floats, level: float) -> bool:
    """Tell whether an interval excludes 1."""
    found = ratio_estimate({"": base}, {"": new}, level=level)
    return found is not None and not found.low <= 1.0 <= found.high


def equal_sides() -> None:
    """A/A at 5 %: per cent of unchanged comparisons called a change."""
    print(f"{'effect':15} {'a side':>8} " + " ".join(f"{name:>8}" for name in SUMMARIES) + f" {'pooled':>8}")
    for effect in EFFECTS:
        for first, second in ((2, 2), (3, 3), (5, 5), (10, 10), (20, 20), (2, 20), (3, 20), (5, 20)):
            rng = np.random.default_rng(1)
            alarms = dict.fromkeys((*SUMMARIES, "pooled"), 0)
            for _ in range(DRAWS // 500):  # in parts: memory
                base, new = lifetimes(rng, effect, 500, first), lifetimes(rng, effect, 500, second)
                for name, summarise in SUMMARIES.items():
                    pairs = zip(summarise(base), summarise(new), strict=True)
                    alarms[name] += sum(rejects(a, b, 0.95) for a, b in pairs)
                pooled = stats.ttest_ind(base.reshape(500, -1), new.reshape(500, -1), axis=1, equal_var=False)
                alarms["pooled"] += int((pooled.pvalue < 0.05).sum())
            shares = " ".join(f"{100 * alarms[name] / DRAWS:8.2f}" for name in alarms)
            print(f"{effect:15} {f'{first}, {second}':>8} {shares}", flush=True)


def unequal_spread() -> None:
    """A/A at 5 % where one side, the first, spreads twice as much: per cent called a change, normal effects."""
    print(f"{'sides':>8} {'ours':>8} {'Welch':>8} {'pooled':>8}")
    for first, second in ((5, 5), (2, 20), (3, 20), (5, 20), (20, 3)):
        rng = np.random.default_rng(6)
        base, new = rng.normal(0, 0.1, (DRAWS, first)), rng.normal(0, 0.05, (DRAWS, second))
        ours = sum(rejects(a, b, 0.95) for a, b in zip(np.exp(base), np.exp(new), strict=True))
        others = [stats.ttest_ind(base, new, axis=1, equal_var=equal).pvalue < 0.05 for equal in (False, True)]
        shares = " ".join(f"{100 * each.mean():8.2f}" for each in others)
        print(f"{f'{first}, {second}':>8} {100 * ours / DRAWS:8.2f} {shares}", flush=True)


def power() -> None:
    """Power of five lifetimes a side, that of the noncentral t, and the predicted smallest detectable change."""
    print(f"{'shift':>6} {'deviation':>16} {'power':>7} {'noncentral t':>13} {'Welch df':>9}")
    rng = np.random.default_rng(2)
    for shift, name, draw, deviation in (
        (0.01, "normal 0.4 %", lambda n: np.exp(rng.normal(0, 0.004, n)), 0.004),
        (0.05, "normal 2 %", lambda n: np.exp(rng.normal(0, 0.02, n)), 0.02),
        (0.05, "uniform +-3 %", lambda n: 1 + rng.uniform(-0.03, 0.03, n), 0.03 / math.sqrt(3)),
    ):
        found, freedoms = 0, []
        for _ in range(DRAWS):
            estimate = ratio_estimate({"": draw(5)}, {"": draw(5) * (1 + shift)}, level=0.95)
            assert estimate is not None
            found += estimate.low > 1
            freedoms.append(estimate.freedom)
        theory = stats.nct.sf(stats.t.ppf(0.975, 8), 8, math.log1p(shift) / (deviation * math.sqrt(0.4)))
        print(f"{shift:6.0%} {name:>16} {100 * found / DRAWS:7.1f} {100 * theory:13.1f} {np.mean(freedoms):9.2f}")
    print(f"\n{'deviation':>9} {'a side':>7} {'predicted':>10} {'simulated':>10} {'ratio':>6}")
    for deviation in (0.004, 0.02, 0.1):
        for count in (3, 5, 10, 20):
            predicted = math.log(smallest_detectable(deviation * math.sqrt(2 / count), 2 * count - 2, 0.95))
            simulated = _found_at(rng, deviation, count, predicted)
            print(f"{deviation:9.1%} {count:7} {predicted:10.3%} {simulated:10.3%} {predicted / simulated:6.2f}")


def _found_at(rng: np.random.Generator, deviation: float, count: int, start: float) -> float:
    """Return the shift that is found in 80 % of simulated comparisons, by halving."""
    sides = rng.normal(0, deviation, (2, 1500, count))

    def share(shift: float) -> float:
        found = 0
        for base, new in zip(sides[0], sides[1] + shift, strict=True):
            estimate = ratio_estimate({"": np.exp(base)}, {"": np.exp(new)}, level=0.95)
            found += estimate is not None and estimate.low > 1
        return found / len(sides[0])

    low, high = 0.3 * start, 2.5 * start
    for _ in range(9):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if share(middle) >= 0.8 else (middle, high)
    return high


def looks() -> None:
    """Look after each of 30 new lifetimes at 1 %: per cent of unchanged histories ever called a change."""
    print(f"{'effect':15} {'base':>5} {'always valid':>13} {'t at each look':>15}")
    for effect, draw in EFFECTS.items():
        for base in (5, 30):
            rng = np.random.default_rng(3)
            ours = theirs = 0
            for _ in range(2000):
                old, new = draw(rng, (base,)), draw(rng, (30,))
                state, hit = begin(old.tolist()), False
                for value in new:
                    state = with_lifetime(state, float(value))
                    hit |= state.log_e >= math.log(100)
                ours += hit
                theirs += any(rejects(old, new[:k], 0.99) for k in range(3, 31))
            print(f"{effect:15} {base:5} {ours / 20:13.2f} {theirs / 20:15.2f}", flush=True)


def month() -> None:
    """1,000 unchanged functions, 20 base and 30 new lifetimes, looked at after each: months with a false alarm."""
    rng = np.random.default_rng(4)
    months, false = 20, 0
    for _ in range(months):
        states = {str(k): begin(EFFECTS["normal 5 %"](rng, (20,)).tolist()) for k in range(1000)}
        raised = False
        for _ in range(30):
            states = {k: with_lifetime(s, float(EFFECTS["normal 5 %"](rng, (1,))[0])) for k, s in states.items()}
            raised |= bool(discoveries({}, {k: s.log_e for k, s in states.items()}, 1000, 0.05))
        false += raised
    print(f"{false} of {months} months with any false alarm, stated rate 5 %")


def speed() -> None:
    """10,000 functions with 50 lifetimes each, compared again on one core; and one more lifetime of each."""
    rng = np.random.default_rng(5)
    samples = [
        [
            LifetimeSample(lifetime=str(k), host="", sample=sample_of_durations(rng.lognormal(10, 0.3, 50)))
            for k in range(50)
        ]
        for _ in range(50)
    ]
    began, changed = time.process_time(), 0
    for number in range(10_000):
        each = samples[number % 50]
        changed += compare(each[:25], each[25:], Rule()).verdict in (Change.WORSE, Change.BETTER)
    print(f"fixed-sample, CPU time: {time.process_time() - began:.1f} s ({changed} called a change)")
    began = time.process_time()
    for number in range(1_000):
        each = samples[number % 50]
        compare_function(parts_of(each[:25], each[25:], Rule()), Rule())
    print(f"1,000 of them with their parts: {time.process_time() - began:.1f} s")
    states = [begin(rng.lognormal(0, 0.05, 25).tolist()) for _ in range(10_000)]
    values = rng.lognormal(0, 0.05, (25, 10_000))
    for row in values[:-1]:
        states = [with_lifetime(s, float(v)) for s, v in zip(states, row, strict=True)]
    began = time.process_time()
    states = [with_lifetime(s, float(v)) for s, v in zip(states, values[-1], strict=True)]
    raised = discoveries({}, {str(k): s.log_e for k, s in enumerate(states)}, 10_000, 0.05)
    print(f"one more lifetime of each, and all verdicts: {time.process_time() - began:.1f} s ({len(raised)} alarms)")


TABLES = {"aa": equal_sides, "spread": unequal_spread, "power": power, "looks": looks, "month": month, "speed": speed}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        print(f"== {name}: {TABLES[name].__doc__}")
        TABLES[name]()
