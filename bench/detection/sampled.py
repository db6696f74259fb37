"""How much sooner is a change found, since samples say which functions to time first?

    .venv/bin/python -m bench.detection.sampled [--draws 4]

The daemon's loop runs over a simulated program with a clock of its own. The program uses 5 % of a CPU, so probes may
cost the least that a budget allows, 1 ms a second. A timed call costs 5 us, as on a busy virtual machine. After 2,400 s
one of its forty functions becomes slower, and takes more of the CPU time accordingly. *Blind* is the same daemon with
samples that surprise nobody. Needs no root.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from specmine.daemon.controller.sampling import surprise
from specmine.model.batch import HotSample
from tests.support import simulated
from tests.support.changing import Change, ChangingSource, lived, slower
from tests.support.planted import Planted, Way
from tests.support.simulated import SECOND, FakeClock

FUNCTIONS, CPUS = 40, 0.05
CHANGE_S, LAST_S = 2400.0, 240.0
CHANGED = (("f3", 1.5), ("f3", 3.0), ("f8", 3.0), ("f15", 5.0))
"""Which function changes, by which factor."""
DEAR = 3.8
"""So many times the simulation's usual price of a hit."""


class SampledSource(ChangingSource):
    """A source whose samples show times as samples do: each stands for the time since the one before."""

    def _sampled(self, passed: int) -> tuple[HotSample, ...]:
        return tuple(
            replace(one, inclusive_ns=time_ns, on_cpu_ns=time_ns)
            for one in super()._sampled(passed)
            for time_ns in (one.samples * SECOND / self.hertz,)
        )


def program() -> tuple[Planted, ...]:
    """Return functions that take 13 % to 0.1 % of the CPU time, none of which calls another."""
    shares = 0.88 ** np.arange(FUNCTIONS)
    shares /= shares.sum()
    rates = 10 ** np.random.default_rng(5).uniform(1.5, 4, FUNCTIONS)
    return tuple(
        Planted(
            name=f"f{place}", rate=float(rate), own=float(share), inclusive=float(share),
            ways=(Way(callers="main", weight=1.0, classes=((1.0, float(share) * CPUS * SECOND / float(rate), 0.15),)),),
        )
        for place, (share, rate) in enumerate(zip(shares, rates, strict=True))
    )  # fmt: skip


def grown(factor: float) -> Change:
    """Return the change of a function that becomes slower, and so takes more of the CPU time."""

    def change(planted: Planted) -> Planted:
        return replace(slower(factor)(planted), own=factor * planted.own, inclusive=factor * planted.inclusive)

    return change


def opened_after(name: str, factor: float, seed: int) -> tuple[float, int, int]:
    """Return the seconds from a change to its violation (inf: none), other ones, and how many functions were known."""
    source = SampledSource(program(), FakeClock(), [(CHANGE_S, name, grown(factor))], seed=seed)
    source.cpus = CPUS
    found = lived((), CHANGE_S + LAST_S, source=source)
    key = found.named(name).key
    own = [second - CHANGE_S for second, one in found.opened.values() if one.function == key and second > CHANGE_S]
    known = sum(one.violations.yardstick is not None for one in found.state.functions.values())
    return min(own, default=np.inf), len(found.opened) - len(own), known


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    draws = parser.parse_args().draws
    print("| share of the CPU time | factor | opened after, s | blind, s | others opened | known |")
    print("| --- | --- | --- | --- | --- | --- |")
    enough = surprise.EVIDENCE
    price = simulated.PRICES
    simulated.PRICES = replace(
        price, count_ns=DEAR * price.count_ns, time_ns=DEAR * price.time_ns, path_ns=DEAR * price.path_ns
    )
    for name, factor in CHANGED:
        (share,) = (one.own for one in program() if one.name == name)
        columns = []
        for evidence in (enough, np.inf):
            surprise.EVIDENCE = evidence
            columns.append([opened_after(name, factor, seed) for seed in range(1, draws + 1)])
        with_samples, blind = (", ".join(f"{after:.0f}" for after, _, _ in column) for column in columns)
        others, known = (max(one[place] for one in columns[0]) for place in (1, 2))
        print(f"| {100 * share:.1f} % | {factor:g} | {with_samples} | {blind} | {others} | {known} |", flush=True)


if __name__ == "__main__":
    main()
