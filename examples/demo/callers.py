"""What the nameless callers of semop are, and whether they distinguish its behaviours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from examples.demo.locks import Caller, semop_callers

SEMOP = ("semop", "semtimedop")
"""glibc's semop jumps into semtimedop: the same calls have both names."""


def explain(functions: Sequence[Mapping[str, Any]], libapr: Path) -> bool:
    """Say what semop's nameless callers are; True if some of them distinguish its behaviours."""
    expressions = [b["expression"] for f in functions if f["function"] in SEMOP for b in f["behaviours"]]
    edges = {atom for expression in expressions for atom in atoms(expression)}
    callers = semop_callers(libapr)
    if not any(edge.endswith(ends(caller)) for edge in edges for caller in callers):
        print(f"   its callers do not distinguish semop's behaviours yet; its expressions: {expressions or 'none'}")
        return False
    for caller in callers:
        print(f"   {libapr.name}+0x{caller.offset:x} = {caller.role}: {caller.evidence}")
        for edge in sorted(e for e in edges if e.endswith(ends(caller))):
            print(f"      so `{edge}` holds for the calls that {caller.role} the accept mutex")
    return True


def ends(caller: Caller) -> tuple[str, ...]:
    """Return how the call edges from a caller to semop end."""
    return tuple(f"+0x{caller.offset:x}->{name}" for name in SEMOP)


def atoms(expression: str) -> list[str]:
    """Return the call edges of an expression, without quotes."""
    words = re.split(r" (?:and|or) ", expression)
    return [w.removeprefix("not ").replace("`", "") for w in words]
