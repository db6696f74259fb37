"""How soon does the whole daemon open a violation, is it right, and what does it open for nothing?

    .venv/bin/python -m bench.detection.daemon [--draws 10] [--tight | --scarce]

The daemon's loop runs over a simulated program of four functions with a clock of its own: learning, budget, windows,
detector, yardstick, causes. The level of every function wanders with a standard deviation of 8 % and a correlation of
0.8 over ten seconds. With ``--tight`` the program has twelve functions that do not wander, and uses a quarter of a CPU:
2.5 ms of cost a second. With ``--scarce`` it has thirty, uses a tenth of a CPU, and a timed call costs 4.5 us, as on a
busy host with cold caches. One of them becomes slower after 700 s. Needs no root.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from specmine.model.batch import Batch, Prices
from specmine.model.violation import Direction, Violation
from tests.support.changing import Change, ChangingSource, Life, called, lived, paused, slower
from tests.support.planted import Planted, Way
from tests.support.simulated import SECOND, FakeClock

SPREAD, CORRELATION = 0.08, 0.8
CHANGE_S, END_S, QUIET_S = 240.0, 420.0, 1_200.0
NAME = "f0"
PAUSES = ((0.005, 600.0), (0.01, 300.0), (0.02, 300.0), (0.05, 20.0))
"""Share of the calls that are paused, as by a CPU limit, and how many times as long they take."""
TIGHT_S = 700.0
DEAR = Prices(count_ns=2000.0, time_ns=4500.0, path_ns=7000.0, stepped_ns=9000.0, sample_ns=5000.0, bias_ns=400.0)
MANY = (
    ("render", 4000.0, 23e3, 0.2), ("checksum", 1200.0, 40e3, 0.2), ("read_block", 1200.0, 20e3, 0.1),
    ("update", 4000.0, 14e3, 0.1), ("serve", 4000.0, 60e3, 0.1), ("cache_get", 2800.0, 7e3, 0.05),
    ("db_get", 1200.0, 90e3, 0.05), ("work", 14000.0, 10e3, 0.1), ("log", 4000.0, 1e3, 0.05),
    ("pwrite", 200.0, 3e5, 0.02), ("flush", 200.0, 9e5, 0.02), ("fdatasync", 200.0, 7e5, 0.02),
)  # fmt: skip
"""Name, calls a second, median in ns, share of the CPU time: those of ``bench/targets/shop.cpp``, about."""


class Wandering(ChangingSource):
    """A program whose functions take longer and less long by themselves."""

    def __init__(self, planted: Sequence[Planted], changes: Sequence[tuple[float, str, Change]], seed: int) -> None:
        super().__init__(planted, FakeClock(), changes, seed=seed)
        self._own = np.random.default_rng(seed + 1000)
        self._levels = {each.name: SPREAD * float(self._own.standard_normal()) for each in planted}
        self._second = 0

    def poll(self, now_ns: int) -> Batch:
        while (now_ns - self.began_ns) // SECOND > self._second:
            self._second += 1
            kept = CORRELATION**0.1
            for key, planted in self.planted.items():
                before = self._levels[planted.name]
                after = kept * before + SPREAD * math.sqrt(1 - kept**2) * float(self._own.standard_normal())
                self._levels[planted.name] = after
                self.planted[key] = slower(math.exp(after - before))(planted)
        return super().poll(now_ns)


def program() -> tuple[Planted, ...]:
    """Return four functions of one class."""
    one = Way(callers="main", weight=1.0, classes=((1.0, 50_000.0, 0.4),))
    return tuple(
        Planted(name=f"f{number}", rate=rate, own=0.1, inclusive=0.1, ways=(one,))
        for number, rate in enumerate((2000.0, 400.0, 5000.0, 100.0))
    )


def life(seed: int, seconds: float, changes: Sequence[tuple[float, str, Change]] = ()) -> Life:
    """Run the daemon over the program."""
    return lived((), seconds, source=Wandering(program(), changes, seed))


def told(found: Life) -> tuple[float, Violation] | None:
    """Return when the changed function's violation opened, and the violation as it was at the end."""
    key = found.named(NAME).key
    opened = [(second, one) for second, one in found.opened.values() if one.function == key and second > CHANGE_S]
    if not opened:
        return None
    second, one = min(opened, key=lambda each: each[0])
    now = {each.id: each for each in found.named(NAME).violations.all}
    return second - CHANGE_S, now.get(one.id, one)


