"""What must be true of a watched run: same end, balanced books, no impossible duration; and what was gained by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram
from tests.support.chaos_hostile import Target
from tests.support.chaos_watching_targets import Outcome

ENOUGH = 20
"""Timed calls from which on a function counts as timed."""
TOLD = 0.99
"""Part of the timed calls that observations must hold: of those by path a few in a thousand are missing, presumably
counts that are taken out of the kernel at the very moment when a call ends."""
SHORT = 0.9
"""A duration below this part of the least possible one is not the call's: the rest is for the bias that the probes
add and the correction for it, which are a few microseconds."""
LONG = 3.0
"""Times the least one that the median may be on a quiet host: other targets and the probes share the CPUs."""


def faults(target: Target, alone: Outcome, seen: Outcome, *, quiet: bool) -> list[str]:
    """Compare one watched run with the unwatched one and with the target's own counts; [] if all is well.

    Whether durations are too long is judged where the host is ``quiet`` only: neighbours lengthen them.
    """
    found = [*seen.troubles]
    same = seen.output == alone.output if target.fixed else seen.truth.keys() == alone.truth.keys()
    if not same or seen.status != alone.status:
        found.append(f"ended as {seen.status} {seen.output!r}, unwatched as {alone.status} {alone.output!r}")
    if seen.left:
        found.append(f"probes left: {seen.left}")
    if target.by_site and not set(seen.ways.values()) <= {"sites"}:
        found.append(f"return addresses were replaced: {seen.ways}")
    for name, code in seen.refused.items():
        if target.cannot.get(name) != code:
            found.append(f"{name} was refused: {code}")
    for name in seen.counted:
        if name not in seen.refused or seen.ways[name] == "count":
            found += _in_books(target, seen, name)
            found += _in_durations(target, seen, name, quiet=quiet)
    return found


def _in_books(target: Target, seen: Outcome, name: str) -> list[str]:
    counted, made = seen.counted[name], seen.truth.get(name, 0)
    calls, left_open = counted["calls"] + counted["inner"], seen.open(name)
    told = seen.durations[name].total
    # windows in which a recursion was entered over unknown return sites are thrown away
    least = 0.0 if counted["inner"] and counted["unlearnt"] else TOLD * counted["timed"]
    checks = {
        f"{calls} calls were seen of {made}": calls == made if target.exact else 0 < calls <= made,
        f"{left_open} calls are in no column": 0 <= left_open <= (made if name in target.may_stay_open else 0),
        f"{told} durations were told": least <= told <= counted["timed"] or not target.exact,
    }
    return [f"{name}: {text}: {counted}" for text, good in checks.items() if not good]


def _in_durations(target: Target, seen: Outcome, name: str, *, quiet: bool) -> list[str]:
    least, counts = seen.least_ns.get(name), seen.durations[name]
    if least is None or not counts.total:
        return []
    counted = seen.counted[name]
    subtracted_ns = counted["nested_ns"] / max(1, counted["timed"])  # for other probes: an estimate, too much at most
    short, middle = shorter(counts, SHORT * least - subtracted_ns), median(counts)
    found = [f"{name}: {short} of {counts.total} durations cannot be: below {least} ns"] if short else []
    if quiet and middle > LONG * least and name not in target.waits:
        found.append(f"{name}: a median of {middle:.0f} ns where {least} were worked")
    return found


def shorter(histogram: Histogram, ns: float) -> int:
    """Return how many durations are certainly shorter: their whole bucket is."""
    return int(histogram.dense[BUCKET_EDGES[1:] <= ns].sum())


def median(histogram: Histogram) -> float:
    """Return the lower edge of the bucket that holds the median, ns."""
    return float(BUCKET_EDGES[np.searchsorted(np.cumsum(histogram.dense), (histogram.total + 1) // 2)])


def gained(runs: Sequence[tuple[Target, Outcome]]) -> tuple[int, list[str], Counter[str]]:
    """Return how many functions that can be timed safely were timed, those that were not, and refusals by reason."""
    timed, missed = 0, []
    reasons: Counter[str] = Counter()
    for target, seen in runs:
        reasons.update(seen.refused.values())
        for name in target.functions:
            if name in target.cannot or name in target.rare:
                continue
            if name not in seen.refused and seen.counted.get(name, {}).get("timed", 0) >= ENOUGH:
                timed += 1
            else:
                missed.append(f"{target.name}.{name}")
    return timed, missed, reasons


def row(target: Target, runs: Sequence[Outcome], passed: int) -> str:
    """Return one line of the table: all runs of a target together."""
    sums = {what: sum(each.total(what) for each in runs) for what in runs[0].counted[next(iter(runs[0].counted))]}
    ways = "+".join(sorted({way for each in runs for way in each.ways.values()}))
    left_open = sum(each.open(name) for each in runs for name in each.counted)
    ended = sums["timed"] + sums["unlearnt"] + sums["lost"]
    share = f"{sums['timed'] / ended:.0%}" if ended and sums["timed"] else "-"
    short = sum(
        shorter(each.durations[name], SHORT * least)
        for each in runs
        for name, least in each.least_ns.items()
        if name in each.durations
    )
    least = any(each.least_ns for each in runs)
    cells = (target.name, ways, f"{passed} of {len(runs)}", sums["calls"], sums["inner"], sums["timed"], share)
    rest = (sums["unlearnt"], sums["dropped"], sums["lost"], left_open, short if least else "-")
    reasons = sorted({f"{name} {code}" for each in runs for name, code in each.refused.items()})
    return "| " + " | ".join(map(str, (*cells, *rest, ", ".join(reasons) or "-"))) + " |"


HEADER = (
    "| target | way | runs passed | calls | inner | timed | share | unlearnt | abandoned | lost | open | impossible"
    " | refused |"
)
