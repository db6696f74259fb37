"""In which pid and time namespace we run, and whether the kernel's programs can know what we see."""

from __future__ import annotations

import os
from pathlib import Path

from specmine.model.errors import HostError

HOST_PID, HOST_TIME = "pid:[4026531836]", "time:[4026531834]"
"""The kernel gives the first namespaces these fixed numbers."""
_PROC = Path("/proc")
_TYPES = Path("/sys/kernel/btf/vmlinux")


def pid_namespace(pid: int | str = "self") -> str:
    """Return the pid namespace of a process as the kernel names it, '' if that cannot be read."""
    return _named(pid, "pid")


def own_pid_namespace() -> int:
    """Return the inode of this process's pid namespace; 0 if it is the host's, or cannot be read."""
    name = pid_namespace()
    return 0 if name in ("", HOST_PID) else int(name.rpartition("[")[2].rstrip("]"))


def check_own() -> None:
    """Refuse to work where the kernel's programs cannot know what we see (HostError).

    In a pid namespace of our own they look up which ids processes have there; what runs outside is not seen. A time
    namespace of our own is refused: the kernel times by the host's clock.
    """
    time = _named("self", "time")
    if time not in ("", HOST_TIME):
        raise HostError(
            f"specmine runs in a time namespace of its own ({time}), the kernel times by the host's clock",
            remedy="run specmine in the host's time namespace",
        )
    if not own_pid_namespace():
        return
    own, remedy = (
        f"specmine runs in a pid namespace of its own ({pid_namespace()})",
        "docker: --pid=host; kubernetes: hostPID",
    )
    if not _TYPES.exists():
        raise HostError(
            f"{own}, and this kernel does not tell its types (BTF), by which processes are found there",
            remedy=f"run specmine in the host's pid namespace ({remedy})",
        )
    if os.readlink(_PROC / "self") != str(os.getpid()):
        raise HostError(
            f"{own}, and {_PROC} shows another one's processes",
            remedy=f"mount {_PROC} in it, or run specmine in the host's pid namespace ({remedy})",
        )


def _named(pid: int | str, kind: str) -> str:
    try:
        return os.readlink(_PROC / str(pid) / "ns" / kind)
    except OSError:
        return ""
