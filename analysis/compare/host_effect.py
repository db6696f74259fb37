"""What the hosts have to do with a comparison: in what they differ, and what of a change they explain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.attribution import ChangeAttribution
from specmine.mining.regression.host_effect import HostEvidence, host_evidence
from specmine.mining.regression.sample import histogram_of
from specmine.model.histogram import Histogram
from specmine.model.host.environment import Environment, common, differences


def environments_document(
    base: Mapping[Any, Sequence[FunctionLifetime]], new: Mapping[Any, Sequence[FunctionLifetime]]
) -> dict[str, Any]:
    """Return what is known of both sides' hosts, and in what they differ."""
    sides = [_environment(each for group in side.values() for each in group) for side in (base, new)]
    was, now = (each or Environment() for each in sides)
    return {
        "base": sides[0].document() if sides[0] else None,
        "new": sides[1].document() if sides[1] else None,
        "differences": [{"property": each.name, "base": each.base, "new": each.new} for each in differences(was, now)],
    }


def host_of(base: Sequence[FunctionLifetime], new: Sequence[FunctionLifetime]) -> HostEvidence:
    """Return what the hosts explain of how durations differ."""
    return host_evidence(_pooled(base), _pooled(new), (_environment(base), _environment(new)))


def host_cause(explained: ChangeAttribution, found: HostEvidence | None) -> dict[str, Any]:
    """Return cause and reason of a change if the host explains all of it, {} if not."""
    if found is None or not found.explained or explained.cause == "load":
        return {}
    return {"cause": "host", "reason": found.reason}


def _environment(observed: Iterable[FunctionLifetime]) -> Environment | None:
    """Return what is known of the hosts of some lifetimes: the newest vector of each, what they have in common."""
    newest: dict[str, Environment] = {}
    for each in sorted(observed, key=lambda one: one.start_ns):
        if each.environment is not None:
            newest[each.host] = each.environment
    return common([newest[host] for host in sorted(newest)])


def _pooled(observed: Sequence[FunctionLifetime]) -> Histogram:
    return Histogram.sum(histogram_of(each.sample) for each in observed)
