"""What explains the classes of one function: when the worker is asked, with which observations, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.worker.jobs import Job
from specmine.mining.assertions.checks import Verification
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.inside.call_kinds import known_callees
from specmine.model.buckets import shifted_edges
from specmine.model.call_path import CallPath
from specmine.model.observation import Kind, Observation

from . import reasons
from .function import ExplanationState, FunctionState
from .history import enough
from .inference import with_chain
from .phase import FINISHED, State

PATIENCE = 5
"""Windows after which call paths are explained with the fewest observations that will do."""
VIOLATIONS, SETTLED_VIOLATIONS = 3, 12
"""Observations running whose classes disagree before these are learned anew: at first, and once levels have settled.

Levels are not learned anew by that, and nothing is while a violation is suspected or open.
"""
MOST_FAILURES = 2
"""Jobs that may fail before a function is given up."""
ONE_PATH_CALLS, MOST_INCOMPLETE = 400, 0.1
"""Calls over one call path and no other from which more of them are not waited for: another path that one call in a
hundred takes is missed in 2 of 100 functions. Of all calls so many may have incomplete paths."""


def job_for(function: FunctionState, settings: Settings, program_modules: tuple[str, ...], now_ns: int) -> Job | None:
    """Return the job that would explain the function now, None if it is not time for one."""
    mining, observations = settings.mining, function.history.paths
    learned, chain = function.inference.learned, function.inference.chain
    if function.explanation.job is not None or learned is None or chain is None or not observations:
        return None
    if function.state not in (State.EXPLAINING, State.EXPLAINED, State.UNEXPLAINED) and not is_relearned(function):
        return None  # nothing below would be due
    number = enough(observations, mining.minimum_calls)
    edges = shifted_edges(learned.edges, learned.bias_ns, observations[-1].bias_ns)
    start_ns = learned.start_ns or 0
    if function.state is State.EXPLAINING:
        # rare paths need calls: wait for more observations unless they come slowly
        patience = now_ns - function.phase.since_ns >= PATIENCE * settings.window_ns
        due = number >= mining.recent or (number >= mining.chain_observations and patience)
        due = due or has_one_path(observations)
    elif is_relearned(function):
        due = bool(chain.borders)
        edges, start_ns = chain.edges, chain.start_ns or 0
        observations = tuple(observation for observation in observations if observation.start_ns >= start_ns)
    else:
        due = number >= 2 * max(function.explanation.observations, mining.recent // 2)
        if function.state is State.UNEXPLAINED:
            result = function.explanation.result
            due = _tells_more(function) or (due and result is not None and result.why == "one-path")
    if not due or not observations:
        return None
    return Job(
        function=function.key,
        observations=(*_with_callees(function, start_ns), *observations),
        borders=edges,
        program_modules=program_modules,
        mining=mining,
    )


def has_one_path(observations: Sequence[Observation]) -> bool:
    """Tell whether enough calls came over one call path, and none over another: more of them explain nothing."""
    only: CallPath | None = None
    complete, whole = 0, 0
    for each in observations:
        for one in each.paths:
            whole += one.histogram.total
            if one.path.complete:
                if only is not None and one.path != only:
                    return False
                only, complete = one.path, complete + one.histogram.total
    return complete >= max(ONE_PATH_CALLS, (1 - MOST_INCOMPLETE) * whole)


def _tells_more(function: FunctionState) -> bool:
    """Tell whether more callees are known than when nothing explained the classes."""
    history, before = function.history, function.explanation.callees
    newest = (*history.timing[-1:], *history.paths[-1:])
    if function.explanation.result is None or all(len(part.timed) <= before for one in newest for part in one.inside):
        return False
    return len(known_callees((*history.timing, *history.paths))) > before


def _with_callees(function: FunctionState, since_ns: int) -> tuple[Observation, ...]:
    """Return the observations without call paths that tell what happened inside calls: those of the same classes."""
    return tuple(one for one in function.history.timing if one.told_inside and one.start_ns >= since_ns)


def may_be_relearned(function: FunctionState) -> bool:
    """Tell whether the classes of a finished function have disagreed for long enough, while nothing else changed."""
    violations, yardstick = function.violations, function.violations.yardstick
    if function.phase.state not in FINISHED or violations.standing or violations.evidence:
        return False
    settled = yardstick is not None and yardstick.settling is None
    return function.verification.violations >= (SETTLED_VIOLATIONS if settled else VIOLATIONS)


def is_relearned(function: FunctionState) -> bool:
    """Tell whether an explanation that no longer held was found stable again, in whatever form."""
    chain = function.inference.chain
    stable = chain is not None and chain.stable
    return stable and function.explanation.result is not None and may_be_relearned(function)


def explained(function: FunctionState, result: Explanation, now_ns: int, settings: Settings) -> FunctionState:
    """Take up the result of a job."""
    mining, history, inference = settings.mining, function.history, function.inference
    verification = replace(function.verification, checked_ns=now_ns)
    if is_relearned(function):
        inference = replace(inference, learned=inference.chain, inherited=None)
        verification = Verification(checked_ns=now_ns)
    if function.state is State.EXPLAINING and history.paths:
        inference = with_chain(inference, history.paths[-mining.recent :], Kind.PATH, mining)
    observations = enough(history.paths, mining.minimum_calls)
    inference = replace(inference, inherited=None)
    function = replace(
        function,
        history=replace(history, tried=0),
        inference=inference,
        explanation=ExplanationState(
            result=result,
            observations=observations,
            callees=len(known_callees((*history.timing, *history.paths))),
        ),
        verification=verification,
    )
    if len(result.behaviours) > 1:
        return function.moved(State.EXPLAINED, None, now_ns)
    return function.moved(State.UNEXPLAINED, reasons.unexplained(result.why), now_ns)


def failed(function: FunctionState, failure: str, now_ns: int, settings: Settings) -> FunctionState:
    """Take up that a job failed: it is given once more, then the function is given up."""
    failures = function.explanation.failures + 1
    if failures < MOST_FAILURES:
        return replace(function, explanation=replace(function.explanation, job=None, failures=failures))
    observations = enough(function.history.paths, settings.mining.minimum_calls)
    function = replace(
        function,
        explanation=replace(function.explanation, job=None, failures=0, observations=observations),
        verification=replace(function.verification, violations=0),
    )
    if function.state is not State.EXPLAINING:
        return function
    return function.moved(State.UNEXPLAINED, reasons.mining_failed(failure), now_ns)
