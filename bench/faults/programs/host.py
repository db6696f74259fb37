"""Faults of the host: competitors for CPUs and disk."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from bench.lib.child_processes import running

BUSY = 4


def spinning_beside(_: Path) -> ExitStack:
    """Run busy loops on all CPUs."""
    stack = ExitStack()
    for number in range(BUSY):
        cpu = number % (os.cpu_count() or 1)
        command = ("taskset", "-c", cpu, "sh", "-c", "while :; do :; done")
        stack.enter_context(running(command, start_new_session=True))
    return stack


def competing_writes(folder: Path) -> ExitStack:
    """Write and sync large blocks on the same file system, all the time."""
    stack = ExitStack()
    write = f"while :; do dd if=/dev/zero of={folder}/competitor bs=1M count=64 conv=fsync status=none; done"
    stack.enter_context(running(("sh", "-c", write), start_new_session=True))
    return stack
