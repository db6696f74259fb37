"""Which functions are known at all: found, named by the user, or callers of finished ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from specmine.daemon.config.settings import Settings
from specmine.model.function import Function
from specmine.model.globs import matches

from . import reasons
from .function import Knowledge, changed
from .phase import FINISHED, State
from .provisional import HELD_BEFORE, Estate, Inherited
from .state import ControllerState

ADMITTED_AT_ONCE = 4
"""So many functions named by the user are timed before their calls were counted."""
MOST_KNOWN = 5000
"""Functions remembered; the coldest candidates are forgotten first."""


def fresh(function: Function, settings: Settings, now_ns: int, estate: Callable[[], Estate]) -> Knowledge:
    """Begin to know a function."""
    hinted = matches(function, settings.watch)
    begun = Knowledge(function=function, since_ns=now_ns, hinted=hinted, inherited=estate().of(function))
    if matches(function, settings.ignore):
        return begun.moved(State.EXCLUDED, reasons.excluded(), now_ns)
    return begun


def admit_named(known: dict[str, Knowledge], now_ns: int) -> None:
    """Time the few functions that the user named at once: the kernel's bucket bounds what is not known yet."""
    named = [key for key, each in known.items() if each.hinted and each.state is State.CANDIDATE]
    if len(named) <= ADMITTED_AT_ONCE:
        for key in named:
            if known[key].rate is None and known[key].watch is None:
                known[key] = known[key].moved(State.WAITING, reasons.queued(0.0), now_ns)


def climb(known: dict[str, Knowledge], before: Mapping[str, Knowledge], state: ControllerState, now_ns: int) -> None:
    """Make the callers of functions that have just been finished candidates."""
    if state.settings.watch:
        return
    estate = cache(lambda: estate_of(known))
    for key in changed(known, before):
        each = known[key]
        if each.state not in FINISHED:
            continue
        if key in before and before[key].state in FINISHED and before[key].where is each.where:
            continue
        for caller, _ in each.where.callers:
            if caller in known:
                if not known[caller].climbed:
                    known[caller] = replace(known[caller], climbed=each.function.name)
            elif caller in state.functions:
                begun = fresh(state.functions[caller], state.settings, now_ns, estate)
                known[caller] = replace(begun, climbed=each.function.name)


def bounded(known: dict[str, Knowledge]) -> dict[str, Knowledge]:
    """Forget the coldest of too many."""
    if len(known) <= MOST_KNOWN:
        return known
    idle = [each for each in known.values() if each.state is State.CANDIDATE and each.watch is None]
    idle.sort(key=lambda each: (each.where.inclusive_ns, each.function.key))
    forgotten = {each.function.key for each in idle[: len(known) - MOST_KNOWN]}
    return {key: each for key, each in known.items() if key not in forgotten}


def estate_of(known: Mapping[str, Knowledge]) -> Estate:
    """Return what finished functions leave to those of the same name in other builds."""
    finished = sorted(
        (each for each in known.values() if each.state in FINISHED and each.learned is not None),
        key=lambda each: (each.since_ns, each.function.key),
    )
    return Estate(
        (
            each.function,
            Inherited(
                build_id=each.function.build_id,
                learned=each.learned,
                result=each.result if each.state is not State.SINGLE else None,
                before=each.timing[-HELD_BEFORE:] or each.paths[-HELD_BEFORE:],
            ),
        )
        for each in finished
        if each.learned is not None
    )