def many() -> tuple[Planted, ...]:
    """Return twelve functions of one class."""
    return tuple(
        Planted(
            name=name, rate=rate, own=own, inclusive=own,
            ways=(Way(callers="main", weight=1.0, classes=((1.0, ns, 0.12),)),),
        )
        for name, rate, ns, own in MANY
    )  # fmt: skip


def more() -> tuple[Planted, ...]:
    """Return eighteen functions of a hundredth of the time each."""
    rng = np.random.default_rng(3)
    return tuple(
        Planted(
            name=f"g{number}", rate=float(rng.choice((300, 1000, 3000))), own=0.01, inclusive=0.01,
            ways=(Way(callers="main", weight=1.0, classes=((1.0, float(rng.uniform(2e3, 2e5)), 0.15),)),),
        )
        for number in range(18)
    )  # fmt: skip


def tight(draws: int, *, scarce: bool) -> None:
    """Print how soon changes are opened where the budget is small for the functions that there are."""
    print(
        "| function | factor | opened after | factor told | others opened | overhead |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for name, factor in (("render", 3.0), ("checksum", 2.0), ("read_block", 16.0), ("serve", 1.5)):
        for seed in range(1, draws + 1):
            planted = (*many(), *more()) if scarce else many()
            source = ChangingSource(planted, FakeClock(), [(TIGHT_S, name, slower(factor))], seed=seed)
            source.cpus = 0.1 if scarce else 0.25
            source.prices = DEAR if scarce else source.prices
            found = lived((), TIGHT_S + 200, source=source)
            key = found.named(name).key
            own = [(second - TIGHT_S, one.factor) for second, one in found.opened.values() if one.function == key]
            spent = found.state.account.spent
            after, told_factor = own[0] if own else (math.inf, math.nan)
            print(
                f"| `{name}` | {factor:g} | {after:.0f} s | {told_factor:.2f} | {len(found.opened) - len(own)} |"
                f" {100 * spent.overhead_ns / spent.program_cpu_ns:.2f} % |",
                flush=True,
            )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tight", action="store_true", help="a small budget for many functions")
    parser.add_argument("--scarce", action="store_true", help="the least budget for many more, with dear probes")
    options = parser.parse_args()
    draws = options.draws
    if options.tight or options.scarce:
        tight(draws, scarce=options.scarce)
        return
    print("| change | opened | delay: median, longest | factor told within 20 % | moment within 20 s | others opened |")
    print("| --- | --- | --- | --- | --- | --- |")
    cases = [(f"{factor:g}x", factor, slower(factor)) for factor in (1.5, 2.0, 3.0, 10.0)]
    cases += [(f"{share:.1%} of calls {factor:g}x", factor, paused(share, factor)) for share, factor in PAUSES]
    for title, factor, change in cases:
        lives = [life(seed, END_S, [(CHANGE_S, NAME, change)]) for seed in range(draws)]
        found = [one for each in lives if (one := told(each)) is not None]
        right = [one for _, one in found if one.direction is Direction.SLOWER and 0.8 < one.factor / factor < 1.2]
        began = lives[0].began_ns
        near = [one for _, one in found if abs((one.since_ns - began) / SECOND - CHANGE_S) <= 20]
        delays = sorted(second for second, _ in found)
        others = sum(len(each.opened) for each in lives) - len(found)
        delay = f"{np.median(delays):.0f} s, {delays[-1]:.0f} s" if delays else "-"
        print(f"| {title} | {len(found)} of {draws} | {delay} | {len(right)} | {len(near)} | {others} |", flush=True)
    quiet = [life(seed, QUIET_S) for seed in range(draws)]
    busy = [life(seed, QUIET_S, [(600.0, each, called(2.0)) for each in ("f0", "f1")]) for seed in range(draws)]
    hours = 2 * draws * QUIET_S / 3600
    opened = sum(len(each.opened) for each in (*quiet, *busy))
    most = stats.chi2.ppf(0.975, 2 * (opened + 1)) / 2 / hours
    print("\nUnchanged, and half of it with twice the calls from the tenth minute on:")
    print(f"{opened} opened in {hours:.1f} hours of four functions (95 % upper bound: {most:.2f} an hour).")


if __name__ == "__main__":
    main()
