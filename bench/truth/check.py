"""Does ``specmine check`` leave fresh recordings of the same law alone, and does it find slowness?

    .venv/bin/python -m bench.truth.check [--draws 200] [--calls 10000] [--lifetimes 5] [--effect 0.03] [--table shares]

It makes the tables of docs/measured/check.md. In each draw a recording is mined, and others are checked against what
was mined: of the same law, and with all calls, the slow class or the upper 5 % of the calls slowed down. Lifetimes
differ by ``--effect`` (standard deviation of the logarithm), their ten windows by 2 %. A last table moves the shares
of classes that vary between windows. Every draw is seeded. Needs no root.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.lib.proportion import interval
from specmine.analysis.check.lifetime_data import LifetimeData
from specmine.analysis.lifetimes.from_csv import TIMED, read_calls
from specmine.analysis.mine_recording import analyze
from specmine.daemon.config.settings import settings_of
from specmine.daemon.config.tree import Config
from specmine.mining.spl.evaluation import Rules, evaluate, worst_of
from specmine.mining.spl.from_assertions import statements_of
from specmine.mining.spl.syntax import Statement
from specmine.model.verdict import Verdict

Floats = NDArray[np.float64]
Slowed = Callable[[Floats, Any], Floats]
"""Gets durations, and which of them are of the slow class."""
WINDOWS = 10
WINDOW_EFFECT = 0.02
FACTORS = (1.05, 1.5, 2.0, 10.0)
SLOW_SHARE = 0.3
FAST_NS, SLOW_NS = 10_000.0, 160_000.0
UPPER = 0.05
VERDICTS = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.HOLDS)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Rates of the verdicts of specmine check.")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--lifetimes", type=int, default=5)
    parser.add_argument("--effect", type=float, default=0.03)
    parser.add_argument("--table", choices=["levels", "shares"], help="only this one")
    options = parser.parse_args()
    print(f"{options.draws} draws; {options.calls:,} calls in {options.lifetimes} lifetimes that differ by "
          f"{options.effect:.0%}; 95 % intervals\n")  # fmt: skip
    laws = (("One class, one call path", False), ("Two callers, a fast and a slow class", True))
    for title, paths in laws if options.table != "shares" else ():
        print(f"{title}\n")
        print_levels(Law(paths=paths, lifetimes=options.lifetimes, calls=options.calls, effect=options.effect), options)
    if options.table != "levels":
        print("Shares: the slow class has 30 % of the calls of one call path, and other shares in what is checked\n")
        print_shares(options)
    return 0


class Law:
    """How long calls take: one or two lognormal classes, lifetimes and windows that differ."""

    def __init__(self, *, paths: bool, lifetimes: int, calls: int, effect: float, wander: float = 0.0) -> None:
        """Take the law.

        Parameters
        ----------
        paths : bool
            True: the slow class is called by one caller, the fast one by another. False: without ``wander`` one class.
        lifetimes, calls : int
            Calls of all lifetimes together.
        effect : float
            Standard deviation of the logarithm of a lifetime's durations.
        wander : float
            Standard deviation of the share of the slow class from window to window, on the logit scale.
        """
        self.paths, self.lifetimes, self.calls, self.effect, self.wander = paths, lifetimes, calls, effect, wander

    def write(self, path: Path, rng: np.random.Generator, slowed: Slowed, share: float = SLOW_SHARE) -> Path:
        """Draw a recording; ``slowed`` gets durations and which of them are of the slow class."""
        lines = ["function,path,duration_ns,lifetime"]
        for lifetime in range(self.lifetimes):
            level = np.exp(rng.normal(0.0, self.effect))
            for part in np.array_split(np.arange(self.calls // self.lifetimes), WINDOWS):
                durations, slow = self._window(rng, len(part), share)
                durations = slowed(durations * level * np.exp(rng.normal(0.0, WINDOW_EFFECT)), slow)
                callers = np.where(slow, "db_get", "cache_get") if self.paths else np.full(len(part), "serve")
                lines += [f"load,main;{by};load,{ns:.0f},{lifetime}" for by, ns in zip(callers, durations, strict=True)]
        path.write_text("\n".join(lines) + "\n")
        return path

    def _window(self, rng: np.random.Generator, calls: int, share: float) -> tuple[Floats, NDArray[np.bool_]]:
        if not self.paths and not self.wander:
            return 40_000.0 * rng.lognormal(0.0, 0.35, calls), np.zeros(calls, dtype=bool)
        logit = np.log(share / (1 - share)) + rng.normal(0.0, self.wander)
        slow = rng.random(calls) < 1 / (1 + np.exp(-logit))
        return np.where(slow, SLOW_NS, FAST_NS) * rng.lognormal(0.0, 0.3, calls), slow


def same(durations: Floats, _: Any) -> Floats:
    """Return durations as they are."""
    return durations


def all_calls(factor: float, durations: Floats, _: Any) -> Floats:
    """Slow every call."""
    return durations * factor


def slow_class(factor: float, durations: Floats, slow: Any) -> Floats:
    """Slow the calls of the slow class."""
    return np.where(slow, durations * factor, durations)


def upper(factor: float, durations: Floats, _: Any) -> Floats:
    """Slow the slowest calls of each window."""
    return np.where(durations >= np.quantile(durations, 1 - UPPER), durations * factor, durations)


def cases(law: Law) -> dict[tuple[str, float], Slowed]:
    """Return what is slowed, by its name and factor."""
    found: dict[tuple[str, float], Slowed] = {("nothing", 1.0): same}
    for factor in FACTORS:
        found["all calls", factor] = partial(all_calls, factor)
        if law.paths:
            found["the slow class", factor] = partial(slow_class, factor)
        found["the upper 5 %", factor] = partial(upper, factor)
    return found


def print_levels(law: Law, options: argparse.Namespace) -> None:
    """Print how often a specification is violated, unknown, holds; and of unchanged ones each formula."""
    whole: dict[tuple[str, float], Counter[Verdict]] = {}
    formulas: Counter[Verdict] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for draw in range(options.draws):
            rng = np.random.default_rng([draw, law.paths])
            statements = mined(law.write(Path(folder) / "learned.csv", rng, same))
            for case, slowed in cases(law).items():
                verdicts = checked(statements, law.write(Path(folder) / "checked.csv", rng, slowed))
                whole.setdefault(case, Counter())[worst_of(verdicts)] += 1
                if case[0] == "nothing":
                    formulas.update(verdicts)
    print("| slowed | factor | violated | unknown | holds |\n| --- | --- | --- | --- | --- |")
    for (what, factor), counts in whole.items():
        print(f"| {what} | {factor:g} | {' | '.join(rate(counts[each], options.draws) for each in VERDICTS)} |")
    total = sum(formulas.values())
    print(f"\nOf {total} formulas on unchanged recordings: {rate(formulas[Verdict.VIOLATED], total)} violated, "
          f"{rate(formulas[Verdict.UNKNOWN], total)} unknown.\n", flush=True)  # fmt: skip


def print_shares(options: argparse.Namespace) -> None:
    """Print the verdicts on class shares, by how far they vary between windows and by what they became."""
    print("| varies between windows by | share becomes | violated | unknown | holds |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for wander in (0.05, 1.0):
            counts: dict[float, Counter[Verdict]] = {share: Counter() for share in (0.3, 0.37, 0.5)}
            law = Law(paths=False, lifetimes=options.lifetimes, calls=options.calls, effect=0.0, wander=wander)
            for draw in range(options.draws):
                rng = np.random.default_rng([draw, 7, round(100 * wander)])
                statements = [each for each in mined(law.write(Path(folder) / "learned.csv", rng, same))
                              if str(each.formula).startswith("shares")]  # fmt: skip
                for share, found in counts.items() if statements else ():
                    found[worst_of(checked(statements, law.write(Path(folder) / "checked.csv", rng, same, share)))] += 1
            for share, found in counts.items():
                draws = sum(found.values())
                row = " | ".join(rate(found[each], draws) for each in VERDICTS)
                print(f"| {wander:g} (logit), {draws} draws | {share:.0%} | {row} |", flush=True)


def mined(path: Path) -> list[Statement]:
    """Return the formulas of what is mined from a recording."""
    document = analyze(str(path), settings=settings_of(Config())).document
    return statements_of(document["functions"])


def checked(statements: list[Statement], path: Path) -> list[Verdict]:
    """Return the verdicts of formulas on a recording, as ``specmine check --against FILE.csv`` has them."""
    calls = read_calls(path, required=TIMED)
    data = LifetimeData(calls.by_lifetime(), calls.by_path(), windows=lambda: (calls.by_window(),) * 2)
    return [evaluate(each.formula, data, Rules()).verdict for each in statements]


def rate(count: int, of: int) -> str:
    """Return a rate in per cent with its exact 95 % interval."""
    if not of:
        return "-"
    low, high = interval(count, of)
    return f"{100 * count / of:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


if __name__ == "__main__":
    sys.exit(main())
