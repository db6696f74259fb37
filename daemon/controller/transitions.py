"""How one function moves on, after the flowchart of the first paper (section 3).

candidate -> (counted) -> waiting <-> timing -> single | explaining -> explained | unexplained; a function
that does not become stable within the sample limit is parked as unstable. Finished ones are checked again.
"""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.mining.assertions.checks import Verification, with_check
from specmine.mining.detection.host_spread import NOTHING_USUAL, UsualSpreads
from specmine.mining.off_cpu import on_cpu
from specmine.mining.settings import MiningSettings
from specmine.model.batch import Refusal
from specmine.model.observation import Kind, Observation

from . import reasons
from .explanation import is_relearned, may_be_relearned
from .function import FunctionState
from .history import History, with_observation
from .hotness import waits_for_work
from .inference import InferenceState, with_chain
from .phase import FINISHED, State
from .provisional import with_build
from .sharing.adoption import adopted
from .violations.asserted import asserted_by
from .violations.lifecycle import watched
from .violations.watching import Watching

ADMISSION_NS = 200 * MS
"""How long calls are counted before a price is predicted."""
ON_CPU_EVERY = 4
"""While a function is learned, its time on CPU is judged with one window in so many, and once its durations are stable:
to find classes twice with each window costs us as much again."""
JUDGED = 2
"""So many times in ``verify_every`` the classes of a finished function are found anew at most."""
PARKED_NS = 600 * SECOND
"""An unstable function is tried again after this time."""
REFUSED_NS, LONGEST_REFUSED_NS = 60 * SECOND, 1800 * SECOND
"""A function refused for what may be gone later is tried again after this time, which doubles each time, at most. That
is less than the hour after which a refusal is logged again."""
_ASSERTED = frozenset({State.EXPLAINING, *FINISHED})


def refused(function: FunctionState, refusal: Refusal, now_ns: int) -> FunctionState:
    """Take up a refusal: without timing nothing can be learned, without paths nothing explained."""
    unwatched = replace(function, probe=replace(function.probe, watch=None))
    if refusal.reason.code in reasons.PASSING:
        waits = function.state in (State.CANDIDATE, State.TIMING)
        return unwatched.moved(State.WAITING if waits else function.state, refusal.reason, now_ns)
    phase = function.phase.refusing(refusal.kind, refusal.reason)
    function, unwatched = replace(function, phase=phase), replace(unwatched, phase=phase)
    reason = phase.refusal(Kind.TIME)
    if reason is not None:
        state = State.EXCLUDED if reason.code in reasons.HINTS else State.REFUSED
        if reason.code not in reasons.TRIED_AGAIN:
            return unwatched.moved(state, reason, now_ns)
        after_ns = min(REFUSED_NS << min(phase.times_refused, 5), LONGEST_REFUSED_NS)
        phase = unwatched.phase.moved(state, reasons.tried_again(reason, after_ns), now_ns)
        phase = replace(phase, times_refused=phase.times_refused + 1, again_ns=now_ns + after_ns)
        return replace(unwatched, phase=phase)
    if function.state is State.EXPLAINING:
        return unwatched.moved(State.UNEXPLAINED, refusal.reason, now_ns)
    return function


def tried_again(function: FunctionState, now_ns: int) -> FunctionState:
    """Begin anew with a function that was refused for what may be gone now; what is known of it stays."""
    phase = function.phase.trying_again(reasons.TRIED_AGAIN)
    return replace(function, phase=phase).moved(State.CANDIDATE, None, now_ns)


def counted(function: FunctionState, now_ns: int) -> FunctionState:
    """End a first look that has lasted long enough; the rate decides what comes next."""
    probe = function.probe
    if function.state is not State.CANDIDATE or probe.watch is None:
        return function
    # a probe may never be attached (nothing mapped yet): give up after five times the length
    done = probe.recent_ns >= ADMISSION_NS or probe.limited
    if not done and now_ns - probe.watched_since_ns < 5 * ADMISSION_NS:
        return function
    return function.moved(State.WAITING, reasons.queued(0.0), now_ns)


