"""What is known around a violation, from which its cause is decided."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.model.violation import Direction, Growth

from .usual import Usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A violated function that this one calls, or waits for."""

    key: str
    name: str
    part: float | None
    """Share of the difference that it has; None: not known."""
    is_waited_for: bool = False
    """Its calls, in other threads, end the waits of this one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known around a violation."""

    direction: Direction
    usual: Usual
    now: Usual
    new_paths: bool = False
    """It is about calls over paths that were not learned, not about how long calls take."""
    quantile: str = ""
    """The one that moved most of all calls; '' where the violation is about some calls only."""
    typical: bool = False
    """The violation is about the median of some calls: their slowest say nothing of it."""
    new_build: str = ""
    """The build that is judged by another one's yardstick; '' if it is the same build."""
    code: str = "same"
    """Machine code against that build: same, changed, unknown."""
    changed_callees: tuple[str, ...] = ()
    """Names of functions that it calls whose machine code changed."""
    started: str = ""
    """What started shortly before, in words; '' if nothing did."""
    callee: Callee | None = None
    common: bool = False
    """Most functions of the host are slower at once."""
    mix: float | None = None
    """Largest change of the share of a call path; None: not known."""
    waits: Growth | None = None
    """The wait that has most of the difference, if it is known."""
    inside: Growth | None = None
    """The callee that has most of it, by what was timed in its calls."""
    shortage: str = ""
    """What keeps its program from CPU time, in words, or that nothing does more than usual; '' if it is not known."""
    short_of_cpu: bool = False
    """Its program is kept from CPU time more than usual ..."""
    throttled: bool = False
    """... by its CPU limit."""
    supplied: bool = False
    """It is known that its program gets CPU time as usual."""
    busy: str = ""
    """How many CPUs the watched programs keep busy themselves, in words; '' if that is not much, or as usual."""
