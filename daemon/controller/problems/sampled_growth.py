"""In what samples of stacks find more, where calls of a violated function work longer. Pure.

A function whose calls work twice as long is on twice as many stacks. So is all that calls it, diluted by what else
these do, and what it calls has a part of that. So of all functions on the same stacks it has most evidence of more
samples. It need not be timed, nor be known: where only windows count such a one is never named.
"""

from __future__ import annotations

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.sampling.history import Growth
from specmine.daemon.controller.state import ControllerState
from specmine.model.violation import MoreSamples

from .call_edges import callers_of

EVIDENCE, MORE_EVIDENCE = 8.0, 3.0
"""That a function takes more CPU time than usual, and by how much it exceeds that of the violated one."""
CONCENTRATED = 1.2
"""It grew by so many times as large a factor: else the violated function is as good a name."""
LEAST_PART = 0.5
"""It has so much of what calls of the violated function take more."""
MOST_LOOKED_AT = 40
"""Of so many functions with most evidence it is seen whether they are on the same stacks."""
STEADY = 1.25
"""Numbers that changed by a smaller factor stay as they were told."""
NOTHING = Growth(cpus=0.0, usual_cpus=0.0, evidence=0.0)


def more_samples(function: FunctionState, since_ns: int, part: float, state: ControllerState) -> MoreSamples | None:
    """Return in what samples find more since a violation began, above or below its function on stacks.

    Parameters
    ----------
    function : FunctionState
        Whose violation it is.
    since_ns : int
        When that began.
    part : float
        How much of the time of its calls is more than usual, in [0, 1].
    state : ControllerState
        For samples, callers and names.

    Returns
    -------
    MoreSamples, optional
        None: it is the function itself, or samples do not tell.
    """
    growth = state.samples.growth_since(since_ns)
    own = growth.get(function.key, NOTHING)
    least = LEAST_PART * part * own.cpus
    grown = [
        (-one.evidence, key)
        for key, one in growth.items()
        if one.evidence >= max(EVIDENCE, own.evidence + MORE_EVIDENCE)
        and one.factor >= CONCENTRATED * own.factor
        and one.cpus - one.usual_cpus >= least
    ]
    above = callers_of(function.key, state.functions, state.unfollowed)
    for _, key in sorted(grown)[:MOST_LOOKED_AT]:
        named, is_caller = state.catalog.get(key), key in above
        if named is None or key == function.key:
            continue
        if is_caller or function.key in callers_of(key, state.functions, state.unfollowed):
            return MoreSamples(
                function=named.name,
                module=named.module,
                is_caller=is_caller,
                cpus=float(f"{growth[key].cpus:.2g}"),
                usual_cpus=float(f"{growth[key].usual_cpus:.2g}"),
            )
    return None


def steady(before: MoreSamples | None, now: MoreSamples | None) -> MoreSamples | None:
    """Return what samples find more of as it was told before, where only its numbers changed, and little."""
    if before is None or now is None:
        return now or before
    same = (before.function, before.module, before.is_caller) == (now.function, now.module, now.is_caller)
    return before if same and 1 / STEADY < now.cpus / max(before.cpus, 1e-9) < STEADY else now