def observed(
    function: FunctionState,
    observation: Observation,
    settings: Settings,
    *,
    utc_offset_ns: int = 0,
    threshold: float | None = None,
    usual: UsualSpreads = NOTHING_USUAL,
    idle_share: float = 0.0,
) -> FunctionState:
    """Take up an observation: history, then inference, then checks, then phase; and whether anything changed.

    Parameters
    ----------
    function : FunctionState
    observation : Observation
    settings : Settings
    utc_offset_ns : int
        What to add to times to get UTC.
    threshold : float, optional
        Evidence of a change, as calibrated on this host.
    usual : mapping of str to float
        How far windows of this host usually vary.
    idle_share : float
        The share of its time that waits for work.
    """
    mining, kind, state = settings.mining, observation.kind, function.phase.state
    history = with_observation(function.history, observation, mining)
    newest = (history.paths if kind is Kind.PATH else history.timing)[-mining.recent :]
    whole = newest[-1]  # it may have been joined to the one before
    if _is_judged_lately(function, whole, settings):
        function = _continued(replace(function, history=history), observation.end_ns)
        return _with_violations(function, observation, settings, utc_offset_ns, threshold, usual, idle_share)
    inference, short = function.inference, _is_too_short(function.inference, whole, settings)
    later = state is State.EXPLAINING and kind is Kind.PATH  # inferred once they are explained
    if not later and not short:
        inference = with_chain(inference, newest, kind, mining)
    if not short and _is_on_cpu_judged(state, inference, history):
        inference = replace(inference, on_cpu=on_cpu.observed(inference.on_cpu, newest, mining))
    verification, provisional = function.verification, function.provisional
    if state in FINISHED:
        result = function.explanation.result
        verification = with_check(verification, whole, result, inference.learned, inference.chain, mining)
    elif provisional is not None:
        provisional = with_build(provisional, observation, mining)
    checked = verification.checks is not function.verification.checks
    function = replace(
        function, history=history, inference=inference, verification=verification, provisional=provisional
    )
    function = _with_violations(function, observation, settings, utc_offset_ns, threshold, usual, idle_share)
    if state not in FINISHED and (taken := adopted(function, observation.end_ns)) is not function:
        return taken
    if state is State.TIMING and kind is Kind.TIME:
        return _timed(function, observation.end_ns, mining)
    return _checked(function, observation.end_ns) if checked else function


def _with_violations(
    function: FunctionState,
    observation: Observation,
    settings: Settings,
    utc_offset_ns: int,
    threshold: float | None,
    usual: UsualSpreads,
    idle_share: float,
) -> FunctionState:
    """Look for a change; one that opens or closes a violation changes the reason of a finished function."""
    history, state = function.history, function.phase.state
    learned = function.inference.learned if state in _ASSERTED else None
    result = function.explanation.result if state in FINISHED else None
    around = Watching(
        function=function.key,
        build_id=function.function.build_id,
        asserted=asserted_by(learned, result),
        result=result,
        idle=waits_for_work(function),
        idle_share=idle_share,
        newest=history.paths if observation.kind is Kind.PATH else history.timing,
        earlier=(*history.timing, *history.paths),
        recover_after_ns=settings.recover_after_ns,
        adopt_after_ns=settings.adopt_after_ns,
        utc_offset_ns=utc_offset_ns,
        threshold=threshold,
        usual=usual,
    )
    violations = watched(function.violations, observation, around)
    if violations is function.violations:
        return function
    turned = len(violations.standing) != len(function.violations.standing)
    function = replace(function, violations=violations)
    return reasoned(function, observation.end_ns) if turned else function


def _is_judged_lately(function: FunctionState, whole: Observation, settings: Settings) -> bool:
    """Tell whether a finished function that held was judged a moment ago: to find classes anew costs us most.

    Nor is one judged by a window of too few calls, before it is joined to the next.
    """
    inference, verification = function.inference, function.verification
    if function.phase.state not in FINISHED or inference.inherited is not None or verification.violations:
        return False
    if _is_too_short(inference, whole, settings):
        return True
    if inference.chain is None or not inference.chain.stable or inference.kind is not whole.kind:
        return False
    judged_ns = verification.judged_ns
    return judged_ns is not None and whole.end_ns - judged_ns < settings.verify_every_ns // JUDGED


def _is_too_short(inference: InferenceState, whole: Observation, settings: Settings) -> bool:
    """Tell whether a window of too few calls adds nothing to what is known of the ones before."""
    known = inference.chain is not None and inference.kind is whole.kind
    return known and whole.timed < settings.mining.minimum_calls


