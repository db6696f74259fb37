"""Which request fits a grant, and what it is predicted to cost.

From the calibrated price of a hit and the measured rate of calls; no state of a function is looked at here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.mining.levels.estimate import LEAST_CALLS
from specmine.model.batch import Prices, Watch
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS

REACTION_NS = 3 * MS
"""How long a probe goes on trapping after its bucket ran empty, until its link is closed."""
SHORTEST_ON_NS = 50 * MS
LONGEST_ON_NS = SECOND
LEAST_SHARE = 1 / 64
"""Share of calls timed below which counting the others is not worth its price."""
AT_ONCE = 8
"""So many functions can be learned in parallel, each with a window in the time that one may take at most."""
LEAST_WINDOW = 1.05
"""A window holds at least this many times the calls without which it is not judged."""
LOOK_SHARE = 0.25
"""A first look brings all of a level, or a whole window, if that costs at most so much of what a second brings."""
FIRST_NUMBERS = 100
"""Timed calls from which quantiles are stated, ..."""
FIRST_LEVEL = max(LEAST_CALLS.values())
"""... and from which all of them are."""
SPARE_CALLS = 1.1
"""An on-phase allows this many windows, since calls still open at its end are lost."""


def price(prices: Prices, kind: Kind, function: Function) -> float:
    """Return what one call costs the program, ns."""
    return PROBE_KINDS[kind].price_ns(prices) + (prices.stepped_ns if function.stepped else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCosts:
    """What the calls of one function cost the program while probes are on: as calibrated, and as it was found."""

    function: Function
    kind: Kind
    rate: float
    """Calls a second."""
    prices: Prices
    dearness: float = 1.0
    """What a timed call was found to cost with all hits around it, relative to its price."""
    crowding: float = 1.0
    """How many hits came for each that a timed call needs."""
    passing_ns: float = 0.0
    """What hits of other calls cost in a second on, where there are hardly any of its own."""

    @property
    def call_ns(self) -> float:
        """Of a call of this kind, ns."""
        return price(self.prices, self.kind, self.function) * self.dearness

    @property
    def hit_ns(self) -> float:
        """Of a trap that finds the bucket empty, ns."""
        return price(self.prices, Kind.COUNT, self.function)

    @property
    def untimed_ns(self) -> float:
        """Of a call that is only counted while others are timed, ns."""
        return self.prices.untimed_ns + (self.prices.stepped_ns if self.function.stepped else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPhase:
    """One on-phase that brings a window of calls, and what it is predicted to cost."""

    on_ns: int
    calls: float
    cost_ns: float


def affordable_window(rate: float, prices: Prices, settings: Settings) -> int:
    """Return how many calls a window is to hold: fewer than asked for where calls are expensive or the time is short.

    Parameters
    ----------
    rate : float
        Budget, ns of cost per second.
    prices : Prices
    settings : Settings
        ``window_calls`` is the most.
    """
    most = rate * settings.window_ns / SECOND / AT_ONCE / prices.time_ns
    least = min(settings.window_calls, round(LEAST_WINDOW * settings.mining.minimum_calls))
    steps = math.floor(4 * math.log2(max(most, least) / least)) / 4  # in steps: prices change all the time
    return min(settings.window_calls, round(least * 2**steps))


def on_phase(costs: CallCosts, settings: Settings) -> OnPhase:
    """Plan an on-phase that brings a window of calls; ``settings`` say how many these are.

    It is no longer than hits of other calls cost as much as a window.
    """
    rate, wanted = costs.rate, SPARE_CALLS * settings.window_calls
    on_ns = int(min(max(wanted / max(rate, 1e-9) * SECOND, SHORTEST_ON_NS), LONGEST_ON_NS))
    if costs.passing_ns:
        on_ns = int(min(on_ns, max(wanted * costs.call_ns / costs.passing_ns * SECOND, SHORTEST_ON_NS)))
    available = rate * on_ns / SECOND
    overrun = rate * REACTION_NS / SECOND if available > wanted else 0.0
    calls = min(available, wanted)
    cost_ns = max(calls * costs.call_ns + overrun * costs.hit_ns, costs.passing_ns * on_ns / SECOND)
    return OnPhase(on_ns=on_ns, calls=calls, cost_ns=cost_ns)


def shortest_period_ns(settings: Settings) -> int:
    """Return how often on-phases come at most: ten observations in the time of one full window, two a second.

    However slow the pace, they come before a window is given up.
    """
    return min(round(settings.pace * max(settings.window_ns // 10, 10 * SHORTEST_ON_NS)), settings.limit_ns)


def watch_for(costs: CallCosts, grant: float, settings: Settings, *, duty: bool) -> Watch | None:
    """Return the request that fits a grant, ns of cost per second; None if none does.

    Always on where that fits, since counts are exact then; else on-phases at random times whose mean cost
    fits; none where they would come too rarely, or where links cannot be detached fast (``duty`` False).
    """
    rate, call_ns, hits = costs.rate, costs.call_ns, PROBE_KINDS[costs.kind].hits * costs.crowding
    window = Watch(
        function=costs.function.key,
        kind=costs.kind,
        window_calls=settings.window_calls,
        window_ns=settings.window_ns,
        minimum_calls=settings.minimum_calls,
        limit_ns=settings.limit_ns,
    )
    affordable = grant / call_ns
    if costs.passing_ns <= grant and rate <= affordable * (1 + 1e-9):
        # the bucket bounds what a sudden rise of the rate can cost before the controller learns of it
        per_second = hits * max(2 * affordable, 100.0)
        return replace(window, hits_per_second=round(per_second, 1), burst_hits=int(max(per_second, 200)))
    share = sampled_share(costs, grant)
    if share and costs.passing_ns <= grant:
        per_second = 2 * rate * (1 + share)
        return replace(window, timed_share=share, hits_per_second=round(per_second, 1), burst_hits=int(per_second))
    if not duty:
        return None
    phase = on_phase(costs, settings)
    period = int(max(phase.cost_ns / max(grant, 1e-9) * SECOND, shortest_period_ns(settings), 1.25 * phase.on_ns))
    if period > settings.limit_ns:
        return None
    burst = int(hits * SPARE_CALLS * settings.window_calls)
    refill = max(1.0, round(burst * SECOND / period, 1))
    return replace(window, on_ns=phase.on_ns, period_ns=period, hits_per_second=refill, burst_hits=burst)


def sampled_share(costs: CallCosts, grant: float) -> float:
    """Return the share of a function's calls that can be timed while all are counted, a power of two; 0: none.

    Returns that are not wanted are skipped over session links only; elsewhere there is no price of an untimed call.
    """
    rate, call_ns, untimed_ns = costs.rate, costs.call_ns, costs.untimed_ns
    if not costs.prices.untimed_ns or costs.function.unsampled or rate <= 0 or call_ns <= untimed_ns:
        return 0.0
    most = (grant / rate - untimed_ns) / (call_ns - untimed_ns)
    return 2.0 ** math.floor(math.log2(most)) if most >= LEAST_SHARE else 0.0


def cost_rate(costs: CallCosts, timed_share: float) -> float:
    """Return what a watch that is always on costs, ns per second."""
    if timed_share >= 1:
        return costs.rate * costs.call_ns
    return costs.rate * (costs.untimed_ns + timed_share * (costs.call_ns - costs.untimed_ns))


def worthwhile(costs: CallCosts, settings: Settings) -> float:
    """Return the largest grant that brings observations faster, ns of cost per second; hits of other calls aside."""
    phase = on_phase(replace(costs, passing_ns=0.0), settings)
    window_ns = max(phase.cost_ns, SPARE_CALLS * settings.window_calls * costs.call_ns)
    return min(costs.rate * costs.call_ns, window_ns * SECOND / shortest_period_ns(settings))


def first_look(function: Function, call_ns: float, income: float, settings: Settings) -> tuple[Watch, float]:
    """Return the request that brings the first durations of a function, and what it costs at most, ns.

    Nothing is known of its rate: a quota of hits ends the look, which tells the rate and the first numbers.

    Parameters
    ----------
    function : Function
    call_ns : float
        Price of a timed call.
    income : float
        Budget, ns of cost per second: where it is small a look ends with the first numbers.
    settings : Settings
    """
    whole = LEAST_WINDOW * settings.minimum_calls
    # for a fleet a host gives no more than its part: what it has given already it is not asked for
    wanted = (whole,) if settings.shares else (max(whole, FIRST_LEVEL), whole)
    affordable = (calls for calls in wanted if calls * call_ns <= LOOK_SHARE * income)
    calls = SPARE_CALLS * next(affordable, min(whole, FIRST_NUMBERS))
    watch = Watch(
        function=function.key,
        kind=Kind.TIME,
        window_calls=settings.window_calls,
        window_ns=settings.window_ns,
        minimum_calls=min(settings.minimum_calls, FIRST_NUMBERS),
        limit_ns=settings.limit_ns,
        hits_per_second=1.0,
        burst_hits=int(PROBE_KINDS[Kind.TIME].hits * calls),
        cost_ns=calls * call_ns,
    )
    return watch, watch.cost_ns
