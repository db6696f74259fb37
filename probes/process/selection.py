"""Which programs were chosen: by pid, executable, systemd unit or cgroup, and whose processes count."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass

from specmine.model.errors import HostError, InputError
from specmine.probes.kernel.namespaces import check_own

from . import proc
from .control_groups import control_groups, runs_in_unit
from .mappings import FileId
from .proc_files import PROC
from .regular_file import open_regular


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which program to watch; exactly one of the first four is set."""

    pid: int = 0
    exe: str = ""
    unit: str = ""
    """A unit of the host's systemd, not of a user's or a container's."""
    cgroup: str = ""
    """Glob over cgroup paths."""
    users: tuple[int, ...] = ()
    """Only processes that these users started; empty: of all users."""
    name: str = ""
    at_exec: bool = False
    """The pid is a child of ours that has yet to exec the program: only what it execs is watched."""
    may_come: bool = False
    """The executable may be installed later: it is waited for."""

    @property
    def shown(self) -> str:
        """What to call the choice: its name, or how it chooses."""
        return self.name or self.exe or self.unit or self.cgroup or f"pid {self.pid}"

    def __post_init__(self) -> None:
        """Refuse anything but one way to choose."""
        chosen = [w for w in ("pid", "exe", "unit", "cgroup") if getattr(self, w)]
        if len(chosen) != 1:
            raise InputError(f"a program is chosen by one of pid, exe, unit and cgroup, not by {chosen or 'none'}")


def belongs(selection: Selection, pid: int, file: FileId | None) -> bool:
    """Tell whether the selection names this process itself (not by descent).

    Parameters
    ----------
    file : FileId or None
        What ``proc.executable(selection.exe)`` was; only looked at for a selection by executable.
    """
    if not _is_named(selection, pid, file):
        return False
    return not selection.users or proc.user(pid) in selection.users


def _is_named(selection: Selection, pid: int, file: FileId | None) -> bool:
    """Tell the same of a process of any user."""
    if selection.pid:
        return pid == selection.pid
    if selection.exe:
        try:
            status = os.stat(f"{PROC}/{pid}/exe")
        except OSError:
            return False
        if (status.st_dev, status.st_ino) == file:
            return True
        # most are asked no further: every process of the host comes by
        return not status.st_nlink and proc.runs_deleted(pid, os.path.realpath(selection.exe))
    if selection.unit:
        unit = selection.unit if "." in selection.unit else f"{selection.unit}.service"
        return runs_in_unit(control_groups(pid), unit)
    return any(fnmatch.fnmatchcase(path, selection.cgroup) for _, path in control_groups(pid))


def check_choice(selection: Selection) -> str:
    """Refuse a selection that can never match: InputError (or HostError) with the reason and the remedy.

    Returns
    -------
    str
        What is waited for, '' if nothing is.
    """
    check_own()
    if selection.pid:
        found = proc.process(selection.pid)
        if found is None or found.zombie:
            raise InputError(f"there is no process {selection.pid}", remedy="see `ps -e`")
        if proc.executable(selection.pid) is None:
            if proc.executable_path(selection.pid):
                return ""
            try:
                os.stat(PROC / str(selection.pid) / "exe")
            except PermissionError:
                raise HostError(f"process {selection.pid} may not be looked at", remedy="run as root") from None
            except OSError:
                raise InputError(f"process {selection.pid} is a kernel thread or ends right now") from None
    elif selection.exe:
        try:
            fd = open_regular(selection.exe, follow=True)
        except FileNotFoundError:
            if selection.may_come:
                return f"{selection.exe} is not there yet: it is waited for"
            raise InputError(f"{selection.exe} is not a file that can be read") from None
        except (OSError, ValueError):
            raise InputError(f"{selection.exe} is not a file that can be read") from None
        with open(fd, "rb") as file:  # noqa: PTH123 (a descriptor)
            if file.read(4) != b"\x7fELF":
                raise InputError(
                    f"{selection.exe} is not an ELF file", remedy="name the program itself, for scripts the interpreter"
                )
    return ""
