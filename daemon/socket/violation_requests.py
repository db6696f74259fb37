"""Which violations a request means, and who sent it."""

from __future__ import annotations

import pwd
from collections.abc import Mapping, Sequence

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.programs import programs_of
from specmine.model.globs import fits, matches
from specmine.model.violation import Violation, ViolationState

from .peer import Peer

_LONGEST_NAME = 64


def matching_violations(
    violations: Sequence[Violation],
    functions: Mapping[str, FunctionState],
    glob: str,
    build: str,
    among: frozenset[str] | None = None,
) -> list[Violation]:
    """Return the open violations of the functions that a glob names.

    Parameters
    ----------
    violations : sequence of Violation
    functions : mapping of str to FunctionState
    glob : str
        Name, or glob, of functions.
    build : str
        Beginning of the build-id of the function; '' for all.
    among : frozenset of str, optional
        Keys of the functions that may be meant: those of a program. None: all.
    """
    found = []
    for each in violations:
        function = functions.get(each.function)
        if each.state is not ViolationState.OPEN or function is None:
            continue
        named = function.function
        means = matches(named, [glob]) or fits(named.name, named.module, glob) or glob == named.key
        if means and named.build_id.startswith(build) and (among is None or named.key in among):
            found.append(each)
    return found


def names_of_open(violations: Sequence[Violation], functions: Mapping[str, FunctionState]) -> list[str]:
    """Return the functions of which a violation is open, as a person may name them."""
    opened = [each.function for each in violations if each.state is ViolationState.OPEN]
    return [functions[key].function.name for key in opened if key in functions]


def keys_of_program(state: ControllerState | None, program: str) -> frozenset[str] | None:
    """Return the keys of the functions of a program, or of a module, of this name; None for '', which means all."""
    if not program:
        return None
    functions = state.functions if state is not None else {}
    return frozenset(
        key
        for key, each in functions.items()
        if state is not None and program in (*programs_of(each, state), each.function.module)
    )


def with_explained(found: Sequence[Violation], violations: Sequence[Violation]) -> list[Violation]:
    """Return violations with the open ones that they explain: one problem is acknowledged as one."""
    chosen = list(found)
    for cause in chosen:  # grows meanwhile: what is explained may explain another one
        known = {each.id for each in chosen}
        chosen += [
            each
            for each in violations
            if each.state is ViolationState.OPEN and each.because == cause.function and each.id not in known
        ]
    return chosen


def user_of(peer: Peer, claimed: object) -> str:
    """Return the name of who asks: root may say for whom, as sudo does."""
    if peer.uid == 0 and isinstance(claimed, str) and claimed.isprintable() and 0 < len(claimed) <= _LONGEST_NAME:
        return claimed
    try:
        return pwd.getpwuid(peer.uid).pw_name
    except KeyError:
        return f"uid {peer.uid}"
