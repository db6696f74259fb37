"""Assertions on time on CPU: what stays true of a function when its neighbours take the CPU away from it.

The same mining as for durations, over the same observations, of the part of each call that it was on a CPU. Only
functions whose calls leave their CPU have it; for all others both distributions are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specmine.mining.observation import Observation
from specmine.mining.settings import MiningSettings

from .conclusions import Check, Conclusion, Found, borders_of, check, conclude, no_finer
from .kept import Kept

SUBJECT = "time on CPU"
NOTABLE = 0.005
"""Share of the calls that leave their CPU from which time on CPU is mined for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCpu:
    """What is known of a function's time on CPU."""

    found: tuple[tuple[int, Found], ...] = ()
    """Borders of each observation held, by its end."""
    chain: Conclusion | None = None
    learned: Conclusion | None = None
    """What the observations said when they were first stable."""
    check: Check | None = None
    """Of the newest observation against that."""


def on_cpu_of(seen: Observation) -> Observation | None:
    """Return an observation of the same calls by their time on CPU; None if it is not known."""
    if seen.split is None:
        return None
    counts = seen.split.on_cpu
    return replace(seen, counts=counts, calls=max(seen.calls, int(counts.sum())), paths=(), split=None)


def left_share(seen: Kept) -> float:
    """Return the share of calls whose time on CPU is not their duration, at least; 0 if it is not known."""
    split = seen.whole_split()
    if split is None or not seen.timed:
        return 0.0
    moved = (split.on_cpu.astype("int64") - seen.counts.astype("int64")).clip(0)
    return int(moved.sum()) / seen.timed


def observed(before: OnCpu | None, held: Sequence[Kept], settings: MiningSettings) -> OnCpu | None:
    """Return what is known after the newest of these observations of one kind, oldest first.

    Parameters
    ----------
    before : OnCpu, optional
        What was known before; None: nothing, or time on CPU was duration so far.
    held : sequence of Kept
        As many as stable borders come from, at most.
    settings : MiningSettings

    Returns
    -------
    OnCpu or None
        None while no call leaves its CPU.
    """
    if before is None and not any(left_share(each) >= NOTABLE for each in held):
        return None
    every = [own for each in held if (own := on_cpu_of(each.whole())) is not None]
    if not every:
        return before
    before = before or OnCpu()
    known = dict(before.found)
    found = [
        known[each.end_ns] if each.end_ns in known else borders_of(each, no_finer(settings, [each])) for each in every
    ]
    chain = conclude(every, found, before.chain, settings)
    learned = before.learned or (chain if chain.stable else None)
    verdict = before.check
    if before.learned is not None and every[-1].timed >= settings.minimum_calls:
        (one,) = check(every[-1], None, before.learned, chain.chain > 0, settings)
        verdict = replace(one, subject=SUBJECT)
    return OnCpu(
        found=tuple((each.end_ns, borders) for each, borders in zip(every, found, strict=True)),
        chain=chain,
        learned=learned,
        check=verdict,
    )
