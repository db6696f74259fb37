"""The windows of a behaviour: the calls that fulfil its formula, by their path or by what happened inside them."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.mining.inside.call_kinds import kind_windows, named_edges_of, names_of_callees
from specmine.mining.levels.window import Window, window_of, windows_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

from .expression import Formula, asks_blocked, callees_in, evaluate, is_inside, named_edges


def windows_of_formula(
    observations: Sequence[Observation], formula: Formula, shared: frozenset[str] = frozenset()
) -> tuple[Window, ...]:
    """Return the windows of the calls that fulfil a formula; ``true``: of all calls.

    Parameters
    ----------
    observations : sequence of Observation
        Oldest first. Those that do not tell which calls fulfil it have no window.
    formula : Formula
    shared : frozenset of str
        Names that the formula shows with their module (``shared_names``).
    """
    if formula == ((),):
        return windows_of(observations)
    found = [(one, calls_of_formula(one, formula, shared)) for one in observations]
    return tuple(window_of(one, histogram) for one, histogram in found if histogram.total)


def calls_of_formula(observation: Observation, formula: Formula, shared: frozenset[str] = frozenset()) -> Histogram:
    """Return the calls of an observation that are known to fulfil a formula; ``true``: all.

    Calls over incomplete paths fulfil no other formula. Neither do calls of which it is not known whether they reached
    a callee that the formula names.
    """
    if formula == ((),):
        return observation.histogram
    if not is_inside(formula):
        return Histogram.sum(
            part.histogram
            for part in observation.paths
            if part.path.complete and evaluate(formula, named_edges(part.path, shared))
        )
    asked = callees_in(formula)
    blocked = asks_blocked(formula)
    timed = {frame for part in observation.inside for frame in part.timed if names_of_callees((frame,)) & asked}
    if not asked <= names_of_callees(timed):
        return Histogram.sum(())
    return Histogram.sum(
        calls
        for window in kind_windows((observation,), timed, blocked=blocked)
        for kind, calls in window.calls.items()
        if kind.complete and evaluate(formula, named_edges_of(kind))
    )
