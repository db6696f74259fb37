"""The daemon's priority: everything else on the host gets CPU time and disk first."""

from __future__ import annotations

import contextlib
import ctypes
import os

from specmine.model.errors import HostError
from specmine.probes.arch.machine import machine

_IDLE_CLASS = 3 << 13
_WHO_PROCESS = 1


def lower_priority() -> None:
    """Give all threads the lowest ordinary CPU priority and idle disk priority; later children inherit both.

    Those that have raised theirs keep it: the heartbeat must not wait.

    Not SCHED_IDLE: on a host without an idle CPU it could starve the heartbeat that keeps the probes on, and
    the probes would be detached just when the host is busy. At nice 19 some time is left: 1.5 % next to a busy
    thread. A missing right is no error.
    """
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(OSError):
            if os.getpriority(os.PRIO_PROCESS, thread) >= 0:
                os.setpriority(os.PRIO_PROCESS, thread, 19)
        with contextlib.suppress(HostError):
            ioprio_set = machine().syscalls["ioprio_set"]
            ctypes.CDLL(None, use_errno=True).syscall(ioprio_set, _WHO_PROCESS, thread, _IDLE_CLASS)
