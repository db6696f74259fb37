"""How much is to be learned by observing a function now, and which of several comes first."""

from __future__ import annotations

from collections.abc import Collection

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import ONLY_WAITS, Total, is_idle, own_share, variation
from specmine.daemon.controller.phase import FINISHED, State
from specmine.mining.borders.inference import utility_of
from specmine.mining.regression.lifetime_utility import utility_over_lifetimes
from specmine.model.batch import Lifetime

from .function_request import call_cost
from .means import Means

WITHIN = 0.03
"""Weight of the time within a function's calls, as its first calls tell it."""
LEAST_VISIBLE = 0.01
"""Weight of a function whose calls are all shorter than what the probes' own cost is unsure by."""
YOUNG_NS = 300 * SECOND
"""So long the first window of a lifetime is waited for."""


def utility(function: FunctionState, now_ns: int, running: Collection[Lifetime] = ()) -> float:
    """Return how much is to be learned by observing the function now, in [0, 1].

    Of a finished one: what the age of its chain says, but nothing of lifetimes that were observed enough, and most
    of one that was never observed (``mining/regression/lifetime_utility.py``). Checks go on either way.
    """
    chain = function.inference.chain
    if chain is None or function.verification.violations or function.state not in FINISHED:
        return 1.0
    by_age = utility_of(chain, now_ns)
    if not running:
        return by_age
    return utility_over_lifetimes(by_age, function.history.lifetimes, _that_may_call(function, running, now_ns))


def _that_may_call(function: FunctionState, running: Collection[Lifetime], now_ns: int) -> dict[str, bool]:
    """Return the running lifetimes of the builds in which the function was observed, and whether they are young."""
    observed = {name for name, _ in function.history.lifetimes.moments}
    builds = {function.function.build_id, *(lifetime.build_id for lifetime in running if lifetime.id in observed)}
    return {lifetime.id: now_ns - lifetime.start_ns < YOUNG_NS for lifetime in running if lifetime.build_id in builds}


def priority(
    function: FunctionState, total: Total, means: Means, settings: Settings, first: str = ""
) -> tuple[object, ...]:
    """Return by what functions are sorted; ``first`` comes first of those that nobody named."""
    rate = function.probe.rate or 0.0
    waits = is_idle(function) or means.loop_waits.get(function.key, 0.0) >= ONLY_WAITS
    cost = call_cost(function, means)
    value = variation(function) if function.state in FINISHED else _worth(function, total, means) * min(1.0, rate)
    # what is on stays on unless something is clearly better, and what was begun is finished before another begins
    staying = (1.5 if function.probe.watch is not None else 1.0) * (1 + 9 * progress(function, settings))
    return (
        not function.identity.hinted,
        function.key != first,
        waits or (function.state not in FINISHED and not rate),
        -round(utility(function, means.now_ns, means.running), 3),
        function.state in FINISHED,
        -(value * staying / cost),
        function.key,
    )


def _worth(function: FunctionState, total: Total, means: Means) -> float:
    """Return in how much of the program's time a change could be seen once the function is learned, as a share of it.

    Few samples tell little of a program that uses little CPU time. So what the first calls say bounds what a function
    has of the time: their rate times their mean duration. All of that but waits for work counts a little, since what is
    slower within a call shows in it, also where callees are too short to be timed well. Durations within the
    uncertainty of the probes' own cost show no change, so functions as short as that come last.
    """
    idle_share = means.loop_waits.get(function.key, 0.0)
    worth, newest = own_share(function, total, idle_share), function.history.longest
    if not newest:
        return worth
    found, bias_ns, unsure_ns = function.history.summary, newest[-1].bias_ns, newest[-1].uncertainty_ns
    if means.cpu_rate > 0:
        whole = (function.probe.rate or 0.0) * max(0.0, found.mean_ns - bias_ns) / means.cpu_rate
        # what takes more than all CPU time waits, as a main loop does for work
        worth = min(worth, whole) + WITHIN * (1 - idle_share) * min(whole, 1 / max(whole, 1.0))
    usual_ns = max(0.0, found.median_ns - bias_ns)
    visible = usual_ns**4 / (usual_ns**4 + unsure_ns**4) if unsure_ns else 1.0
    return worth * max(LEAST_VISIBLE, visible)


def progress(function: FunctionState, settings: Settings) -> float:
    """Return how much of what a function needs is there, in [0, 1]."""
    chain = function.inference.chain
    if function.state is State.EXPLAINING:
        return 0.5 + 0.5 * min(1.0, len(function.history.paths) / settings.mining.recent)
    if function.state in (State.TIMING, State.WAITING) and chain is not None:  # also while its probes had to go
        return 0.5 * min(1.0, chain.chain / settings.mining.chain_observations)
    return 0.0
