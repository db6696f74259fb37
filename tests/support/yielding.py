"""Target programs spin where a server would rest: in tests they yield to all else that runs on the host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

LOWEST = 19
"""The priority of the daemon, too."""


@contextmanager
def yielding() -> Iterator[None]:
    """Start what is started meanwhile with the lowest priority; benches, which judge times, leave it as it is."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    lower = "PYTEST_CURRENT_TEST" in os.environ and os.geteuid() == 0  # who is not root cannot go back
    if lower:
        os.setpriority(os.PRIO_PROCESS, 0, LOWEST)
    try:
        yield
    finally:
        if lower:
            os.setpriority(os.PRIO_PROCESS, 0, before)
