"""Which functions this host observes now, and which it leaves to other hosts of its fleet.

Orders are wishes. They lapse a quarter of an hour after the fleet was last reached: then a host does what it does
without one. What is left to others is still checked here, and learned if the fleet learns nothing of it. So whoever
rules the fleet can slow a host down, but not blind it.

A fault of one host shows on that host alone. So each host watches the functions that take most of its time closely, and
takes windows of all others too, first as many as it needs to know what is usual here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.allocation.checks import CHECK_CALLS
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import is_idle, own_share, total_of
from specmine.daemon.controller.phase import FINISHED, State
from specmine.mining.fleet.duty import Duty, Purpose
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.batch import Watch

LONE_AFTER_NS = 900 * SECOND
"""Without a word from the fleet for so long, a host is alone."""
CLOSELY_EVERY_NS = 5 * SECOND
"""The functions that take most of this host's time are checked so often, whatever others observe. Programs wander
within a minute. From that a change of half as much again was told by windows 20 s apart in none of 40 simulated cases,
by those 5 s apart in nearly all. Windows are as short, so that more of them cost no more calls, ..."""
LESS_UNDER_PRESSURE = 3.0
"""... and come less often by this factor, and one, with no CPU time of our own left, ..."""
MEASURED_EVERY_NS = 30 * SECOND
"""... those of which this host has too few windows to tell what is usual here so often, ..."""
LEAST_MEASURED, MEASURED_A_SECOND = 30.0, 2
"""... until it has these, and at most so many of them a second, ..."""
CHECKED_EVERY_NS = 120 * SECOND
"""... and all others so often ..."""
PANEL_EVERY_NS, PANEL_CALLS = 300 * SECOND, CHECK_CALLS
"""... or more often, if a panel is asked for more calls in so long than these: one window ..."""
LEFT_FOR_NS = 1_800 * SECOND
"""... and what nothing is stated of for so long is learned here."""
MOST_TRIED = 6
"""Windows in which a statement of the fleet is confirmed here, or left."""
FIRST_WORD_NS = 300 * SECOND
"""So long a host waits for the first word: it finds functions and looks at each, and learns what the user named."""
LEAST_WINDOW = 1.05
"""Calls of a window while work is shared, in multiples of those without which it is not judged."""
PLACES = 64
"""Functions that a host learns at a time for the fleet, less its own share."""
MOST_STATEMENTS = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Orders:
    """What the fleet said last."""

    told_ns: int | None = None
    """When it was reached; None: never."""
    duties: Mapping[str, Duty] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    """Functions that other hosts observe, and since when."""
    goals: Mapping[str, int] = field(default_factory=dict)
    """Timed calls of a function at which a scout has done what it was asked for."""
    statements: Mapping[str, InheritedStatement] = field(default_factory=dict)

    def in_force(self, settings: Settings, now_ns: int) -> bool:
        """Tell whether they count now."""
        return settings.shares and self.told_ns is not None and now_ns - self.told_ns < LONE_AFTER_NS


def told(
    before: Orders,
    functions: Mapping[str, FunctionState],
    duties: Sequence[Duty],
    left: Sequence[str],
    *,
    told_ns: int,
    own: float,
) -> Orders:
    """Return the orders after a word from the fleet.

    Parameters
    ----------
    before : Orders
    functions : mapping
        For how many calls of each were timed: a duty that goes on does not begin again.
    duties, left : sequence
    told_ns : int
        When the fleet was reached.
    own : float
        Share of the places that stays this host's.
    """
    places = max(0, round((1 - own) * PLACES))
    scouts = [each for each in duties if each.purpose is Purpose.SCOUT][:places]
    taken = {each.function: each for each in (*(each for each in duties if each.purpose is not Purpose.SCOUT), *scouts)}
    goals = {}
    for each in scouts:
        was = before.duties.get(each.function)
        begun = functions[each.function].history.totals.timed if each.function in functions else 0
        same = was is not None and was.purpose is each.purpose and was.kind is each.kind
        goals[each.function] = before.goals.get(each.function, begun + each.calls) if same else begun + each.calls
    # a scout that has done its part leaves the function to the others
    since = {key: before.left.get(key, told_ns) for key in (*(key for key in left if key not in taken), *goals)}
    return Orders(told_ns=told_ns, duties=taken, left=since, goals=goals, statements=before.statements)


def shared(orders: Orders, settings: Settings, now_ns: int, *, pressure: float = 0.0) -> Settings:
    """Return the settings while hosts share the work: windows of just enough calls to be judged, checks of fewer.

    Whose turn it is ``left_out`` says; here no check waits for longer, unless CPU time of our own must be saved.
    """
    if not orders.in_force(settings, now_ns):
        return settings
    enough = round(LEAST_WINDOW * settings.minimum_calls)
    every_ns = CLOSELY_EVERY_NS + round(pressure * max(0, settings.verify_every_ns - CLOSELY_EVERY_NS))
    return replace(
        settings,
        window_calls=min(settings.window_calls, enough),
        check_calls=min(settings.check_calls, CHECK_CALLS),
        verify_every_ns=min(settings.verify_every_ns, every_ns),
    )


def fitted(
    orders: Orders,
    watches: Mapping[str, Watch],
    functions: Mapping[str, FunctionState],
    settings: Settings,
    now_ns: int,
) -> dict[str, Watch]:
    """Return the watches with windows as sharing needs them.

    Those of what is suspected are as long as without it: windows a second apart share their wander, so sixteen of them
    decide nothing, and then a suspicion is given up. Those of what is watched closely hold just enough calls to be
    looked at for a change: how often they come decides how soon one is found.
    """
    closely = watched_closely(functions, settings) if orders.in_force(settings, now_ns) else frozenset[str]()
    found = dict(watches)
    for key, each in watches.items():
        if key in functions and functions[key].violations.urgency:
            found[key] = replace(each, window_calls=max(each.window_calls, settings.window_calls))
        elif key in closely and not functions[key].violations.standing:
            calls = min(each.window_calls, CHECK_CALLS)
            found[key] = replace(
                each,
                window_calls=calls,
                minimum_calls=min(each.minimum_calls, calls),
                window_ns=min(each.window_ns, CLOSELY_EVERY_NS),
            )
    return found


def left_out(
    orders: Orders,
    functions: Mapping[str, FunctionState],
    settings: Settings,
    now_ns: int,
    began_ns: int = 0,
    *,
    pressure: float = 0.0,
) -> frozenset[str]:
    """Return the functions that are not to be observed now, since other hosts do or this one has done its part.

    Before the first word of the fleet these are all that are being learned, for some minutes after the start.

    Never those that the user named, or that are suspected to have changed.
    """
    alone = settings.shares and orders.told_ns is None and now_ns - began_ns < FIRST_WORD_NS
    if not alone and not orders.in_force(settings, now_ns):
        return frozenset()
    free = [
        function
        for function in functions.values()
        if not function.identity.hinted and not function.violations.urgency and not function.violations.standing
    ]
    if alone:
        return frozenset(one.key for one in free if one.state in (State.WAITING, State.TIMING, State.EXPLAINING))
    closely_every_ns = round(CLOSELY_EVERY_NS * (1 + LESS_UNDER_PRESSURE * pressure))
    closely = dict.fromkeys(watched_closely(functions, settings), closely_every_ns)
    unmeasured = sum(one.state in FINISHED and not _is_measured(one) for one in free)
    measured_every_ns = max(MEASURED_EVERY_NS, unmeasured * SECOND // MEASURED_A_SECOND)
    return frozenset(one.key for one in free if _is_left(orders, one, closely, measured_every_ns, now_ns))


def watched_closely(functions: Mapping[str, FunctionState], settings: Settings) -> frozenset[str]:
    """Return the finished functions that take most of this host's time: as many as places are its own.

    What becomes slower takes more time, so it comes among them by itself.
    """
    finished = [one for one in functions.values() if one.state in FINISHED and not is_idle(one)]
    total = total_of(functions.values())
    finished.sort(key=lambda one: (-own_share(one, total), one.key))
    return frozenset(one.key for one in finished[: round(settings.own_places * PLACES)])


def _is_left(
    orders: Orders, function: FunctionState, closely: Mapping[str, int], measured_every_ns: int, now_ns: int
) -> bool:
    key, duty = function.key, orders.duties.get(function.key)
    if duty is None and key not in orders.left:
        return False
    if duty is not None and duty.purpose is Purpose.SCOUT and function.history.totals.timed < orders.goals.get(key, 0):
        return False
    if function.state in FINISHED:
        every_ns = CHECKED_EVERY_NS if _is_measured(function) else measured_every_ns
        if duty is not None and duty.purpose is not Purpose.SCOUT:
            every_ns = min(every_ns, PANEL_EVERY_NS * PANEL_CALLS // max(1, duty.calls))
        if key in closely:
            return now_ns - _seen_since_ns(function) < closely[key]
        return now_ns - _seen_ns(function) < every_ns
    stated = function.provisional
    if stated is not None and stated.hosts and stated.observations < MOST_TRIED:
        return False
    return (duty is None or duty.purpose is Purpose.SCOUT) and now_ns - orders.left.get(key, now_ns) < LEFT_FOR_NS


def _is_measured(function: FunctionState) -> bool:
    """Tell whether this host knows what is usual for a function: with fewer windows a change looks like wander."""
    return any(one.seen >= LEAST_MEASURED for one in function.violations.detector.streams)


def _seen_since_ns(function: FunctionState) -> int:
    """Return the start of the newest window: where one lasts for long, the next one begins at once."""
    history = function.history
    return max((one.start_ns for one in (*history.timing[-1:], *history.paths[-1:])), default=0)


def _seen_ns(function: FunctionState) -> int:
    """Return the end of the newest window."""
    history = function.history
    return max((one.end_ns for one in (*history.timing[-1:], *history.paths[-1:])), default=0)