def _is_on_cpu_judged(state: State, inference: InferenceState, history: History) -> bool:
    """Tell whether the time on CPU of a function is judged with this window."""
    if state in FINISHED or history.totals.observations % ON_CPU_EVERY == 0:
        return True
    return state is State.TIMING and inference.chain is not None and inference.chain.stable


def _continued(function: FunctionState, now_ns: int) -> FunctionState:
    """Return a function with another window that nobody compared with its classes: its chain goes on meanwhile."""
    chain = function.inference.chain
    if chain is not None:
        function = replace(function, inference=replace(function.inference, chain=replace(chain, end_ns=now_ns)))
    return replace(function, verification=replace(function.verification, checked_ns=now_ns))


def _timed(function: FunctionState, now_ns: int, mining: MiningSettings) -> FunctionState:
    """Move on a function that is being timed, if its durations are stable or take too long to be."""
    chain, tried = function.inference.chain, function.history.tried
    if chain is None or not chain.stable:
        if tried < mining.sample_limit:
            return function
        function = replace(function, history=replace(function.history, tried=0))
        return function.moved(State.UNSTABLE, reasons.unstable(tried, PARKED_NS, chain), now_ns)
    function = replace(
        function,
        history=replace(function.history, tried=0),
        inference=replace(function.inference, learned=chain, inherited=None),
    )
    no_paths = function.phase.refusal(Kind.PATH)
    if chain.borders and no_paths is None:
        function = replace(
            function,
            history=replace(function.history, paths=()),
            explanation=replace(function.explanation, observations=0),
        )
        return function.moved(State.EXPLAINING, None, now_ns)
    function = replace(function, verification=replace(function.verification, checked_ns=now_ns))
    if not chain.borders:
        return function.moved(State.SINGLE, None, now_ns)
    return function.moved(State.UNEXPLAINED, no_paths, now_ns)


def _checked(function: FunctionState, now_ns: int) -> FunctionState:
    """Move on a finished function that was checked; its classes are learned anew only while nothing is open."""
    if is_confirmed(function):
        function = replace(
            function, inference=replace(function.inference, learned=function.inference.chain, inherited=None)
        )
    inference, explanation = function.inference, function.explanation
    if is_relearned(function) and inference.chain is not None and not inference.chain.borders:
        function = replace(
            function,
            inference=replace(inference, learned=inference.chain, inherited=None),
            explanation=replace(explanation, result=None),
            verification=Verification(checked_ns=now_ns),
        )
        return function.moved(State.SINGLE, None, now_ns)
    if explanation.result is not None or not may_be_relearned(function):
        return reasoned(function, now_ns)
    return learned_anew(function, now_ns)


def is_confirmed(function: FunctionState) -> bool:
    """Tell whether this host has learned by itself what it took from the fleet: one class, in windows enough."""
    inference, chain = function.inference, function.inference.chain
    return (
        inference.inherited is not None
        and function.state is State.SINGLE
        and chain is not None
        and chain.stable
        and not chain.borders
    )


def learned_anew(function: FunctionState, now_ns: int) -> FunctionState:
    """Return a function whose classes are to be found again; nothing but borders was stated of them."""
    function = replace(
        function,
        history=replace(function.history, tried=0),
        inference=replace(function.inference, learned=None, inherited=None),
        explanation=replace(function.explanation, result=None),
        verification=Verification(checked_ns=now_ns),
    )
    return function.moved(State.TIMING, None, now_ns)


def reasoned(function: FunctionState, now_ns: int) -> FunctionState:
    """Return a finished function with the reason that fits: violated, or learned while something else was slower."""
    state, reason, result = function.phase.state, function.phase.reason, function.explanation.result
    if state not in FINISHED:
        return function
    yardstick = function.violations.yardstick
    if function.violations.standing:
        reason = reasons.violated(len(function.violations.standing))
    elif yardstick is not None and yardstick.during:
        reason = reasons.learned_during([each.function for each in yardstick.during])
    elif reason is not None and reason.code in ("violated", reasons.LEARNED_DURING):
        reason = None
        if state is State.UNEXPLAINED:
            reason = reasons.unexplained(result.why) if result is not None else function.phase.refusal(Kind.PATH)
    return function.moved(state, reason, now_ns)
