"""The demo's disassembly: what nameless functions do to a semaphore."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.paths import DEMO

LOCKS = DEMO / "locks.py"


def _said(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_roles_are_read_from_a_stripped_library(program: Callable[..., Path]) -> None:
    """The names that strip took away are found again as roles; a struct on the stack stays unknown."""
    rows = [line.split() for line in _said("nm", program("sysvsem.so")).splitlines()]
    true = {row[2]: int(row[0], 16) for row in rows if len(row) == 3}
    said = _said(sys.executable, LOCKS, program("sysvsem.so", "stripped"))
    found = {int(at, 16): role for at, role in re.findall(r"^(0x\w+)  (.+?)  ", said, re.MULTILINE)}
    assert found == {
        true["sysv_lock"]: "lock",
        true["sysv_try"]: "try to lock",
        true["sysv_unlock"]: "unlock",
        true["sysv_other"]: "unknown",
    }
