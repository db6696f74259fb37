"""Levels as JSON: quantiles of a function, its behaviours and its classes, each with its normal range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED
from specmine.mining.assertions.behaviour_windows import windows_of_formula
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import shared_names
from specmine.mining.levels.estimate import LEAST_WINDOWS, level_of, plain_level
from specmine.mining.levels.window import Window, windows_of, windows_of_class
from specmine.mining.off_cpu.on_cpu import as_time_on_cpu
from specmine.model.level import PROBABILITIES, Level
from specmine.model.observation import Observation
from specmine.model.verdict import Verdict

from .data import Data
from .verdicts import TRUE, verdict_on, worst_of

RECENT = 5
"""Newest windows that say how calls are now, once it is asserted how they usually are."""


Span = tuple[int, int] | None
"""First start and last end of some windows, CLOCK_MONOTONIC; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The levels of one function: those asserted, or before that those of all windows."""

    whole: Level
    behaviours: tuple[Level, ...] = ()
    """In the order of the explanation."""
    classes: tuple[Level, ...] = ()
    """The fastest class first; none where there is only one."""
    on_cpu: Level | None = None
    """Of the time on CPU; None where it is not known."""
    observed: Level | None = None
    """Of the newest windows; None while nothing is asserted."""
    observed_behaviours: tuple[Level, ...] = ()
    observed_ns: tuple[Span, ...] = ()
    """When the windows of ``observed`` began and ended, then those of each behaviour."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """On the level of each behaviour asserted, and of all calls together (``true``)."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on all levels asserted; None while there are none."""
        return worst_of(self.verdicts.values()) if self.verdicts else None


_MOST_KNOWN = 4096
_known: dict[str, tuple[tuple[object, ...], Levels]] = {}
_learned: dict[str, tuple[tuple[object, ...], Levels]] = {}
"""Levels by the key of the function, with what they follow from: a document is made every few seconds. What was learned
of a finished function is computed once; the observed levels and the verdicts once a window. They hold windows, so
``keep`` forgets functions that are there no more."""


def keep(functions: AbstractSet[str]) -> None:
    """Forget what was computed of all functions but these, by key."""
    for known in (_known, _learned):
        for key in known.keys() - functions:
            known.pop(key, None)  # several threads ask


def levels_of(function: FunctionState, data: Data | None) -> Levels:
    """Return the levels of the windows that are retained of a function; computed once for each state of it."""
    finished = function.state in FINISHED
    history, yardstick = function.history, function.violations.yardstick
    learned = _cached(
        _learned,
        function.key,
        (function.inference.learned, function.explanation.result, None if finished else history),
        lambda: _retained(function, data),
    )
    if data is None or not finished:
        return learned
    return _cached(_known, function.key, (learned, history, yardstick), lambda: _judged(function, data, learned))


def _cached(
    known: dict[str, tuple[tuple[object, ...], Levels]], key: str, basis: tuple[object, ...], make: Callable[[], Levels]
) -> Levels:
    before = known.get(key)
    if before is not None and all(one is other for one, other in zip(before[0], basis, strict=True)):
        return before[1]
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[key] = basis, make()
    return known[key][1]


def levels_in(
    held: Sequence[Observation], edges: Sequence[int] = (), bias_ns: float = 0.0, result: Explanation | None = None
) -> Levels:
    """Return the levels of some windows, and those of their classes and behaviours."""
    return Levels(
        whole=_level_of(windows_of(held)),
        behaviours=tuple(_level_of(windows) for _, windows in _behaviours(result, held)),
        classes=tuple(
            _level_of(windows_of_class(held, edges, number, bias_ns))
            for number in range(len(edges) + 1 if edges else 0)
        ),
    )


def _retained(function: FunctionState, data: Data | None) -> Levels:
    """Return the levels of all windows that are retained."""
    held: Sequence[Observation] = data.held if data is not None else function.history.longest
    on_cpu = [one for each in held if (one := as_time_on_cpu(each)) is not None]
    edges, bias_ns = (data.edges, data.bias_ns) if data is not None else ((), 0.0)
    found = levels_in(held, edges, bias_ns, function.explanation.result)
    asserted_on_cpu = on_cpu and function.inference.on_cpu is not None
    return replace(found, on_cpu=_level_of(windows_of(on_cpu))) if asserted_on_cpu else found


def _level_of(windows: Sequence[Window]) -> Level:
    """Return the level of some windows; where they are too few for a range none is looked for."""
    return level_of(windows) if len(windows) >= LEAST_WINDOWS else plain_level(windows)


def _judged(function: FunctionState, data: Data, learned: Levels) -> Levels:
    """Return the levels asserted, what is observed now, and the verdicts.

    The yardstick asserts; without one it is what was learned when the function was found stable.
    """
    yardstick = function.violations.yardstick
    asserted = yardstick.levels if yardstick is not None else {}
    newest = sorted((*function.history.timing, *function.history.paths), key=lambda one: one.end_ns)[-RECENT:]
    parts = [(TRUE, windows_of(newest)), *_behaviours(function.explanation.result, data.held[-RECENT:])]
    levels = [
        asserted.get(name, level) for (name, _), level in zip(parts, (learned.whole, *learned.behaviours), strict=True)
    ]
    return replace(
        learned,
        whole=levels[0],
        behaviours=tuple(levels[1:]),
        observed=plain_level(parts[0][1]),
        observed_behaviours=tuple(plain_level(windows) for _, windows in parts[1:]),
        observed_ns=tuple(span_of(windows) for _, windows in parts),
        verdicts={
            name: verdict_on(level, windows) for (name, windows), level in zip(parts, levels, strict=True) if windows
        },
    )


def _behaviours(result: Explanation | None, held: Sequence[Observation]) -> list[tuple[str, tuple[Window, ...]]]:
    shared = shared_names(each.path for each in result.paths) if result else frozenset()
    return [
        (each.expression, windows_of_formula(held, each.formula, shared))
        for each in (result.behaviours if result else ())
    ]


def span_of(windows: Sequence[Window | Observation]) -> Span:
    """Return when the first of some windows began and the last one ended."""
    held = [one for one in windows if one.histogram.total]
    return (min(one.start_ns for one in held), max(one.end_ns for one in held)) if held else None


def level_facts(level: Level) -> dict[str, Any]:
    """Return the quantiles of a level and what they rest on."""
    return {"quantiles": quantiles(level), "lifetimes": level.lifetimes, "windows": level.windows}


def quantiles(level: Level) -> dict[str, Any]:
    """Return the quantiles of a level in s by name; those are left out for which there are too few calls."""
    known = {name: level.quantile(name) for name in PROBABILITIES}
    return {
        name: {"seconds": each.ns * 1e-9, "low": _seconds(each.low_ns), "high": _seconds(each.high_ns)}
        for name, each in known.items()
        if each is not None
    }


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns * 1e-9
