"""CPU time that a program is kept from, as the kernel accounts it: no probe is needed for that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuLimit:
    """A control group with a limit on its CPU time, and its running totals."""

    group: str
    """What it is called; the same as long as it exists."""
    cpus: float
    """CPU time that it may use in a second of wall-clock time, seconds."""
    periods: int
    """Periods of the limit in which anything ran."""
    throttled: int
    """Those of them in which it was stopped, since it had used what it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuShortage:
    """What kept a program from CPU time since the last look, all as shares of 1."""

    program: str
    """Its name."""
    waiting: float | None = None
    """Of the time in which its threads could run they waited for a CPU so much; None: not known, or nothing ran."""
    throttled: float = 0.0
    """In so many of the periods of its CPU limit it was stopped; of several limits the one that did so most often."""
    limit_cpus: float = 0.0
    """That limit; 0: there is none."""
    steal: float = 0.0
    """The hypervisor took so much of the CPUs of the host."""
