"""Why a function is in its state and what would move it on; the codes are stable and documented."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.daemon.config.settings import SECOND, Settings
from specmine.mining.borders.course import Kind
from specmine.mining.borders.inference import Inference
from specmine.model.function import Reason
from specmine.model.text import age, duration

HINTS = frozenset({"excluded", "ignored"})
"""Codes of refusals that the user asked for."""
LEARNED_DURING = "learned-while-slower"
PASSING = frozenset({"debugger", "many-pages", "slots"})
"""Codes of refusals that may end by themselves, and soon."""
TRIED_AGAIN = frozenset(
    {
        "busy-return-site", "changed-text", "huge-page-text", "kernel-refuses", "no-return-site", "seccomp",
        "shadow-stack", "unclear-recursion", "unfollowed", "unreadable", "unwinder", "writable-text",
    }
)  # fmt: skip
"""Codes of refusals that come from the processes and the load of then; all others are properties of the file."""


def _because(code: str, text: str, remedy: str) -> Reason:
    return Reason(code=code, text=text, remedy=remedy)


def _calls(rate: float) -> str:
    return f"{rate:,.0f} calls a second" if rate >= 10 else f"{rate:.2g} calls a second"


def queued(share: float) -> Reason:
    """Worth measuring, not looked at yet."""
    return _because("queued", f"{100 * share:.1f} % of the time; its first look is to come", "wait: others have theirs")


def cold(share: float, least: float) -> Reason:
    """Too little time is spent in it."""
    return _because(
        "cold",
        f"{100 * share:.2f} % of the time; measured from {100 * least:.1f} %",
        "name it with --function to measure it anyway",
    )


def unnamed() -> Reason:
    """The user named functions, and not this one."""
    return _because("unnamed", "functions.watch names other functions", "name it there, or name none")


def counting() -> Reason:
    """It has its first look."""
    return _because("counting", "its first calls are being timed; they tell what its windows cost", "wait a second")


def no_budget(rate: float, cost: float, budget: float) -> Reason:
    """No share of the budget is left for it."""
    return _because(
        "budget",
        f"{_calls(rate)} would cost {cost / 1e6:.3g} ms a second; the budget ({budget / 1e6:.3g} ms) is in use",
        "wait until others are learned, or raise the budget",
    )


def shared() -> Reason:
    """Other hosts of the fleet observe it."""
    return _because(
        "shared", "other hosts of the fleet observe it", "wait: they tell what they learn; or set fleet.mode to send"
    )


def tried_again(reason: Reason, after_ns: int) -> Reason:
    """It is refused for what may be gone later."""
    again = f"tried again after {after_ns // SECOND} s"
    return _because(reason.code, reason.text, f"{again}; {reason.remedy}" if reason.remedy else again)


def unmapped() -> Reason:
    """Its build runs nowhere on this host."""
    return _because("unmapped", "no process maps its build any more", "it goes on when that build runs again")


def too_fast(rate: float, limit: float) -> Reason:
    """This kernel cannot take its probe off fast enough."""
    return _because(
        "too-fast",
        f"{_calls(rate)}; with the links of this kernel at most {limit:,.0f}",
        "a kernel with uprobe_multi links can time it in short phases",
    )


def no_slot(limit: int, *, held_back: bool = False) -> Reason:
    """All slots for probes are in use; ``held_back``: there are few since our own CPU time must be saved."""
    if held_back:
        return _because(
            "slots",
            f"specmine's own CPU time is near its limit, so {limit} functions are learned at a time",
            "wait until others are learned, or raise budget.agent",
        )
    return _because("slots", f"all {limit} probe slots are in use", "wait until others are learned")


def learning(have: int, need: int, what: str, rate: float | None, settings: Settings) -> Reason:
    """Not enough observations that agree; ``what`` is what is observed."""
    least_calls = settings.mining.minimum_calls
    text = f"{have} of {need} {what} of at least {least_calls} calls"
    missing = max(1, need - have)
    if rate is None or rate <= 0:
        return _because("learning", f"{text}; no call yet", "it must be called: a call that began before is not timed")
    seconds = max(least_calls / rate, 0.0) * missing
    if seconds > 2 * missing * settings.window_ns / SECOND:
        return _because("slow", f"{text}; {_calls(rate)}", f"{missing} more: {seconds:,.0f} s at this rate")
    return _because("learning", text, f"{missing} more")


def mining() -> Reason:
    """The worker computes."""
    return _because("mining", "call paths are observed; they are being grouped", "wait: it takes a second")


def unstable(tried: int, again_ns: int, chain: Inference | None) -> Reason:
    """Parked."""
    course = unsteady(chain)
    again = f"tried again after {again_ns // SECOND} s"
    if course is not None:
        return _because(course.code, course.text, f"{again}; {course.remedy}")
    return _because(
        "unstable", f"{tried} observations and too few running that agree", f"{again}; a steadier load helps"
    )


def unsteady(chain: Inference | None) -> Reason | None:
    """Durations that drift, follow a wave, or differ between observations; None if their level has no course."""
    course = chain.course if chain is not None else None
    if course is None:
        return None
    ends = f"from {duration(course.first_ns * 1e-9)} to {duration(course.last_ns * 1e-9)}"
    span = age(course.span_ns * 1e-9) if course.span_ns else ""
    steady = "watch it under a steady load"
    if course.kind is Kind.DRIFT:
        text = f"its durations drift: {ends} in {span}" if span else f"its durations drift: {ends}"
        return _because("drift", text, "look for what grows: data, memory, a queue")
    if course.kind is Kind.WAVE:
        text = f"its durations follow a wave: {ends} and back" + (f" every {span}" if span else "")
        return _because("wave", text, f"{steady}, or over one part of the wave")
    text = f"its durations differ between observations, {ends}, and not inside one"
    return _because("mixture", text, f"{steady}, or each of its phases alone")


_UNEXPLAINED = {
    "one-group": (
        "its classes occur alike on all call paths",
        "something else decides: arguments, data, the machine",
    ),
    "one-path": (
        "all its calls come over one call path",
        "something else decides: arguments, data, the machine",
    ),
    "same-edges": (
        "call paths behave differently, but no set of call edges distinguishes them",
        "how often or in which order edges occur may decide",
    ),
    "path-variation": (
        "its call paths differ no more than the paths of one behaviour do",
        "mine it longer; else something else decides: arguments, data, the machine",
    ),
    "by-lot": (
        "its call paths differ, but call edges tell which no shorter than a list of the paths",
        "something else decides: arguments, data; its list of paths shows each with its classes",
    ),
    "poor-fit": (
        "less than nine tenths of its calls are on complete call paths that an expression fits",
        "if paths are incomplete, keep the unwind tables of its libraries",
    ),
    "unseen-paths": (
        "its call paths were not observed: this execution alone showed no classes",
        "mine it longer",
    ),
    "no-complete-path": (
        "none of its call paths is complete",
        "build with frame pointers, or keep the unwind tables of its libraries",
    ),
}


def unexplained(why: str) -> Reason:
    """Classes that call paths do not distinguish."""
    text, remedy = _UNEXPLAINED[why]
    return _because(why, text, remedy)


def by_waiting(labels: Sequence[str]) -> Reason:
    """Classes that differ by how long calls waited for a CPU or were blocked, not by their call paths."""
    named = f" ({'; '.join(dict.fromkeys(labels))})" if labels else ""
    return _because(
        "waiting",
        f"how long calls waited or were blocked distinguishes its classes better than call paths do{named}",
        "look at the host's load, its limits, and at what the function waits for",
    )


def mining_failed(failure: str) -> Reason:
    """The worker failed twice."""
    return _because("mining-failed", f"grouping its call paths failed: {failure}", "report a bug with a recording")


def learned_during(functions: Sequence[str]) -> Reason:
    """Learned while other functions of the program were slower: whether that is usual is not known."""
    names = ", ".join(dict.fromkeys(functions[:3]))
    return _because(
        LEARNED_DURING,
        f"learned while {names} took longer than usual; not asserted",
        "it is learned anew once that is over; specmine acknowledge says that it is wanted",
    )


def violated(subjects: int) -> Reason:
    """What was asserted is no longer true."""
    what = "the assertion no longer holds" if subjects == 1 else f"{subjects} assertions no longer hold"
    return _because("violated", what, "specmine violations says what changed; specmine acknowledge accepts it")


def violated_off_cpu(reason: Reason, waiting: float, blocked: float) -> Reason:
    """What was asserted of durations is no longer true, but what was asserted of time on CPU is."""
    return _because(
        reason.code,
        f"{reason.text}; its time on CPU is as asserted, of their time calls wait {100 * waiting:.0f} % for a CPU"
        f" and are blocked {100 * blocked:.0f} %",
        "look at the host's load and at what it waits for before the code",
    )


def excluded() -> Reason:
    """The user does not want it."""
    return _because("excluded", "a hint excludes it", "remove the hint that names it")
