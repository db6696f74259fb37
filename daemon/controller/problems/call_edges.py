"""Which violated functions call which, directly or through others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.sampling.profile import Profile

DEEPEST = 8
"""Callers of callers are followed so far."""


def calls_among(
    keys: Collection[str], functions: Mapping[str, FunctionState], unfollowed: Mapping[str, Profile]
) -> set[tuple[str, str]]:
    """Return the pairs (caller, callee) of functions of which one lies above the other on stacks.

    Call paths tell it where they were observed, and what was timed inside calls; samples of stacks elsewhere.

    Parameters
    ----------
    keys : collection of str
        The functions asked for.
    functions : mapping of str to FunctionState
    unfollowed : mapping of str to Profile
        What sampling found of functions between these that nobody follows.
    """
    named = {(functions[key].function.name, functions[key].function.module): key for key in keys}
    found = {(key, below) for key in keys for below in _inside(functions[key], named) if below != key}
    for key in keys:
        for above in {*_on_paths(functions[key], named), *callers_of(key, functions, unfollowed)}:
            if above in keys and above != key:
                found.add((above, key))
    return found


def callees_of(key: str, functions: Mapping[str, FunctionState]) -> list[FunctionState]:
    """Return the functions that samples showed to be called by one."""
    return [each for each in functions.values() if any(caller == key for caller, _ in each.profile.callers)]


def part_through(caller: str, callee: FunctionState) -> float:
    """Return the share of a function's time that it takes for one direct caller; 1 where samples do not tell."""
    total = sum(time_ns for _, time_ns in callee.profile.callers)
    through = sum(time_ns for key, time_ns in callee.profile.callers if key == caller)
    return through / total if total > 0 and through > 0 else 1.0


def _on_paths(function: FunctionState, named: Mapping[tuple[str, str], str]) -> Iterator[str]:
    result = function.explanation.result
    paths = [each.path for each in result.paths] if result is not None else []
    paths += [each.path for one in function.history.paths[-1:] for each in one.paths]
    for path in paths:
        for frame in path.frames[:-1]:
            key = named.get((frame.name, frame.module))
            if key is not None:
                yield key


def _inside(function: FunctionState, named: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the functions that were timed inside its newest calls."""
    for one in (*function.history.timing[-1:], *function.history.paths[-1:]):
        for part in one.inside:
            for callee in (each.callee for reached in part.sets for each in reached.callees):
                key = named.get((callee.name, callee.module))
                if key is not None:
                    yield key


def callers_of(key: str, functions: Mapping[str, FunctionState], unfollowed: Mapping[str, Profile]) -> set[str]:
    """Return all that lie above a function by the callers that samples found, step by step."""

    def direct(one: str) -> set[str]:
        profile = functions[one].profile if one in functions else unfollowed.get(one, Profile())
        return {caller for caller, _ in profile.callers}

    above: set[str] = set()
    last = {key}
    for _ in range(DEEPEST):
        callers = {caller for one in last for caller in direct(one)} - above - {key}
        if not callers:
            break
        above |= callers
        last = callers
    return above
