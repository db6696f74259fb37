"""How soon does a host that shares the work find what became slower on it alone, against a host that learns alone?

    .venv/bin/python -m bench.fleet.slowdowns [--hosts 24] [--alone 6] [--functions 40] [--factor 1.5]

Hosts as in ``bench.fleet.sharing``. After *at* seconds one function becomes slower on each host, another one on each,
and takes more of the host's time accordingly. Those that take most of the time, and rare ones, get their turn alike.
Windows wander by 10 % (an autoregressive process with a correlation time of a minute), since real ones do. *Found* is a
violation of that function, open on that host. *Others* are violations that were open before, or of functions that did
not change. Needs neither root nor a database.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field, replace

import numpy as np

from bench.lib.driver import table
from bench.lib.simulated_fleet import BEGIN_NS, LEARNING_S, Centre, FleetMember, made_fleet
from specmine.daemon.controller.hotness import own_share, total_of
from specmine.daemon.controller.phase import FINISHED
from tests.support.planted import Planted
from tests.support.simulated import SECOND, SimulatedSource, Window

WANDER, CORRELATION_S = 0.10, 60.0
BEFORE_S = 120
PLACES = ((0, 16, "the 16 with most of the time"), (16, 1 << 30, "others"))


class WanderingSource(SimulatedSource):
    """A program whose durations wander from window to window."""

    def _time(self, planted: Planted, window: Window, calls: int) -> None:
        places: dict[str, tuple[int, float]] = self.__dict__.setdefault("places", {})
        last_ns, place = places.get(planted.name, (0, 0.0))
        if self.last_ns - last_ns >= SECOND:
            kept = float(np.exp(-(self.last_ns - last_ns) / SECOND / CORRELATION_S)) if last_ns else 0.0
            place = kept * place + WANDER * float(np.sqrt(1 - kept**2) * self.random.standard_normal())
            places[planted.name] = self.last_ns, place
        super()._time(slower(planted, float(np.exp(place))), window, calls)


@dataclass(slots=True)
class Slowed:
    """A function that became slower on one host."""

    member: FleetMember
    key: str
    rank: int
    """Of its share of the host's time, from 0."""
    found_s: int | None = None


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    slowed: list[Slowed] = field(default_factory=list)
    others: int = 0
    overhead: float = 0.0
    """CPU time of the program, s/s, in the minutes before."""


def slower(planted: Planted, factor: float) -> Planted:
    """Return a function whose calls take longer."""
    ways = tuple(
        replace(way, classes=tuple((share, median * factor, sigma) for share, median, sigma in way.classes))
        for way in planted.ways
    )
    return replace(planted, ways=ways)


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=24)
    parser.add_argument("--alone", type=int, default=6, help="hosts that learn alone, to compare with")
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--factor", type=float, default=1.5)
    parser.add_argument("--at", type=int, default=480)
    parser.add_argument("--wait", type=int, default=360)
    parser.add_argument("--every", type=int, default=60, help="s between contacts of a host")
    parser.add_argument("--slowest", type=float, default=2.0, help="calls a second of the rarest function on a host")
    given = parser.parse_args()
    for name, hosts in (("shares the work", given.hosts), ("alone", given.alone)):
        shares = name != "alone"
        members, centre = made_fleet(
            hosts, given.functions, slowest=given.slowest, every=given.every, shares=shares, source=WanderingSource
        )  # fmt: skip
        came = _simulated(members, centre if shares else None, given)
        table(["a host that", "function", "found", "within 1 min", "within 2 min", "median s", "90 % s"],
              [[name, what, *_summary([each for each in came.slowed if first <= each.rank < last], given)]
               for first, last, what in PLACES])  # fmt: skip
        print(f"\noverhead in the minutes before: {100 * came.overhead:.4f} % of a CPU; others open: {came.others}",
              flush=True)  # fmt: skip
    return 0


def _summary(slowed: list[Slowed], given: argparse.Namespace) -> list[str]:
    found = sorted(float("inf") if each.found_s is None else each.found_s for each in slowed)
    if not found:
        return ["-"] * 5
    within = [sum(second <= limit for second in found) for limit in (given.wait, 60, 120)]
    shown = [f"{number} of {len(found)}" for number in within]
    quantiles = [float(np.quantile(found, one, method="inverted_cdf")) for one in (0.5, 0.9)]
    return [*shown, *(f"{one:.0f}" if one <= given.wait else "-" for one in quantiles)]


def _simulated(members: list[FleetMember], centre: Centre | None, given: argparse.Namespace) -> Outcome:
    came, before = Outcome(), 0.0
    for second in range(1, given.at + given.wait + 1):
        now_ns = BEGIN_NS + second * SECOND
        for member in members:
            member.turn(now_ns)
            if centre is not None and member.reaches(second, given.every):
                member.next_s = second + LEARNING_S if centre.contact(member, now_ns) else 0
        if centre is not None and second % 60 == 0:
            centre.plan(second)
        if second == given.at - BEFORE_S:
            before = sum(each.source.overhead_ns for each in members)
        if second == given.at:
            came.overhead = (
                (sum(each.source.overhead_ns for each in members) - before) / SECOND / BEFORE_S / len(members)
            )
            came.slowed = [one for at, each in enumerate(members) if (one := _slow(each, at, given.factor))]
        for one in came.slowed:
            function = one.member.state.functions[one.key]
            if one.found_s is None and function.violations.open:
                one.found_s = second - given.at
    chosen = {(one.member.name, one.key) for one in came.slowed}
    came.others = sum(
        bool(each.violations.open) for member in members for key, each in member.state.functions.items()
        if (member.name, key) not in chosen
    )  # fmt: skip
    return came


def _slow(member: FleetMember, at: int, factor: float) -> Slowed | None:
    """Make one finished function of a host slower, and return which."""
    functions = member.state.functions
    total = total_of(functions.values())
    ordered = sorted(
        (one for one in functions.values() if one.state in FINISHED and not one.violations.open),
        key=lambda one: (-own_share(one, total), one.key),
    )
    if not ordered:
        return None
    rank = (7 * at) % len(ordered)
    key = ordered[rank].key
    planted = member.source.planted[key]
    grown = factor / (1 + planted.own * (factor - 1))
    more = replace(slower(planted, factor), own=planted.own * grown, inclusive=min(1.0, planted.inclusive * grown))
    member.source.planted[key] = more
    return Slowed(member=member, key=key, rank=rank)


if __name__ == "__main__":
    sys.exit(main())
