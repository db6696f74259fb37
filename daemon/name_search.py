"""Does a program have functions of the names that a user gave? Asked where none was found: one may be misspelt."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from specmine.daemon.controller.state import ControllerState
from specmine.model.errors import SpecmineError
from specmine.probes.elf.client import Reader
from specmine.probes.process import proc
from specmine.probes.process.mappings import executable_mappings, open_mapped
from specmine.probes.process.regular_file import open_regular

AFTER_NS = 3_000_000_000
"""By then functions of these names are usually found, and nothing has to be searched for."""


class NameSearch:
    """Looks through the files of a process on a thread of its own: the loop goes on meanwhile."""

    def __init__(self, globs: Sequence[str]) -> None:
        """Take the names, or globs, of functions."""
        self._globs = tuple(globs)
        self._thread: threading.Thread | None = None
        self._known: list[str] | None = None

    def turn(self, state: ControllerState) -> bool:
        """Return True once it is sure that the program has no such function; begin to look if none was found yet."""
        if state.functions or state.started is None:
            return False
        if self._thread is None:
            pids = [each.pid for each in state.lifetimes.values() if each.processes > 0]
            if pids and state.now_ns - state.began_ns >= AFTER_NS:
                self._thread = threading.Thread(target=self._look, args=(pids[0],), name="names", daemon=True)
                self._thread.start()
            return False
        return not self._thread.is_alive() and self.sure

    @property
    def sure(self) -> bool:
        """True once it is sure that the program has no such function."""
        return self._known is not None

    @property
    def known(self) -> tuple[str, ...]:
        """The names that the program's own file has, where none of those wanted is there."""
        return tuple(self._known or ())

    def _look(self, pid: int) -> None:
        with contextlib.suppress(SpecmineError, OSError):
            self._known = names_without(pid, self._globs)


def none_is_named(state: ControllerState, globs: Sequence[str], *, seen: bool, interrupted: bool) -> bool:
    """Return True if the names are at fault where a mining ended and knows no function.

    Parameters
    ----------
    state : ControllerState
    globs : sequence of str
        Names, or globs, of functions.
    seen : bool
        The program was seen while it ran. Else nothing was searched.
    interrupted : bool
        The user ended it. If that was soon, its files may not have been searched yet.
    """
    if not globs or state.functions or not seen:
        return False
    if interrupted and state.now_ns - state.began_ns < AFTER_NS:
        return False
    return not any(_has(each, globs) for each in sorted({one.executable for one in state.lifetimes.values()}))


def _has(path: str, globs: Sequence[str]) -> bool:
    """Tell whether a file has such functions; what cannot be read has none."""
    with contextlib.suppress(SpecmineError, OSError, ValueError), Reader() as reader:
        fd = open_regular(path)
        try:
            return bool(reader.find(fd, globs, Path(path).name))
        finally:
            os.close(fd)
    return False


def names_without(pid: int, globs: Sequence[str]) -> list[str] | None:
    """Return the names of the functions in a process's own file; None if it has functions that the globs name.

    Parameters
    ----------
    pid : int
    globs : sequence of str
        Tried in every file that the process maps.

    Raises
    ------
    SpecmineError, OSError
        If not all of its files can be read: then nothing is sure.
    """
    missing, names = missing_in([pid], globs)
    return names if len(missing) == len(globs) else None


def missing_in(pids: Sequence[int], globs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the globs that name no function in any file of some processes, and the names in the files that these run.

    The names are those of functions, for suggestions; they are left out once every glob has been found.

    Raises
    ------
    SpecmineError, OSError
        If not all files can be read: then nothing is sure.
    """
    missing, names = list(globs), dict[str, None]()
    with Reader() as reader:
        for pid in pids:
            own = proc.executable_path(pid)
            for fd, path in _files(pid):
                name = Path(path).name
                missing = [each for each in missing if not reader.find(fd, [each], name)]
                if not missing:
                    return [], []
                if path == own:
                    with contextlib.suppress(SpecmineError):  # too many to list: nothing can be suggested
                        names |= dict.fromkeys(each.name for each in reader.find(fd, ["*"], name))
    return missing, list(names)


def _files(pid: int) -> Iterator[tuple[int, str]]:
    """Yield an open descriptor of each file that a process executes code of, once."""
    seen = set()
    for mapping in executable_mappings(pid):
        if not mapping.file[1] or mapping.file in seen:
            continue
        seen.add(mapping.file)
        fd = open_mapped(pid, mapping)
        try:
            yield fd, mapping.path
        finally:
            os.close(fd)
