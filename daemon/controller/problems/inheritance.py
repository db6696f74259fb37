"""From build to build: a new build is measured by the yardstick of the one before, and takes over what is open.

The old build's functions get no windows any more. So a violation that is open moves to the function of the same name
in the build that runs now, and closes there if it holds again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.function_violations import OpenViolation

Name = tuple[str, str]


def with_successors(functions: dict[str, FunctionState], state: ControllerState) -> None:
    """Move open violations of builds that run no more, in place.

    Parameters
    ----------
    functions : dict of str to FunctionState
    state : ControllerState
        For the lifetimes.
    """
    running = {each.build_id for each in state.running}
    left = [each for each in functions.values() if each.violations.standing and each.function.in_program]
    left = [each for each in left if each.function.build_id not in running]
    if not left or not running:
        return
    successors = _by_name(functions, running)
    for old in left:
        new = successors.get(_name(old))
        if new is None:
            continue
        moved = tuple(_moved(one, new.key) for one in old.violations.standing)
        known = {one.violation.identity for one in new.violations.standing}
        taken = tuple(one for one in moved if one.violation.identity not in known)
        violations = replace(new.violations, standing=(*new.violations.standing, *taken))
        functions[new.key] = replace(new, violations=violations)
        functions[old.key] = replace(old, violations=replace(old.violations, standing=(), alarms=(), examined=()))


def _by_name(functions: Mapping[str, FunctionState], running: set[str]) -> dict[Name, FunctionState]:
    """Return the functions of the builds that run, by name; of several the newest."""
    found = [each for each in functions.values() if each.function.build_id in running]
    return {_name(each): each for each in sorted(found, key=lambda each: (each.phase.since_ns, each.key))}


def _name(function: FunctionState) -> Name:
    return function.function.name, ",".join(function.identity.programs)


def _moved(one: OpenViolation, key: str) -> OpenViolation:
    return replace(one, violation=replace(one.violation, function=key), factors=())
