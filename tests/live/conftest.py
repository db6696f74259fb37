"""After every live test: nothing that it started may be left running, not even what a killed parent left behind."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.breakpoints import family
from tests.support.product import wait_until

PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Become the parent of all orphans for the length of a test, and wait for the end of each."""
    prctl = ctypes.CDLL(None).prctl
    before = set(family(os.getpid()))
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    wait_until(lambda: not _living(set(family(os.getpid())) - before), "the end of what was left behind")
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _living(pids: set[int]) -> set[int]:
    """Return those that run; the others are orphans that have ended and wait for us."""
    living = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "Z":
            os.waitpid(pid, 0)
        else:
            living.add(pid)
    return living
