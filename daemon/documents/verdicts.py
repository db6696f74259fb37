"""The one verdict on each function and behaviour, which text, JSON, ``check`` and metrics share.

A violation that is open makes it violated, whatever the last window looks like, and nothing else does. Without one, the
class shares, the level and the time on CPU of the newest windows decide: it holds only if all of them that are asserted
do. A window that speaks against one of them leaves it unknown until the detector has decided.
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
    if is_learned_during(function):
        return Verdict.UNKNOWN
    checks = [Verdict(check.verdict) for check in function.verification.checks]
    running = [each for each in (_raw_on_cpu(function),) if each is not None]
    if level is None:
        return _undecided(Verdict.of_all([*checks, *running]))
    against = [each for each in (*checks, *running) if each is Verdict.VIOLATED]
    return _undecided(worst_of((level, *against)))


def verdict_of_behaviour(function: FunctionState, expression: str, level: Verdict | None) -> Verdict:
    """Return the verdict on one behaviour; ``level`` is that on its level, None if that is not asserted."""
    if any(each.expression in (expression, TRUE) for each in function.violations.open):
        return Verdict.VIOLATED
    if is_learned_during(function):
        return Verdict.UNKNOWN
    found = {check.subject: Verdict(check.verdict) for check in function.verification.checks}
    shares = found.get(expression)
    if level is None:
        return _undecided(shares or Verdict.UNKNOWN)
    return _undecided(worst_of((level, shares)) if shares is Verdict.VIOLATED else level)


def is_learned_during(function: FunctionState) -> bool:
    """Tell whether it was learned while another function was slower, so that nobody knows what is usual."""
    yardstick = function.violations.yardstick
    return yardstick is not None and bool(yardstick.during)


def verdict_on_cpu(function: FunctionState) -> Verdict | None:
    """Return the verdict on what is asserted of time on CPU; None if nothing is."""
    found = _raw_on_cpu(function)
    if found is not Verdict.VIOLATED or function.violations.open:
        return found
    return Verdict.UNKNOWN


def _raw_on_cpu(function: FunctionState) -> Verdict | None:
    on_cpu = function.inference.on_cpu
    return Verdict(on_cpu.check.verdict) if on_cpu is not None and on_cpu.check is not None else None


def _undecided(verdict: Verdict) -> Verdict:
    """Return the verdict where no violation is open: what speaks against an assertion leaves it unknown.

    Each check looks at a few windows by itself, at 1 %. Of hundreds of functions some window is always beyond that.
    """
    return Verdict.UNKNOWN if verdict is Verdict.VIOLATED else verdict


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
