"""The weight of the controller itself: its start takes half a CPU second, which others must not wait for.

The controller leads a session of its own, so where the kernel groups tasks by session it is weighed as one; the nice
value of that group counts, not the process's own.
"""

from __future__ import annotations

import contextlib
import os

LOWEST, ORDINARY = 19, 0


def weigh(nice: int) -> bool:
    """Give the session of this process the weight of a nice value; False if that cannot be done or is not its own."""
    if os.getsid(0) != os.getpid():
        return False
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/autogroup", os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(fd, str(nice).encode("ascii")) > 0
        finally:
            os.close(fd)
    return False
