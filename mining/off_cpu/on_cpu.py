"""Assertions on time on CPU: they stay true when other programs take the CPU away from a function.

Time on CPU is mined like durations, from the same observations. Only functions whose calls leave their CPU need it;
for all others both distributions are equal.
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
"""... widened by this factor at both ends: other programs also make caches colder and clocks slower."""
NOTABLE = 0.005
"""Share of calls leaving their CPU from which time on CPU is mined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCpu:
    """State of the mining of a function's time on CPU."""

    found: tuple[tuple[int, ObservationBorders], ...] = ()
    """Borders of each retained observation, by its end; none once it was learned."""
    chain: Inference | None = None
    """The newest inference; none follows the one that was learned."""
    learned: Inference | None = None
    """The inference when it first was stable."""
    edges: tuple[int, ...] = ()
    """Its borders, and both ends of the range of nearly all calls; first buckets, ascending."""
    class_calls: tuple[int, ...] = ()
    """Calls of the assertion, by these edges."""
    check: Check | None = None
    """Check of the newest observation against the assertion."""


def as_time_on_cpu(observation: Observation) -> Observation | None:
    """Return an observation of the same calls by their time on CPU; None if it is not known."""
    if observation.split is None:
        return None
    on_cpu = observation.split.on_cpu
    return replace(observation, histogram=on_cpu, calls=max(observation.calls, on_cpu.total), paths=(), split=None)


def off_cpu_share(observation: Observation) -> float:
    """Return a lower bound of the share of calls that left their CPU; 0 if it is not known."""
    if observation.split is None or not observation.timed:
        return 0.0
    return observation.split.on_cpu.without(observation.histogram).total / observation.timed


def observed(before: OnCpu | None, held: Sequence[Observation], settings: MiningSettings) -> OnCpu | None:
    """Return the state after the newest of these observations of one kind, oldest first.

    Until something is learned borders are inferred from all of them; from then on the newest is only checked.

    Parameters
    ----------
    before : OnCpu, optional
        The state before; None: none, or so far time on CPU was equal to duration.
    held : sequence of Observation
        At most as many as stable borders are inferred from; not empty.
    settings : MiningSettings

    Returns
    -------
    OnCpu or None
        None while no call leaves its CPU.
    """
    if before is not None and before.learned is not None:
        newest = as_time_on_cpu(held[-1])
        check = _checked(before, newest, settings) if newest is not None else None
        return replace(before, check=check) if check is not None else before
    if before is None and not any(off_cpu_share(observation) >= NOTABLE for observation in held):
        return None
    every = [on_cpu for observation in held if (on_cpu := as_time_on_cpu(observation)) is not None]
    if not every:
        return before
    before = before or OnCpu()
    by_end = dict(before.found)
    known = {on_cpu: by_end[on_cpu.end_ns] for on_cpu in every if on_cpu.end_ns in by_end}
    chain, borders = infer_stable_borders(every, known, before.chain, settings)
    if chain.stable:
        return _learned(chain, every)
    return replace(before, found=tuple((on_cpu.end_ns, of_it) for on_cpu, of_it in borders.items()), chain=chain)


def _learned(chain: Inference, every: Sequence[Observation]) -> OnCpu:
    """Return the state with an assertion: classes by the stable borders, and the range of nearly all calls."""
    total = Histogram.sum(on_cpu.histogram for on_cpu in every)
    low, high = total.quantiles(((1 - NEARLY_ALL) / 2, (1 + NEARLY_ALL) / 2))
    ends = bucket_of([round(low / ROOM), round(high * ROOM)])
    borders = (border.edge for border in chain.borders)
    edges = tuple(sorted({*borders, max(1, int(ends[0])), min(BUCKETS - 1, int(ends[1]))}))
    calls = tuple(int(number) for number in total.class_counts(edges))
    return OnCpu(chain=chain, learned=chain, edges=edges, class_calls=calls)


def range_seconds(known: OnCpu) -> tuple[float, float] | None:
    """Return the asserted range of nearly all calls; None before there is an assertion."""
    if known.learned is None:
        return None
    low, high = (float(BUCKET_EDGES[edge]) - known.learned.bias_ns for edge in (known.edges[0], known.edges[-1]))
    return max(0.0, low) * 1e-9, max(0.0, high) * 1e-9


def _checked(known: OnCpu, observation: Observation, settings: MiningSettings) -> Check | None:
    """Check an observation against the assertion; None if it holds too few calls."""
    assert known.learned is not None
    if observation.timed < settings.minimum_calls:
        return None
    claim = Expected(formula=((),), class_calls=known.class_calls)
    edges = shifted_edges(known.edges, known.learned.bias_ns, observation.bias_ns)
    (one,) = verification.check(observation, [claim], edges, noise=known.learned.noise, settings=settings)
    return Check(subject=SUBJECT, verdict=one.verdict.value, calls=one.calls, p_value=one.p_value, shares=one.shares)
