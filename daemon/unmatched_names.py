"""Which names in ``functions.watch`` name no function of the programs that run: a user believes they are watched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.model.batch import Lifetime
from specmine.model.errors import SpecmineError
from specmine.model.function import Function
from specmine.model.globs import matches
from specmine.model.similar_names import nearest

from .controller.state import ControllerState
from .name_search import missing_in
from .system.logging import facts

AFTER_NS = 10_000_000_000
"""By then functions of these names are usually found, and nothing has to be searched for."""
EVERY_NS = 60_000_000_000
"""Searches are so far apart: a program that is deployed often is not searched at each start."""

_log = logging.getLogger("specmine.daemon.names")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedName:
    """A name, or a glob, that no function of the programs has."""

    name: str
    programs: tuple[str, ...]
    """Those whose files were searched."""
    alike: tuple[str, ...] = ()
    """Names of functions that look like it, the most similar first."""


class UnmatchedNames:
    """Searches the programs' files on a thread of its own: the loop goes on meanwhile."""

    def __init__(self) -> None:
        """Have searched nothing yet."""
        self.found: tuple[UnmatchedName, ...] = ()
        """The names that are known to name nothing now."""
        self._search: _Search | None = None
        self._searched: tuple[object, ...] = ()
        self._result: tuple[UnmatchedName, ...] = ()
        self._reported: set[str] = set()
        self._began_ns = -EVERY_NS
        self._known: tuple[Any, Any, Any] = ((), None, None)
        self._named: list[str] = []

    def turn(self, state: ControllerState) -> None:
        """Take up what was found; begin to search where a name has no function yet."""
        named = self._without_function(state)
        if not named or state.started is None:
            self.found = ()
            return
        if self._search is not None and not self._search.is_alive():
            if self._search.result is not None:
                self._result = self._search.result
            else:
                self._searched = ()  # not all could be read: once more later
            self._search = None
        self._begin(state, named)
        self.found = tuple(each for each in self._result if each.name in named)
        for each in self.found:
            if each.name not in self._reported:
                self._reported.add(each.name)
                _log.warning(
                    "functions.watch names no function, so nothing of this name is watched",
                    extra=facts(name=each.name, programs=",".join(each.programs), alike=",".join(each.alike)),
                )

    def _without_function(self, state: ControllerState) -> list[str]:
        """Return the names that no function has; they are compared only where there is news, which is rare."""
        known = (state.settings.watch, state.catalog, state.mapped)
        if any(new is not old for new, old in zip(known, self._known, strict=True)):
            self._known = known
            present = (each for each in state.catalog.values() if not state.mapped or each.build_id in state.mapped)
            self._named = _without_function(state.settings.watch, present)
        return self._named

    def _begin(self, state: ControllerState, named: Sequence[str]) -> None:
        living = _one_a_build(state.lifetimes.values())
        wanted = (tuple(named), frozenset((each.called, each.build_id) for each in living))
        early = state.now_ns - state.began_ns < AFTER_NS or state.now_ns - self._began_ns < EVERY_NS
        if self._search is None and living and not early and wanted != self._searched:
            self._began_ns, self._searched = state.now_ns, wanted
            self._search = _Search(living, named)
            self._search.start()


class _Search(threading.Thread):
    """One search."""

    def __init__(self, lifetimes: Sequence[Lifetime], names: Sequence[str]) -> None:
        super().__init__(name="names", daemon=True)
        self._lifetimes, self._names = lifetimes, names
        self.result: tuple[UnmatchedName, ...] | None = None
        """None until it is known, and where it cannot be."""

    def run(self) -> None:
        """Search all files of the processes."""
        try:
            missing, known = missing_in([each.pid for each in self._lifetimes], self._names)
        except (SpecmineError, OSError):
            return
        programs = tuple(sorted({each.called for each in self._lifetimes}))
        self.result = tuple(
            UnmatchedName(name=each, programs=programs, alike=tuple(nearest(each, known))) for each in missing
        )


def _without_function(names: Iterable[str], functions: Iterable[Function]) -> list[str]:
    """Return the names that none of the functions has."""
    left = list(names)
    for function in functions:
        if not left:
            break
        left = [each for each in left if not matches(function, (each,))]
    return left


def _one_a_build(lifetimes: Iterable[Lifetime]) -> list[Lifetime]:
    """Return a living lifetime of each build of each program."""
    found = {(each.called, each.build_id): each for each in lifetimes if each.processes > 0}
    return [found[key] for key in sorted(found)]
