"""How long the calls of the last minutes took: quantiles without ranges, cheap enough for every scrape.

What was computed for a state of a function is kept until that state changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from operator import is_

from specmine.daemon.controller.function import FunctionState
from specmine.mining.assertions.behaviour_windows import windows_of_formula
from specmine.mining.assertions.expression import is_inside, shared_names
from specmine.mining.levels.estimate import plain_level
from specmine.mining.levels.window import windows_of
from specmine.model.level import Level
from specmine.model.observation import Observation

RECENT_NS = 300_000_000_000
"""Windows that ended within so long count; if there is none, the newest one."""


AGED_NS = 30_000_000_000
"""Levels are computed anew after so long without a new window, since older ones cease to count."""
_MOST_KNOWN = 4096
_known: dict[str, tuple[tuple[object, object], int, dict[str, Level]]] = {}
"""Levels by the key of the function, with what they follow from and when: a scrape comes every few seconds."""


def keep(functions: AbstractSet[str]) -> None:
    """Forget what was computed of all functions but these, by key: it holds windows."""
    for key in _known.keys() - functions:
        _known.pop(key, None)


def observed_levels(function: FunctionState, now_ns: int) -> dict[str, Level]:
    """Return the level of all calls, and of each behaviour of which calls were observed, by expression."""
    basis = function.history, function.explanation.result
    known = _known.get(function.key)
    if known is not None and all(map(is_, known[0], basis)) and 0 <= now_ns - known[1] < AGED_NS:
        return known[2]
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    levels = _computed(function, now_ns)
    _known[function.key] = basis, now_ns, levels
    return levels


def _computed(function: FunctionState, now_ns: int) -> dict[str, Level]:
    result, history = function.explanation.result, function.history
    every = (*history.timing, *history.paths)
    levels = {"true": plain_level(windows_of(_recent(every, now_ns)))}
    if result is None:
        return levels
    shared = shared_names(each.path for each in result.paths)
    for behaviour in result.behaviours:
        told = _recent(every if is_inside(behaviour.formula) else history.paths, now_ns)
        if told:
            levels[behaviour.expression] = plain_level(windows_of_formula(told, behaviour.formula, shared))
    return levels


def _recent(observations: Sequence[Observation], now_ns: int) -> Sequence[Observation]:
    newest = sorted(observations, key=lambda one: one.end_ns)
    return [one for one in newest if now_ns - one.end_ns <= RECENT_NS] or newest[-1:]
