"""Builds that no process maps any more: their functions leave the plans, and in time what is known of them. Pure.

A host on which a service is deployed each hour sees thousands of builds a year. What is stated of a function comes from
its newest builds; the store has the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED
from specmine.daemon.controller.state import ControllerState
from specmine.model.batch import Batch
from specmine.model.function import Function

BEGINNING_NS = 10 * SECOND
"""So long after the start it is not known yet what all processes map."""
KEPT = 8
"""Builds of a function that are remembered although nothing maps them, the newest."""
SWEEP_NS = 10 * SECOND
Name = tuple[str, str]


def with_builds(mapped: frozenset[str], batch: Batch) -> frozenset[str]:
    """Return the builds that processes map, after a batch."""
    if not batch.mapped and not batch.unmapped:
        return mapped
    return mapped.difference(batch.unmapped).union(batch.mapped)


def away(state: ControllerState) -> frozenset[str]:
    """Return the keys of the functions that no process maps; none where the source does not tell what is mapped."""
    if not state.mapped or state.now_ns - state.began_ns < BEGINNING_NS:
        return frozenset()
    return frozenset(key for key, each in state.functions.items() if each.function.build_id not in state.mapped)


def swept(state: ControllerState) -> ControllerState:
    """Return the state without what is known of builds that no process maps, but for the newest of each function.

    The source tells of their functions again should they come back. What is still measured, or violated, stays until it
    is not, and so do all functions of a build that others are measured by: whether code differs is seen there.
    """
    if state.now_ns - state.swept_ns < SWEEP_NS:
        return state
    state = replace(state, swept_ns=state.now_ns)
    unmapped = away(state)
    forgotten = _forgotten({key: state.functions[key] for key in unmapped}, state.functions)
    functions = {key: each for key, each in state.functions.items() if key not in forgotten}
    catalog = {key: each for key, each in state.catalog.items() if key in functions or _is_mapped(each, state)}
    if len(functions) == len(state.functions) and len(catalog) == len(state.catalog):
        return state
    return replace(state, functions=functions, catalog=catalog)


def _is_mapped(function: Function, state: ControllerState) -> bool:
    return function.build_id in state.mapped or not state.mapped


def _forgotten(unmapped: Mapping[str, FunctionState], functions: Mapping[str, FunctionState]) -> frozenset[str]:
    """Return which of these functions are forgotten."""
    may_go = {key: each for key, each in unmapped.items() if each.probe.watch is None and not each.violations.standing}
    by_name: dict[Name, list[FunctionState]] = defaultdict(list)
    for each in may_go.values():
        if each.history.totals.observations:
            by_name[each.function.name, each.function.module].append(each)
    kept = {
        each.key
        for versions in by_name.values()
        for each in sorted(versions, key=lambda one: (one.state in FINISHED, _seen_ns(one), one.key))[-KEPT:]
    }
    stay = (each for key, each in functions.items() if key in kept or key not in may_go)
    measured_by = {yardstick.build_id for each in stay if (yardstick := each.violations.yardstick) is not None}
    return frozenset(
        key for key, each in may_go.items() if key not in kept and each.function.build_id not in measured_by
    )


def _seen_ns(function: FunctionState) -> int:
    """Return the end of its newest window, else since when it stands where it does."""
    return max((one.end_ns for one in function.history.longest[-1:]), default=function.phase.since_ns)
