"""Which functions' machine code differs between two builds, and which of them a change is likely to come from.

A digest (``probes/elf/parser/code_digest.py``) is ``scheme:code:names``. Linking anew leaves it as it is, so
functions found here were compiled to something else. That alone is no fault. Functions that
also take more CPU time, or longer a call, than before are ranked first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Name = tuple[str, str]
"""Function and module."""
SMALLEST_GROWTH = 0.01
"""Smallest growth of the share of CPU time that is reported ..."""
SURE = 3.0
"""... if it is so many standard errors of the samples' counts."""
WORTH_SHARE = 0.01
"""A function reached in one build only is reported from this share of the CPU time on."""


class CodeChange(StrEnum):
    """How a function's machine code changed between two builds."""

    CHANGED = "changed"
    MOVED = "moved"
    """The same code at another offset."""
    SAME = "same"
    NEW = "new"
    """Reached in the new build only."""
    GONE = "gone"
    """Reached in the base only."""
    UNKNOWN = "unknown"


_UNCHANGED = (CodeChange.SAME, CodeChange.MOVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedFunction:
    """A function that was sampled on a stack or observed in one build."""

    name: Name
    key: str = ""
    """Build-id of its file with its offset: where both are equal, so is the code. '' if not known."""
    digest: str = ""
    offset: int = 0
    samples: float = 0.0
    """Samples of the CPU clock with the function innermost, as many as that time is worth."""
    share: float | None = None
    """Of the build's CPU time, with the function innermost; None if nothing was sampled."""
    callers: Mapping[Name, float] = field(default_factory=dict)
    """With the time over each of them; 0 where it is only known that it calls."""
    inside: float | None = None
    """Share of its time in which it stood innermost; None if nothing was sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A function that a change may come from, and why."""

    name: Name
    code: CodeChange
    shares: tuple[float | None, float | None] = (None, None)
    """Of CPU time inside the function itself, base and new."""
    grown: bool = False
    """Takes a larger share of the CPU's time for sure, or longer a call."""
    ratio: float | None = None
    """Of its durations, new over base, where it was observed in both."""
    through: tuple[Name, ...] = ()
    """Functions with changed code that it calls: why an unchanged one is here."""
    callers: tuple[Name, ...] = field(default=())


def same_code(first: str, second: str) -> bool | None:
    """Return whether two digests are of the same code, None if they cannot be compared."""
    one, other = first.split(":"), second.split(":")
    if len(one) != 3 or len(other) != 3 or one[0] != other[0]:
        return None
    if one[1] != other[1]:
        return False
    return one[2] == other[2] if one[2][:1] == other[2][:1] else True


def code_change(base: ReachedFunction | None, new: ReachedFunction | None) -> CodeChange:
    """Return how the code of a function changed that was reached in at least one build."""
    if base is None or new is None:
        return CodeChange.NEW if base is None else CodeChange.GONE
    if base.key and base.key == new.key:
        return CodeChange.SAME
    same = same_code(base.digest, new.digest)
    if same is None:
        return CodeChange.UNKNOWN
    if not same:
        return CodeChange.CHANGED
    return CodeChange.SAME if base.offset == new.offset else CodeChange.MOVED


def rank_suspects(
    base: Mapping[Name, ReachedFunction], new: Mapping[Name, ReachedFunction], worse: Mapping[Name, float]
) -> tuple[Suspect, ...]:
    """Rank the functions that a change between two builds may come from.

    Parameters
    ----------
    base, new : mapping
        The functions reached in each build.
    worse : mapping from function to float
        Ratio of durations, new over base, of those that are worse for sure.

    Returns
    -------
    tuple of Suspect
        Changed code that takes more time first, then other changed code, new functions, and last functions whose
        own code is as it was and that are worse: behind the changed ones that they call. A function that went
        away is never suspected.
    """
    code = {name: code_change(base.get(name), new.get(name)) for name in {*base, *new}}
    changed = {name for name, what in code.items() if what is CodeChange.CHANGED}
    fresh = {name for name, what in code.items() if what is CodeChange.NEW and (new[name].share or 0.0) >= WORTH_SHARE}
    callers = {name: new[name].callers for name in new}
    found = []
    for name in changed | fresh | (set(worse) & set(new)):
        one, other = base.get(name), new[name]
        through = () if name in changed | fresh else _below(name, callers, changed | fresh)
        if name not in changed | fresh and not through:
            continue
        found.append(
            Suspect(
                name=name,
                code=code[name],
                shares=(one.share if one else None, other.share),
                grown=name in worse or _grown(one, other),
                ratio=worse.get(name),
                through=through,
                callers=tuple(sorted(other.callers)),
            )
        )
    return tuple(sorted(found, key=_rank))


def unchanged_code(
    name: Name, base: Mapping[Name, ReachedFunction], new: Mapping[Name, ReachedFunction]
) -> bool | None:
    """Return whether the code of a function and of all that it was seen to call is the same in both builds.

    Parameters
    ----------
    name : tuple
        Function and module.
    base, new : mapping
        The functions reached in each build.

    Returns
    -------
    bool or None
        None if it is not known: where nothing was sampled, nobody knows what it calls. Callees whose code is not known,
        or that one build alone reached, count only from ``WORTH_SHARE`` of the CPU time on.
    """
    if name not in base or name not in new:
        return None
    below = _reached_from(name, base) | _reached_from(name, new)
    changes = {each: code_change(base.get(each), new.get(each)) for each in below}
    if CodeChange.CHANGED in changes.values():
        return False
    if changes[name] not in _UNCHANGED or base[name].share is None or new[name].share is None:
        return None
    doubtful = [each for each, what in changes.items() if what not in _UNCHANGED]
    shares = [side[each].share or 0.0 for each in doubtful for side in (base, new) if each in side]
    return True if max(shares, default=0.0) < WORTH_SHARE else None


def count_changes(base: Mapping[Name, ReachedFunction], new: Mapping[Name, ReachedFunction]) -> dict[CodeChange, int]:
    """Return how many functions there are of each kind."""
    kinds = [code_change(base.get(name), new.get(name)) for name in {*base, *new}]
    return {kind: kinds.count(kind) for kind in CodeChange}


def _grown(base: ReachedFunction | None, new: ReachedFunction) -> bool:
    if new.share is None:
        return False
    before, samples = (base.share or 0.0, base.samples) if base is not None else (0.0, 0.0)
    error = math.hypot(*(share / math.sqrt(max(count, 1.0)) for share, count in
                         ((before, samples), (new.share, new.samples))))  # fmt: skip
    return new.share - before >= max(SMALLEST_GROWTH, SURE * error)


def _reached_from(name: Name, reached: Mapping[Name, ReachedFunction]) -> set[Name]:
    """Return a function and all that it reaches by calls."""
    return {name, *_below(name, {each: one.callers for each, one in reached.items()}, set(reached))}


def _below(name: Name, callers: Mapping[Name, Mapping[Name, float]], wanted: set[Name]) -> tuple[Name, ...]:
    """Return the wanted functions that are reached from one by calls."""
    seen: set[Name] = set()
    level = {name}
    while level:
        seen |= level
        level = {callee for callee, above in callers.items() if not level.isdisjoint(above)} - seen
    return tuple(sorted(seen & wanted))


def _rank(one: Suspect) -> tuple[bool, bool, bool, float, float, Name]:
    before, after = one.shares
    growth = (after or 0.0) - (before or 0.0)
    return bool(one.through), not one.grown, one.code is CodeChange.NEW, -growth, -(one.ratio or 0.0), one.name
