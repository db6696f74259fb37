"""What experiments found on this host that shows in durations, for the labels of classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmine.experiments.environment import environment_of
from specmine.experiments.facts import read_host
from specmine.experiments.journal import read_journal
from specmine.experiments.vocabulary import Host
from specmine.mining.waiting import HostTimes


def host_times(entries: Mapping[str, Any], host: Host) -> HostTimes:
    """Return what still holds for the host of a journal's entries; what was never derived is 0."""
    known = environment_of(entries, host)
    interval = (((entries.get("timeslice") or {}).get("valid") or {}).get("interval") or (0.0, 0.0))[:2]
    length = known.slice_seconds or 0.0
    low, high = (float(each) for each in interval) if length else (0.0, 0.0)
    limited = bool(known.quota_seconds and known.period_seconds)
    return HostTimes(
        slice_ns=length * 1e9,
        slice_low_ns=min(low or length, length) * 1e9,
        slice_high_ns=max(high, length) * 1e9,
        pause_ns=max(0.0, known.period_seconds - known.quota_seconds) * 1e9
        if limited and known.period_seconds and known.quota_seconds
        else 0.0,
        tick_ns=(known.tick_cost_seconds or 0.0) * 1e9,
    )


def times_of_this_host(journal: Path) -> HostTimes:
    """Return the same from a journal on disk, of the host and limits that this process runs under."""
    entries = read_journal(journal).entries
    return host_times(entries, read_host()) if entries else HostTimes()
