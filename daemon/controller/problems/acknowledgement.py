"""A person says that a violation is known: it closes, and the present state is the yardstick from now on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState
from specmine.model.violation import ViolationState


def acknowledged(
    function: FunctionState, ids: Collection[str], by: str, comment: str, now_ns: int, settings: Settings
) -> FunctionState:
    """Return a function whose violations of these ids are acknowledged; one without any stays as it is.

    Parameters
    ----------
    function : FunctionState
    ids : collection of str
    by, comment : str
        Who says so, and why.
    now_ns : int
    settings : Settings
    """
    known = [one for one in function.violations.open if one.id in ids]
    if not known:
        return function
    closed = [one.closed(ViolationState.ACKNOWLEDGED, now_ns, by, comment) for one in known]
    return replace(function, violations=function.violations.with_closed(closed))
