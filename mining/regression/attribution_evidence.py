"""What else is known of a change, weighed against what the durations alone speak for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .attribution import Blame
from .code_diff import Code, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something of the host that was measured in the lifetimes of both sides."""

    name: str
    """As people say it: time stolen by the hypervisor, time in which tasks waited for a CPU."""
    shares: tuple[float, float]
    """Of the time watched, base and new, means over lifetimes."""
    grown: bool
    """For sure, and by as much as matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known besides the durations."""

    code: Code | None = None
    """What became of the function's own machine code; None if that is not known."""
    suspects: tuple[Name, ...] = ()
    """Functions with changed code that it reaches."""
    exchanged: tuple[Name, ...] = ()
    """Functions that lost what this one gained, or the other way round."""
    conditions: Sequence[Condition] = ()


def weighed(blame: Blame, ratio: float, evidence: Evidence) -> Blame:  # noqa: PLR0911 (a table of cases)
    """Return the blame with what else is known.

    Notes
    -----
    In this order: cost that only moved is the code's doing, and no loss. A worse function whose host was busier
    by at least half the excess is not blamed on code, unless code that it reaches changed: then it cannot be told.
    Classes that moved although no machine code did that the function reaches are no sign of changed code.
    """
    if blame.cause == "load":
        return blame
    named = ", ".join(name for name, _ in evidence.suspects[:3])
    changed = evidence.code in (Code.CHANGED, Code.NEW) or bool(evidence.suspects)
    if evidence.exchanged:
        other = ", ".join(name for name, _ in evidence.exchanged[:3])
        direction = "lost" if ratio > 1.0 else "gained"
        return replace(blame, cause="code", reason=f"its cost moved: {other} {direction} as much")
    busy = [each for each in evidence.conditions if each.grown]
    enough = [each for each in busy if each.shares[1] - each.shares[0] >= 0.5 * (ratio - 1.0)]
    if ratio > 1.0 and enough:
        said = "; ".join(_told(each) for each in enough)
        if changed:
            what = f"the code of {named} changed" if named else "its code changed"
            return replace(blame, cause="unknown", reason=f"{what}, but {said}")
        return replace(blame, cause="host", reason=said)
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


def _told(each: Condition) -> str:
    before, after = each.shares
    return f"{each.name}: {100 * before:.3g} % of the time became {100 * after:.3g} %"
