"""What is known around a violation: the same calls before and since, builds, runs, waits and the host. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.asserted import TRUE
from specmine.daemon.controller.violations.change import since
from specmine.daemon.controller.violations.cpu_shortage import in_words
from specmine.daemon.controller.violations.facts import Callee, Facts
from specmine.daemon.controller.violations.growth import callee_growth, wait_growth
from specmine.daemon.controller.violations.usual import Usual, usual_of
from specmine.mining.regression.code_diff import same_code
from specmine.model.call_path import Frame
from specmine.model.inside.waits import Waits, pooled_waits
from specmine.model.observation import Observation
from specmine.model.text import age
from specmine.model.violation import Violation, What

from .call_edges import callees_of
from .short_of_cpu import cpus_of, others_of, shortage_of

NEAR_NS = 300 * SECOND
"""What started so long before a change may have to do with it."""
BUSY, BUSIER = 0.6, 1.5
"""Programs that take so much of all CPUs, and so many times what they usually take, wait for themselves."""
FULL, GREW, LEAST_GROWN = 0.75, 0.7, 0.1
"""So do those that brought so much of what the host's CPUs took more, once these are so full, and took so much of them
more themselves."""
AFTER_NS = 30 * SECOND
"""The moment of a change may be told too early by so much."""


def usually(function: FunctionState) -> Usual | None:
    """Return how calls were when the function was learned; None: not known."""
    yardstick = function.violations.yardstick
    return yardstick.usual if yardstick is not None and yardstick.usual.calls else None


def quantile_of(violation: Violation) -> str:
    """Return which quantile of all calls moved; '' if the violation is about some calls, or no level."""
    return violation.quantile if violation.what is What.LEVEL and violation.expression == TRUE else ""


def now_of(function: FunctionState) -> Usual:
    """Return how calls have been since the first of the open violations began."""
    return usual_of(_since(function))


def _since(function: FunctionState) -> tuple[Observation, ...]:
    moment_ns = min((one.since_ns for one in function.violations.open), default=0)
    return since(function.history.longest, moment_ns)


def _before(function: FunctionState) -> tuple[Observation, ...]:
    """Return the windows that ended before the first of the open violations began."""
    moment_ns = min((one.since_ns for one in function.violations.open), default=0)
    return tuple(one for one in function.history.longest if one.end_ns <= moment_ns)


def followed_since(violation: Violation, function: FunctionState) -> Waits | None:
    """Return where calls waited since a violation began."""
    return pooled_waits(each for each in function.waits if each.end_ns > violation.since_ns)


def facts_of(
    violation: Violation,
    function: FunctionState,
    through: Callee | None,
    functions: Mapping[str, FunctionState],
    state: ControllerState,
    usual: Usual,
    now: Usual,
) -> Facts:
    """Return the facts from which the cause of a violation is decided, but for what is common to the whole host.

    Parameters
    ----------
    violation : Violation
    function : FunctionState
        Whose violation it is.
    through : Callee, optional
        The violated function that explains it.
    functions : mapping of str to FunctionState
        All functions, for the machine code of other builds.
    state : ControllerState
        For lifetimes and the host.
    usual, now : Usual
        Calls as they were learned, and since the violation began.
    """
    yardstick = function.violations.yardstick
    named = function.function
    new_build, code = "", "same"
    changed: tuple[str, ...] = ()
    if yardstick is not None and yardstick.build_id != named.build_id:
        new_build = named.build_id
        code, changed = _code_against(function, yardstick.build_id, functions)
    cpus = cpus_of(state)
    shortage = shortage_of(function, state.shortages)
    return Facts(
        direction=violation.direction,
        new_paths=violation.what is What.PATH,
        usual=usual,
        now=now,
        quantile=quantile_of(violation),
        typical=violation.what is What.LEVEL and violation.expression != TRUE and violation.quantile == "p50",
        new_build=new_build,
        code=code,
        changed_callees=changed,
        started=_started(violation, function, state),
        callee=through,
        mix=_mix(function),
        waits=wait_growth(usual, now, followed_since(violation, function)),
        inside=callee_growth(_before(function), _since(function)),
        shortage=in_words(shortage, others_of(state.account), cpus) if shortage is not None else "",
        short_of_cpu=shortage is not None and shortage.since_ns > 0,
        throttled=shortage is not None and shortage.throttled_more,
        supplied=shortage is not None and shortage.is_as_usual,
        busy=busy_cpus(state.account, cpus),
    )


def busy_cpus(account: BudgetAccount, cpus: int) -> str:
    """Return how many CPUs the watched programs keep busy, if it is they who fill the CPUs, and more than usual.

    Parameters
    ----------
    account : BudgetAccount
        Knows the CPU time of the programs and of the host, now and usually.
    cpus : int
        CPUs of the host; 0: not known.

    Returns
    -------
    str
        In words; '' if others fill them, or nobody does.
    """
    now, usual = account.cpu_rate / SECOND, account.usual_cpu_rate / SECOND
    if not cpus or now < BUSIER * usual:
        return ""
    host, host_grew = account.host_rate / SECOND, (account.host_rate - account.usual_host_rate) / SECOND
    filled = host >= FULL * cpus and now - usual >= max(LEAST_GROWN * cpus, GREW * host_grew)
    if now < BUSY * cpus and not filled:
        return ""
    return f"the watched programs keep {now:.1f} of {cpus} CPUs busy, usually {usual:.1f}"


def _code_against(
    function: FunctionState, build_id: str, functions: Mapping[str, FunctionState]
) -> tuple[str, tuple[str, ...]]:
    """Return whether machine code differs from that in another build, and which callees' code does."""

    earlier = {
        (each.function.name, each.function.module): each.function.code
        for each in functions.values()
        if each.function.build_id == build_id
    }

    def compared(one: FunctionState) -> bool | None:
        named = one.function
        return same_code(earlier.get((named.name, named.module), ""), named.code)

    texts = {None: "unknown", True: "same", False: "changed"}
    changed = sorted(
        each.function.name
        for each in callees_of(function.key, functions)
        if each.function.build_id == function.function.build_id and compared(each) is False
    )
    return texts[compared(function)], tuple(changed)


def _started(violation: Violation, function: FunctionState, state: ControllerState) -> str:
    """Return which run of the program started shortly before, in words."""
    near = [
        each
        for each in state.lifetimes.values()
        if each.build_id == function.function.build_id
        and violation.since_ns - NEAR_NS <= each.start_ns <= violation.since_ns + AFTER_NS
        and each.start_ns > state.began_ns
    ]
    if not near:
        return ""
    newest = max(near, key=lambda each: each.start_ns)
    return f"a new run of it started {age(max(0.0, (violation.since_ns - newest.start_ns) / SECOND))} before"


def _mix(function: FunctionState) -> float | None:
    """Return the largest change of a share of the calls since the change, by their near callers; None without paths."""
    result = function.explanation.result
    observed = [one for one in _since(function) if one.paths]
    if result is None or not observed:
        return None
    before, after = Counter[tuple[Frame, ...]](), Counter[tuple[Frame, ...]]()
    for each in result.paths:
        before[each.path.near] += each.calls
    for one in observed:
        for part in one.paths:
            after[part.path.near] += part.histogram.total
    totals = before.total(), after.total()
    if not totals[0] or not totals[1]:
        return None
    paths = {*before, *after}
    return max(abs(before[path] / totals[0] - after[path] / totals[1]) for path in paths)
