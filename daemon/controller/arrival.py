"""What a batch from the source changes: refusals, calls, windows, waits; what they decide, and what is to be done."""

from __future__ import annotations

from dataclasses import replace

from specmine.model.batch import Batch

from . import transitions
from .absorption import absorbed
from .actions import act
from .call_counts import with_activity
from .candidates import admit_named, admit_while_asked, climb, descend
from .events import Action
from .function import FunctionState, changed
from .phase import State
from .problems.causes import with_causes
from .problems.inheritance import with_successors
from .problems.learned_during import with_learned_during
from .problems.unmapped import swept
from .state import ControllerState
from .violations.host_detection import with_spreads, with_window
from .wait_requests import with_waits


def arrived(state: ControllerState, batch: Batch) -> tuple[ControllerState, tuple[Action, ...]]:
    """Return the state after a batch, and what is to be done now."""
    before, now_ns = state.functions, batch.now_ns
    state = absorbed(state, batch)
    functions = dict(state.functions)
    if state.settings.watch:
        admit_named(functions, now_ns)
    admit_while_asked(functions, state)
    for refusal in batch.refusals:
        if refusal.function in functions:
            functions[refusal.function] = transitions.refused(functions[refusal.function], refusal, now_ns)
    for activity in batch.activity:
        if activity.function in functions:
            function = functions[activity.function]
            counting = function.state is State.CANDIDATE
            probe = with_activity(function.probe, activity, now_ns, counting=counting)
            functions[activity.function] = replace(function, probe=probe)
    host = state.detection
    for observation in batch.observations:
        if observation.function in functions:
            function = functions[observation.function].observed_in(state.lifetimes.get(observation.lifetime))
            renewed = transitions.observed(
                function,
                observation,
                state.settings,
                utc_offset_ns=state.utc_offset_ns,
                threshold=host.threshold,
                usual=host.usual,
                idle_share=state.idle.get(observation.function, 0.0),
            )
            host = with_window(host, observation, function.violations.detector, renewed.violations.detector)
            functions[observation.function] = renewed
    _let_time_pass(functions, now_ns)
    for waits in batch.waits:
        if waits.function in functions:
            functions[waits.function] = with_waits(functions[waits.function], waits)
    news = changed(functions, before)
    climb(functions, news, before, state, now_ns)
    descend(functions, news, before, state)
    if batch.observations or batch.waits:
        host = with_spreads(host, (function.violations.detector for function in functions.values()), now_ns)
        with_successors(functions, state)
        with_learned_during(functions, state.settings, now_ns)
        with_causes(functions, before, state, host.disturbed)
        state = replace(state, surprise=state.surprise.with_windows(each.function for each in batch.observations))
    return act(swept(replace(state, functions=functions, detection=host)), before)


def _let_time_pass(functions: dict[str, FunctionState], now_ns: int) -> None:
    """End first looks that have lasted long enough; try again what was given up for a while."""
    candidate, unstable = State.CANDIDATE, State.UNSTABLE  # no properties: this looks at all functions at each turn
    for key, function in functions.items():
        phase = function.phase
        if phase.state is candidate:
            if function.probe.watch is not None:
                functions[key] = transitions.counted(function, now_ns)
        elif phase.state is unstable and now_ns - phase.since_ns >= transitions.PARKED_NS:
            functions[key] = function.moved(State.WAITING, None, now_ns)
        elif phase.again_ns and now_ns >= phase.again_ns:
            functions[key] = transitions.tried_again(function, now_ns)
