"""What else is known of a change, weighed against what the durations alone speak for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .attribution import Blame
from .code_diff import Code, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known besides the durations."""

    code: Code | None = None
    """What became of the function's own machine code; None if that is not known."""
    suspects: tuple[Name, ...] = ()
    """Functions with changed code that it reaches."""
    exchanged: tuple[Name, ...] = ()
    """Functions that lost what this one gained, or the other way round."""


def weighed(blame: Blame, ratio: float, evidence: Evidence) -> Blame:
    """Return the blame with what else is known.

    Notes
    -----
    In this order: cost that only moved between functions is a change of code, and no loss. Changed code of the
    function, then of what it calls, is named. Classes that moved although no code did that the function reaches are no
    sign of changed code.
    """
    if blame.cause == "load":
        return blame
    named = ", ".join(name for name, _ in evidence.suspects[:3])
    if evidence.exchanged:
        other = ", ".join(name for name, _ in evidence.exchanged[:3])
        direction = "lost" if ratio > 1.0 else "gained"
        return replace(blame, cause="code", reason=f"its cost moved: {other} {direction} as much")
    if evidence.code is Code.CHANGED:
        return replace(blame, reason=f"its machine code changed; {blame.reason}")
    if named:
        return replace(blame, reason=f"the machine code of {named} changed, which it calls; {blame.reason}")
    if blame.cause == "code" and evidence.code in (Code.SAME, Code.MOVED):
        return replace(
            blame,
            cause="unknown",
            reason=f"{blame.reason}, but no machine code that it was seen to reach changed: data, layout or load",
        )
    return blame
