"""Is one of our own processes stopped? Standard library only, for all who have a process to look after."""

from __future__ import annotations


def is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped, by a signal or a debugger."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (often called)
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False
