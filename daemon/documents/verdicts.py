"""The one verdict on each function and behaviour, which text, JSON, ``check`` and metrics share.

A violation that is open makes it violated, whatever the last window looks like. Without one, the class shares, the
level and the time on CPU of the newest windows decide; it holds only if all of them that are asserted do.
"""

from __future__ import annotations

from collections.abc import Iterable

from specmine.daemon.controller.function import FunctionState
from specmine.mining.levels.verdict import level_verdict
from specmine.mining.levels.window import Window
from specmine.model.level import Level
from specmine.model.verdict import Verdict

TRUE = "true"
"""The expression of all calls."""
LASTING = 2
"""Windows in a row that make a violation of class shares one of the function."""
_DECIDING = ("p50", "p90")
"""Quantiles that must hold; the calls of a few windows hardly tell p99 from a change that matters."""


def verdict_of(function: FunctionState, level: Verdict | None) -> Verdict:
    """Return the verdict on a function.

    Parameters
    ----------
    function : FunctionState
    level : Verdict, optional
        On its levels; None if none is asserted.
    """
    if function.violations.open:
        return Verdict.VIOLATED
    on_cpu = function.inference.on_cpu
    checks = [Verdict(check.verdict) for check in function.verification.checks]
    running = [Verdict(on_cpu.check.verdict)] if on_cpu is not None and on_cpu.check is not None else []
    if level is None:
        return Verdict.of_all([*checks, *running])
    shares = [_outlasting(each, function) for each in checks if each is Verdict.VIOLATED]
    return worst_of((level, *shares, *(each for each in running if each is Verdict.VIOLATED)))


def verdict_of_behaviour(function: FunctionState, expression: str, level: Verdict | None) -> Verdict:
    """Return the verdict on one behaviour; ``level`` is that on its level, None if that is not asserted."""
    if any(each.expression in (expression, TRUE) for each in function.violations.open):
        return Verdict.VIOLATED
    found = {check.subject: Verdict(check.verdict) for check in function.verification.checks}
    shares = found.get(expression)
    if level is None:
        return shares or Verdict.UNKNOWN
    return worst_of((level, _outlasting(shares, function))) if shares is Verdict.VIOLATED else level


def _outlasting(shares: Verdict, function: FunctionState) -> Verdict:
    """Return the verdict on shares that one window violated: unknown until the next one does too.

    Each window is tested by itself, at 1 %. Of hundreds of functions some window is always beyond that.
    """
    lasting = function.verification.violations >= LASTING
    return Verdict.UNKNOWN if shares is Verdict.VIOLATED and not lasting else shares


def verdict_on(level: Level, windows: Iterable[Window]) -> Verdict:
    """Return the verdict on a level: violated if a quantile is, holds if the deciding ones that it has do."""
    held = list(windows)
    found = {
        name: level_verdict(level, held, name)[0] for name in ("p50", "p90", "p99") if level.quantile(name) is not None
    }
    if Verdict.VIOLATED in found.values():
        return Verdict.VIOLATED
    deciding = [found[name] for name in _DECIDING if name in found]
    return Verdict.HOLDS if deciding and set(deciding) == {Verdict.HOLDS} else Verdict.UNKNOWN


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what is known of several statements together: violated if one is, holds if all do, else unknown."""
    found = set(verdicts)
    if Verdict.VIOLATED in found:
        return Verdict.VIOLATED
    return Verdict.HOLDS if found == {Verdict.HOLDS} else Verdict.UNKNOWN
