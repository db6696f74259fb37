"""The calls of the normal time beside those of now, for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .documents import Entry
from .histogram_bins import Bin, histogram_bins

LEAST_CALLS = 200
"""Calls of the normal time and of now from which the two are drawn side by side."""


def normal_and_now(known: Mapping[str, Any], entry: Entry) -> tuple[list[Bin], list[Bin]]:
    """Return the histograms of the normal time and of now; of all calls as now where one of the two holds too few.

    Parameters
    ----------
    known : mapping
        ``specmine.trend/1``, or {}.
    entry : mapping
        The function.
    """
    bias = float(entry.get("bias_seconds") or 0.0)
    sides = [known.get(name) or {} for name in ("normal", "now")]
    if any(int(each.get("calls") or 0) < LEAST_CALLS for each in sides):
        return [], histogram_bins(entry.get("histogram"), bias)
    normal, now = (histogram_bins(each["histogram"], float(each["bias_seconds"])) for each in sides)
    return normal, now
