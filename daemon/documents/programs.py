"""Which program a function belongs to, for people: by name, since a build-id tells nobody what it is.

A function of a program's own file belongs to the programs that run this build. One of a library belongs to those in
whose lifetimes it was observed: as a rule one, since its windows keep to the program that was observed first.
"""

from __future__ import annotations

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState


def programs_of(function: FunctionState, state: ControllerState) -> tuple[str, ...]:
    """Return the names of the programs that a function belongs to, sorted; empty while that is not known."""
    if function.identity.programs:
        return tuple(sorted(function.identity.programs))
    lifetimes = state.lifetimes.values()
    own = {each.called for each in lifetimes if each.build_id == function.function.build_id}
    every = {each.called for each in lifetimes}
    return tuple(sorted(own or (every if len(every) == 1 else ())))


def program_of(function: FunctionState, state: ControllerState) -> str:
    """Return the program as one text; of several all names with commas between, '' while it is not known."""
    return ",".join(programs_of(function, state))
