"""Assertions on time on CPU: what stays true of a function when its neighbours take the CPU away from it.

The same mining as for durations, over the same observations, of the part of each call that it was on a CPU. Only
functions whose calls leave their CPU have it; for all others both distributions are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specmine.mining.assertions import verification
from specmine.mining.assertions.checks import Check
from specmine.mining.assertions.verification import Expected
from specmine.mining.borders.inference import Inference, ObservationBorders, infer_stable_borders
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES, BUCKETS, bucket_of, shifted_edges
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

SUBJECT = "time on CPU"
NEARLY_ALL = 0.99
"""Share of the calls whose range is asserted ..."""
ROOM = 1.5
"""... widened by this factor at both ends: neighbours make caches colder and clocks slower, too."""
NOTABLE = 0.005
"""Share of the calls that leave their CPU from which time on CPU is mined for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCpu:
    """What is known of a function's time on CPU."""

    found: tuple[tuple[int, ObservationBorders], ...] = ()
    """Borders of each observation that is retained, by its end."""
    chain: Inference | None = None
    learned: Inference | None = None
    """What the observations said when they were first stable."""
    edges: tuple[int, ...] = ()
    """Its borders, and outside of them the range that nearly all calls kept to; first buckets, ascending."""
    class_calls: tuple[int, ...] = ()
    """Calls learned from, cut by these."""
    check: Check | None = None
    """Of the newest observation against that."""


def as_time_on_cpu(seen: Observation) -> Observation | None:
    """Return an observation of the same calls by their time on CPU; None if it is not known."""
    if seen.split is None:
        return None
    on_cpu = seen.split.on_cpu
    return replace(seen, histogram=on_cpu, calls=max(seen.calls, on_cpu.total), paths=(), split=None)


def off_cpu_share(seen: Observation) -> float:
    """Return a lower bound of the share of calls that left their CPU; 0 if it is not known."""
    if seen.split is None or not seen.timed:
        return 0.0
    return seen.split.on_cpu.without(seen.histogram).total / seen.timed


def observed(before: OnCpu | None, held: Sequence[Observation], settings: MiningSettings) -> OnCpu | None:
    """Return what is known after the newest of these observations of one kind, oldest first.

    Parameters
    ----------
    before : OnCpu, optional
        What was known before; None: nothing, or time on CPU was duration so far.
    held : sequence of Observation
        As many as stable borders come from, at most.
    settings : MiningSettings

    Returns
    -------
    OnCpu or None
        None while no call leaves its CPU.
    """
    if before is None and not any(off_cpu_share(each) >= NOTABLE for each in held):
        return None
    every = [own for each in held if (own := as_time_on_cpu(each)) is not None]
    if not every:
        return before
    before = before or OnCpu()
    by_end = dict(before.found)
    known = {each: by_end[each.end_ns] for each in every if each.end_ns in by_end}
    chain, borders = infer_stable_borders(every, known, before.chain, settings)
    known_now = replace(before, found=tuple((each.end_ns, borders[each]) for each in borders), chain=chain)
    if before.learned is None:
        return _learned(known_now, chain, every) if chain.stable else known_now
    return replace(known_now, check=_checked(before, every[-1], settings) or before.check)


def _learned(known: OnCpu, chain: Inference, every: Sequence[Observation]) -> OnCpu:
    """Return it with an assertion: classes by the stable borders, and the range of nearly all calls."""
    total = Histogram.sum(each.histogram for each in every)
    low, high = total.quantiles(((1 - NEARLY_ALL) / 2, (1 + NEARLY_ALL) / 2))
    ends = bucket_of([round(low / ROOM), round(high * ROOM)])
    borders = (border.edge for border in chain.borders)
    edges = tuple(sorted({*borders, max(1, int(ends[0])), min(BUCKETS - 1, int(ends[1]))}))
    calls = tuple(int(number) for number in total.class_counts(edges))
    return replace(known, learned=chain, edges=edges, class_calls=calls)


def range_seconds(known: OnCpu) -> tuple[float, float] | None:
    """Return the range that nearly all calls are asserted to keep to; None before it is learned."""
    if known.learned is None:
        return None
    low, high = (float(BUCKET_EDGES[edge]) - known.learned.bias_ns for edge in (known.edges[0], known.edges[-1]))
    return max(0.0, low) * 1e-9, max(0.0, high) * 1e-9


def _checked(known: OnCpu, seen: Observation, settings: MiningSettings) -> Check | None:
    """Check an observation against the assertion; None if it holds too few calls."""
    assert known.learned is not None
    if seen.timed < settings.minimum_calls:
        return None
    claim = Expected(formula=((),), class_calls=known.class_calls)
    edges = shifted_edges(known.edges, known.learned.bias_ns, seen.bias_ns)
    (one,) = verification.check(seen, [claim], edges, noise=known.learned.noise, settings=settings)
    return Check(subject=SUBJECT, verdict=one.verdict.value, calls=one.calls, p_value=one.p_value, shares=one.seen)
