"""The likely cause of a change from its durations, corrected by what is known of the code and of other functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .attribution import OTHER_MIX, ChangeAttribution
from .code_diff import CodeChange, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvidence:
    """What is known besides the durations."""

    code: CodeChange | None = None
    """What became of the function's own machine code; None if that is not known."""
    suspects: tuple[Name, ...] = ()
    """Functions with changed code that it reaches."""
    exchanged: tuple[Name, ...] = ()
    """Functions that lost what this one gained, or the other way round."""


def weigh(attribution: ChangeAttribution, ratio: float, evidence: ChangeEvidence) -> ChangeAttribution:
    """Return the attribution with what else is known.

    Notes
    -----
    In this order: another mix of classes is no matter of the load where the function's own code changed, since calls
    that take half as long again may be in the next class. Cost that only moved between functions is a change of code,
    and no loss. Changed code of the function, then of what it calls, is named. Classes that moved although no code did
    that the function reaches are no sign of changed code.
    """
    own_code = evidence.code is CodeChange.CHANGED
    if attribution.cause == "load" and not (own_code and attribution.reason == OTHER_MIX):
        return attribution
    named = ", ".join(name for name, _ in evidence.suspects[:3])
    if evidence.exchanged:
        other = ", ".join(name for name, _ in evidence.exchanged[:3])
        direction = "lost" if ratio > 1.0 else "gained"
        return replace(attribution, cause="code", reason=f"its cost moved: {other} {direction} as much")
    if own_code:
        mixed = attribution.reason == OTHER_MIX
        reason = "the mix of its classes changed with it" if mixed else attribution.reason
        return replace(attribution, cause="code" if mixed else attribution.cause,
                       reason=f"its machine code changed; {reason}")  # fmt: skip
    if named:
        return replace(attribution, reason=f"the machine code of {named} changed, which it calls; {attribution.reason}")
    if attribution.cause == "code" and evidence.code in (CodeChange.SAME, CodeChange.MOVED):
        return replace(
            attribution,
            cause="unknown",
            reason=f"{attribution.reason}, but no machine code that it was seen to reach changed: data, layout or load",
        )
    return attribution
