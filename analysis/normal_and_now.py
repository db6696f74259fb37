"""The calls of the normal time beside those of now, for pictures: all of them, and behaviour by behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .documents import Entry
from .histogram_bins import Bin, histogram_bins

LEAST_CALLS = 200
"""Calls of the normal time and of now from which the two are drawn side by side."""
FEWEST_OF_A_BEHAVIOUR = 50
"""Calls of one behaviour from which they are drawn."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviourCalls:
    """The calls of one behaviour, for pictures."""

    behaviour: Mapping[str, Any]
    """What is stated of it."""
    before: list[Bin]
    """Of the normal time; [] where it is not told apart from now."""
    now: list[Bin]
    quantiles: Mapping[str, Any]
    """Of now."""


def behaviour_calls(known: Mapping[str, Any], entry: Entry) -> list[BehaviourCalls]:
    """Return the calls of each behaviour of a function that has several, in their order; [] where none are known.

    Parameters
    ----------
    known : mapping
        ``specmine.trend/1``, or {}.
    entry : mapping
        The function. What it holds itself stands where there are no windows.
    """
    stated = [each for each in entry.get("behaviours") or () if each.get("expression") not in (None, "true")]
    normal, now = (_parts(known.get(name) or {}) for name in ("normal", "now"))
    own_bias = float(entry.get("bias_seconds") or 0.0)
    found = []
    for each in stated if len(stated) > 1 else ():
        name = str(each["expression"])
        own = each.get("observed") or each.get("quantiles") or {}
        quantiles, bins = now.get(name) or normal.get(name) or (own, histogram_bins(each.get("histogram"), own_bias))
        before = normal[name][1] if name in normal and name in now else []
        found.append(BehaviourCalls(behaviour=each, before=before, now=bins, quantiles=quantiles))
    return found


def _parts(side: Mapping[str, Any]) -> dict[str, tuple[Mapping[str, Any], list[Bin]]]:
    """Return quantiles and bins of each behaviour that has enough calls."""
    return {
        str(each["expression"]): (
            each["quantiles"],
            histogram_bins(each["histogram"], float(side.get("bias_seconds") or 0.0)),
        )
        for each in side.get("behaviours") or ()
        if int(each["calls"]) >= FEWEST_OF_A_BEHAVIOUR
    }
