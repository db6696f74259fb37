"""Target programs spin where a server would rest: in tests they yield to all else that runs on the host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

NICENESS = 10
"""Beside a target the daemon, at 19, has an eighth of a CPU; at 0 it has a hundredth. At 19 a target would starve on a
busy host as the daemon does, and tests wait for its calls."""


@contextmanager
def yielding() -> Iterator[None]:
    """Start what is started meanwhile at a low priority; benches, which judge times, leave it as it is."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    lower = "PYTEST_CURRENT_TEST" in os.environ and os.geteuid() == 0  # who is not root cannot go back
    if lower:
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    try:
        yield
    finally:
        if lower:
            os.setpriority(os.PRIO_PROCESS, 0, before)
