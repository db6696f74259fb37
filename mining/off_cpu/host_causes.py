"""The host cause of a class of calls: timeslices of other tasks, the pause of a CPU limit, timer ticks, or none.

A preempted call waits while other tasks use whole timeslices. Its wait is a multiple of the host's timeslice. A
throttled call waits for the rest of the limit's period (M. Hauck, thesis, sections 4.3.1 and 7). Experiments derive
the slice and the limit; they are never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.host.environment import Environment

WITHIN = 0.05
"""A wait counts as k slices, or as the pause of a limit, if it differs by at most this share of one of them."""
MOST_SLICES = 16
MOSTLY = 0.8
"""Share of an excess from which one kind of time is its cause."""
NOTABLE = 0.5
"""Share of its time from which even the main class is called blocked or waiting."""
WOKEN = 0.02
"""Share of its time from which blocking is common in a class."""
_TICKS = "timer ticks: within the noise of this host"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTimes:
    """Times that a host adds to durations, as derived on it; 0: not known, so never named as a cause."""

    slice_ns: float = 0.0
    """How long a task waits while another one runs."""
    slice_low_ns: float = 0.0
    slice_high_ns: float = 0.0
    """Its 95 % interval."""
    pause_ns: float = 0.0
    """How long a CPU limit stops a single thread: period less quota."""
    tick_ns: float = 0.0
    """Duration of one timer interrupt."""


def host_times(known: Environment) -> HostTimes:
    """Return the times of a host's environment that affect durations."""
    length = known.slice_seconds or 0.0
    measured = known.properties.get("slice_seconds")
    low, high = (measured.interval if measured else None) or (length, length)
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
        Shares of its time: running, waiting, blocked.
    excess : ndarray of float64, shape (3,), or None
        Its excess over the main class in the same three parts, ns; None for the main class.
    waited : (float, float, float)
        Wait of its calls for a CPU, ns: median, and its interval.
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
        return "blocked", 0, f"blocked {100 * shares[2]:.0f} %"
    if shares[1] >= NOTABLE:
        return "waiting", 0, f"waiting for a CPU {100 * shares[1]:.0f} %"
    return "", 0, ""


def _waited(waited: tuple[float, float, float], host: HostTimes, *, blocked: float) -> tuple[str, int, str]:
    """Name a wait for a CPU: whole slices, the pause of a limit, or neither; calls also wait after a wake-up."""
    middle, low, high = waited
    causes: list[tuple[float, str, int, str]] = []
    if host.slice_ns:
        times = round(middle / host.slice_ns)
        if 1 <= times <= MOST_SLICES and _meets(times * host.slice_low_ns, times * host.slice_high_ns, low, high, host):
            text = f"+{times} timeslice{'' if times == 1 else 's'}: preempted"
            causes.append((abs(middle / (times * host.slice_ns) - 1), "slices", times, text))
    if host.pause_ns and low * (1 - WITHIN) <= host.pause_ns <= high * (1 + WITHIN):
        causes.append((abs(middle / host.pause_ns - 1), "quota", 0, "the pause of the CPU limit"))
    if causes:
        _, cause, times, text = min(causes)
        return cause, times, text
    if blocked >= WOKEN:
        return "waiting", 0, "waited for a CPU, preempted or after a wake-up"
    return "preempted", 0, "preempted" if not host.slice_ns else "preempted, by no whole number of timeslices"


def _meets(low_ns: float, high_ns: float, low: float, high: float, host: HostTimes) -> bool:
    """Return whether the interval of a wait overlaps that of so many slices, with a share of one slice as tolerance."""
    allowed = WITHIN * host.slice_ns
    return low - allowed <= high_ns and high + allowed >= low_ns
