"""What a class of calls waited for, by name: whole turns of others, the pause of a limit, ticks, or none of these.

A preempted call waits for whole turns of others, so what it waited is a multiple of the host's timeslice; a throttled
one waits for the rest of the limit's period (M. Hauck, thesis, sections 4.3.1 and 7; the slice and the limit are
derived by experiments, never assumed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.host_environment import Environment

WITHIN = 0.05
"""A wait is k slices, or the pause of a limit, if it differs by no more than this share of one of them."""
MOST_SLICES = 16
MOSTLY = 0.8
"""An excess is of one kind if so much of it is."""
NOTABLE = 0.5
"""Share of a class' time from which it is called blocked or waiting although it is the main class."""
WOKEN = 0.02
"""Share of a class' time from which blocking is no exception in it."""
_TICKS = "timer ticks: within the noise of this host"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTimes:
    """What the host does to durations, as derived on it; 0: not known, nothing is named after it."""

    slice_ns: float = 0.0
    """How long a task waits while another has its turn."""
    slice_low_ns: float = 0.0
    slice_high_ns: float = 0.0
    """Its 95 % interval."""
    pause_ns: float = 0.0
    """How long a limit on CPU time holds a single thread up: period less quota."""
    tick_ns: float = 0.0
    """What one timer interrupt takes."""


def host_times(known: Environment) -> HostTimes:
    """Return what of a host's environment shows in durations."""
    length = known.slice_seconds or 0.0
    told = known.properties.get("slice_seconds")
    low, high = (told.interval if told else None) or (length, length)
    pause = known.period_seconds - known.quota_seconds if known.period_seconds and known.quota_seconds else 0.0
    return HostTimes(
        slice_ns=length * 1e9,
        slice_low_ns=min(low, length) * 1e9,
        slice_high_ns=(max(high, length) if length else 0.0) * 1e9,
        pause_ns=max(0.0, pause) * 1e9,
        tick_ns=(known.tick_cost_seconds or 0.0) * 1e9,
    )


def named(
    shares: NDArray[np.float64],
    excess: NDArray[np.float64] | None,
    waited: tuple[float, float, float],
    host: HostTimes,
) -> tuple[str, int, str]:
    """Return cause, slices and label of a class.

    Parameters
    ----------
    shares : ndarray of float64, shape (3,)
        Of its time: running, waiting, blocked.
    excess : ndarray of float64, shape (3,), or None
        The same of its excess over the main class, ns; None for the main class.
    waited : (float, float, float)
        What its calls waited for a CPU, ns: median, and its interval.
    host : HostTimes
        As derived on the host.

    Returns
    -------
    (str, int, str)
        As in ``Part``.
    """
    more = float(excess.sum()) if excess is not None else 0.0
    of = excess / more if excess is not None and more > 0 else np.zeros(3)
    if of[1] >= MOSTLY:
        return _waited(waited, host, blocked=float(shares[2]))
    if of[0] >= MOSTLY:
        return ("ticks", 0, _TICKS) if more <= 2 * (1 + WITHIN) * host.tick_ns else ("", 0, "")
    if of[2] >= MOSTLY or shares[2] >= NOTABLE:
        return "blocked", 0, f"blocked {shares[2]:.0%}"
    if shares[1] >= NOTABLE:
        return "waiting", 0, f"waiting for a CPU {shares[1]:.0%}"
    return "", 0, ""


def _waited(waited: tuple[float, float, float], host: HostTimes, *, blocked: float) -> tuple[str, int, str]:
    """Name a wait for the CPU: whole slices, the pause of a limit, or neither; woken calls wait, too."""
    middle, low, high = waited
    found: list[tuple[float, str, int, str]] = []
    if host.slice_ns:
        times = round(middle / host.slice_ns)
        if 1 <= times <= MOST_SLICES and _meets(times * host.slice_low_ns, times * host.slice_high_ns, low, high, host):
            text = f"+{times} timeslice{'' if times == 1 else 's'}: preempted"
            found.append((abs(middle / (times * host.slice_ns) - 1), "slices", times, text))
    if host.pause_ns and low * (1 - WITHIN) <= host.pause_ns <= high * (1 + WITHIN):
        found.append((abs(middle / host.pause_ns - 1), "quota", 0, "the pause of the CPU limit"))
    if found:
        _, cause, times, text = min(found)
        return cause, times, text
    if blocked >= WOKEN:
        return "waiting", 0, "waited for a CPU, preempted or after a wake-up"
    return "preempted", 0, "preempted" if not host.slice_ns else "preempted, by no whole number of timeslices"


def _meets(low_ns: float, high_ns: float, low: float, high: float, host: HostTimes) -> bool:
    """Tell whether what was waited may be so many slices; one slice's part of them is allowed for the rest."""
    allowed = WITHIN * host.slice_ns
    return low - allowed <= high_ns and high + allowed >= low_ns
