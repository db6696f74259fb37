"""The priority of the experiments' own process: its start takes half a CPU second, which others must not wait for.

The process leads a session of its own. Where the kernel groups tasks by session it weighs the session as a whole: the
nice value of that group counts, not that of the process.
"""

from __future__ import annotations

import contextlib
import os

LOWEST, ORDINARY = 19, 0


def set_self_priority(nice: int) -> bool:
    """Give the session of this process the weight of a nice value; False if that is impossible or it leads none."""
    if os.getsid(0) != os.getpid():
        return False
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/autogroup", os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(fd, str(nice).encode("ascii")) > 0
        finally:
            os.close(fd)
    return False
