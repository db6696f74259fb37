"""A fifth of a service's CPU time for what is started by hand: the program that it watches gets CPU time first.

A nice value counts inside one session or control group only. So the process enters a group of a low weight: under
systemd a scope beside the services, elsewhere one at the top level. Where neither can be made, it takes the nice value
that weighs as little. Children that are started later are in the same group.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from specmine.experiments.host.cgroups import Hierarchy, group_of, hierarchy

WEIGHT = 20
SHARES = 1024 * WEIGHT // 100
"""As ``CPUWeight=`` of the unit, of 100 by default; and in version 1, of 1024."""
NICE = 7
"""Weighs 215 beside the 1024 of an ordinary process."""
NAME = "specmine-by-hand"
_SYSTEMD = Path("/run/systemd/system")
_START_S, _LOOK_S = 1.0, 0.01


@contextlib.contextmanager
def lighter() -> Iterator[str]:
    """Weigh a fifth of a service while this lasts; yields what does it.

    A service, and what runs in a container, keeps the group that it was given.
    """
    tree, pid = hierarchy(), os.getpid()
    own = group_of("self", tree) if tree is not None else None
    if tree is not None and own is not None and _is_nobodys(own, tree):
        if _SYSTEMD.is_dir():
            if _entered_scope(tree, pid):
                yield "scope"  # it goes with its last process
                return
        elif own == tree.root and _entered_group(tree, pid):
            try:
                yield "group"
            finally:
                _leave_group(tree, pid)
            return
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(NICE, before))
    try:
        yield "nice"
    finally:
        with contextlib.suppress(OSError):  # not all may raise it
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _is_nobodys(own: Path, tree: Hierarchy) -> bool:
    """Tell whether nobody gave this process a group for itself: it is at the top, or in a session of a user."""
    return own == tree.root or "user.slice" in own.relative_to(tree.root).parts


def _entered_scope(tree: Hierarchy, pid: int) -> bool:
    """Have systemd put this process into a scope of its own beside the services."""
    busctl, name = shutil.which("busctl"), f"{NAME}-{pid}.scope"
    if busctl is None or os.geteuid() != 0:
        return False
    manager = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
    scope = ("PIDs", "au", "1", str(pid), "CPUWeight", "t", str(WEIGHT), "Slice", "s", "system.slice")
    asked = (busctl, "call", *manager, "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", "3", *scope, "0")
    try:
        subprocess.run(asked, check=True, timeout=_START_S, stdin=subprocess.DEVNULL, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return False
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        own = group_of("self", tree)
        if own is not None and own.name == name:
            return True
        time.sleep(_LOOK_S)
    return False


def _entered_group(tree: Hierarchy, pid: int) -> bool:
    """Make a group at the top level and enter it, after removing what killed processes left."""
    for left in tree.root.glob(f"{NAME}-*"):
        with contextlib.suppress(OSError):  # somebody is in it
            left.rmdir()
    group = tree.root / f"{NAME}-{pid}"
    name, value = ("cpu.shares", SHARES) if tree.version == 1 else ("cpu.weight", WEIGHT)
    try:
        group.mkdir()
        _write(group / name, value)
        _write(group / "cgroup.procs", pid)
    except OSError:
        _leave_group(tree, pid)
        return False
    return True


def _leave_group(tree: Hierarchy, pid: int) -> None:
    group = tree.root / f"{NAME}-{pid}"
    with contextlib.suppress(OSError):
        for each in (group / "cgroup.procs").read_text(encoding="ascii").split():
            _write(tree.root / "cgroup.procs", int(each))
        group.rmdir()


def _write(path: Path, value: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # a group's file is never created
    try:
        os.write(fd, str(value).encode("ascii"))
    finally:
        os.close(fd)
