"""The metrics of functions and of their violations, each with what it reads of a snapshot (``snapshot``)."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.model.violation import ViolationState

from .family import Family, counter, gauge, labelled, quantiles
from .snapshot import FunctionSnapshot
from .violation_snapshot import ShownViolation, bounds, seconds

_VERDICTS = ("holds", "violated", "unknown")


def one_of(verdict: str, verdicts: Sequence[str]) -> dict[str, float]:
    """Return 1 for the present verdict and 0 for the others."""
    return {each: float(verdict == each) for each in verdicts}


OF_A_FUNCTION = ("program", "function", "module")
"""The first labels of all that is of a function; a new build has the same ones."""

OF_FUNCTIONS: tuple[Family[FunctionSnapshot], ...] = labelled(
    OF_A_FUNCTION,
    gauge("function_info", "A function and the build it belongs to; always 1.", lambda f: {f.build_id: 1}, "build_id"),
    gauge(
        "function_state",
        "The state of a function: 1 for the present one, others absent.",
        lambda f: {f.state: 1},
        "state",
    ),
    gauge("utility_ratio", "How much is to be learned by observing the function now.", lambda f: f.utility),
    counter("function_calls", "Calls counted while the function was watched.", lambda f: f.calls, folded=True),
    counter("function_timed_calls", "Calls whose duration was measured.", lambda f: f.totals.timed, folded=True),
    counter(
        "watched_seconds",
        "Time for which the function's calls were counted.",
        lambda f: f.watched_ns / 1e9,
        folded=True,
    ),
    counter(
        "function_overhead_seconds",
        "Predicted CPU time that watching the function added.",
        lambda f: f.cost_ns / 1e9,
        folded=True,
    ),
    counter(
        "lost_seconds",
        "Estimated time that calls took more than asserted, all calls together.",
        lambda f: f.lost_ns / 1e9,
    ),
    counter(
        "timed_call_seconds",
        "Time in timed calls: running, waiting for a CPU, blocked.",
        lambda f: f.parts_seconds,
        "part",
    ),
    gauge(
        "on_cpu_assertion_state",
        "Last verdict on what is asserted of time on CPU.",
        lambda f: one_of(f.on_cpu, _VERDICTS) if f.on_cpu else None,
        "state",
    ),
    # per behaviour and class of a function with an assertion
    gauge(
        "behaviour_info",
        "A behaviour and its expression; always 1.",
        lambda f: {(each.id, f.build_id, each.expression): 1 for each in f.behaviours},
        *("behaviour", "build_id", "expression"),
    ),
    counter("calls", "Calls by behaviour and class of durations.", lambda f: f.class_calls, "behaviour", "upper"),
    counter(
        "call_seconds",
        "Time in calls by behaviour and class of durations.",
        lambda f: f.class_seconds,
        *("behaviour", "upper"),
    ),
    gauge(
        "assertion_share_ratio",
        "Share of a behaviour's calls that the assertion expects in a class.",
        lambda f: {
            (each.id, upper): share for each in f.behaviours for upper, share in zip(f.uppers, each.shares, strict=True)
        },
        *("behaviour", "upper"),
    ),
    gauge(
        "assertion_state",
        "Verdict of the last check of an assertion: one state is 1.",
        lambda f: {
            (each.id, verdict): value
            for each in f.behaviours
            for verdict, value in one_of(each.verdict, _VERDICTS).items()
        },
        *("behaviour", "state"),
    ),
    gauge(
        "assertion_last_check_timestamp_seconds",
        "When the assertion was last checked.",
        lambda f: {each.id: f.checked_utc_ns / 1e9 for each in f.behaviours} if f.checked_utc_ns is not None else None,
        "behaviour",
    ),
    quantiles(
        "expected_seconds",
        "Range in which a quantile of an unchanged program's calls stays.",
        lambda f: {(each.id, *key): end for each in f.behaviours for key, end in bounds(each.expected).items()},
        *("behaviour", "quantile", "bound"),
    ),
    quantiles(
        "observed_seconds",
        "The same quantile of the newest calls.",
        lambda f: {(each.id, name): value for each in f.behaviours for name, value in seconds(each.observed).items()},
        *("behaviour", "quantile"),
    ),
    gauge("suspected", "1 while a change is suspected that is not certain yet, else 0.", lambda f: f.suspected),
    gauge("detectable_ratio", "Factor of a slowdown that would be found within a minute.", lambda f: f.detectable),
)

OF_VIOLATIONS: tuple[Family[ShownViolation], ...] = labelled(
    (*OF_A_FUNCTION, "behaviour", "what", "direction"),
    gauge("violation", "1 while an assertion is violated; 0 for five minutes after that.", lambda v: v.is_open),
    gauge(
        "violation_info",
        "Likely cause of a violation, the function that explains it, which calls, and what people read; always 1.",
        lambda v: {v.info: 1},
        *("cause", "because", "where", "title", "text"),
    ),
    gauge("violation_factor_ratio", "Observed over expected.", lambda v: v.violation.factor),
    gauge("violation_start_timestamp_seconds", "When the change began.", lambda v: v.started),
    quantiles(
        "violation_expected_seconds",
        "Quantiles as asserted.",
        lambda v: seconds(v.violation.expected),
        "quantile",
    ),
    quantiles(
        "violation_observed_seconds",
        "Quantiles since the change.",
        lambda v: seconds(v.violation.observed),
        "quantile",
    ),
    gauge(
        "violation_time_ratio",
        "Share of the program's time that the change costs, where sampling knows it.",
        lambda v: v.violation.time_share or None,
    ),
    gauge(
        "violation_acknowledged",
        "1 if somebody acknowledged the violation, else 0.",
        lambda v: v.violation.state is ViolationState.ACKNOWLEDGED,
    ),
    gauge(
        "violation_explained",
        "1 if another violated function explains the violation, else 0.",
        lambda v: v.is_explained,
    ),
)
