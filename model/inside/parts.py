"""What happened inside timed calls: which other timed functions they called, and how long those took in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram

OTHERS = Frame("", "")
"""Stands for the callees of a call that are not told apart: more than the kernel keeps, or no longer known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalleeTime:
    """One callee in calls of the function; all by the bucket of the duration of the outer call."""

    callee: Frame
    calls: Histogram
    """Calls of the callee."""
    time_ns: Histogram
    """What they took, ns, less what their own probes add."""
    waiting_ns: Histogram = EMPTY
    """Of that, runnable without a CPU."""
    blocked_ns: Histogram = EMPTY
    """Of that, waiting for anything else."""


ANYWHERE = Frame("", "")
"""Among the places where a call was blocked: in itself, or in any callee."""
BLOCKED_PART = 1 / 8
"""A call counts as blocked if it was so for this part of its duration, at least."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalleeSet:
    """The calls of the function that reached the same callees, directly or through functions that are not timed.

    And that were blocked in the same places.
    """

    calls: Histogram
    """These calls, by their duration."""
    callees: tuple[CalleeTime, ...]
    """In order of their frames, each once."""
    blocked: tuple[Frame, ...] = ()
    """Where these calls were blocked for much of their time: ``ANYWHERE``, and callees within which they were."""
    blocked_ns: Histogram = EMPTY
    """For how long such calls were blocked, callees included; empty where ``blocked`` is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inside:
    """Calls of a function during which the same callees were timed."""

    calls: Histogram
    """All of them by duration, those without a timed callee included."""
    timed: tuple[Frame, ...]
    """Callees that were timed all the while; in order. What they took in these calls is known."""
    partly: tuple[Frame, ...] = ()
    """Callees that were timed for a part of it only; nothing may be said of them."""
    sets: tuple[CalleeSet, ...] = ()
    waiting_ns: Histogram = EMPTY
    """Time of these calls outside of all callees, runnable without a CPU, by duration."""
    blocked_ns: Histogram = EMPTY
    """The same, waiting for anything else."""
    split: bool = field(default=False)
    """It is known how calls spent their time; else no time is told to be waiting or blocked."""
