"""The limit of series: which functions have series of their own. The others are one sum a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specmine.model.violation import CauseKind

from .counters import ClassCounters
from .families import (
    OF_A_SCRAPE,
    OF_CHANGES,
    OF_EXPERIMENTS,
    OF_PROGRAMS,
    OF_THE_DAEMON,
    Scraped,
)
from .family import Row, label_text, rows
from .function_families import OF_FUNCTIONS, OF_VIOLATIONS
from .naming import OTHER, Label, Labels
from .running_sums import RunningSums
from .snapshot import FunctionSnapshot
from .violation_snapshot import ShownViolation

_FOLDED = tuple(family for family in OF_FUNCTIONS if family.folded)
_OVER_BUILDS = tuple(family for family in OF_FUNCTIONS if family.kind == "counter" and not family.per_build)
_OF_BUILDS = tuple(family for family in OF_FUNCTIONS if family.per_build)
_OF_THE_NEWEST = tuple(family for family in OF_FUNCTIONS if family not in {*_OVER_BUILDS, *_OF_BUILDS})
_MOST_CHANGES = 50  # eleven series each


class SeriesLimit:
    """Turns snapshots into rows; holds what must last between scrapes: sums, names, and functions shown before."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._counters = ClassCounters()
        self._labels = Labels()
        self._shown: set[Label] = set()
        self._folds: set[str] = set()
        self._sums, self._calls = RunningSums(), RunningSums()
        self._told: dict[tuple[str, tuple[str, str, str]], ShownViolation] = {}

    def rows(self, snapshots: Sequence[FunctionSnapshot], status: Mapping[str, Any], *, series: int) -> list[Row]:
        """Return the rows of a scrape, at most ``series``, and advance the counters."""
        functions = self._counters.advance(snapshots)
        self._forget(functions)
        found = [*rows(OF_THE_DAEMON, status), *self._of_programs(functions, status)]
        for name, experiment in status["experiments"].items():
            found += rows(OF_EXPERIMENTS, experiment, (label_text(name),))
        found += _of_changes(functions, status)
        programs = {each.program for each in functions} | self._folds
        left = series - len(found) - len(_FOLDED) * len(programs) - len(OF_A_SCRAPE)
        builds = self._labels.grouped(functions)
        shown, folded = set(), []
        # those shown before go first, so that a function does not come and go with its rank
        for label, members in sorted(builds.items(), key=lambda each: self._rank(*each)):
            own = list(self._of_function(label, members))
            counted = [(each.key, row) for each in members for row in rows(_OVER_BUILDS, each, label)]
            needed = len(own) + len({row[:2] for _, row in counted})
            if needed <= left:
                left -= needed
                found += [*own, *self._sums.with_values(counted)]
                shown.add(label)
            else:
                folded += members
        self._shown = shown
        return [*found, *self._other(folded), *rows(OF_A_SCRAPE, _scraped(functions, folded))]

    def _forget(self, functions: Sequence[FunctionSnapshot]) -> None:
        """Forget functions that are there no more; their calls stay in the sums."""
        keys = {each.key for each in functions}
        self._sums.keep(keys | {""})
        self._calls.keep({f"{each.key} {program}" for each in functions for program in each.programs})
        self._told = {told: each for told, each in self._told.items() if told[0] in keys}
        self._labels.keep(keys)

    def _rank(self, label: Label, members: Sequence[FunctionSnapshot]) -> tuple[bool, bool, bool]:
        violated, stated = (any(getattr(each, what) for each in members) for what in ("is_violated", "behaviours"))
        return not violated, not stated, label not in self._shown

    def _of_function(self, label: Label, members: Sequence[FunctionSnapshot]) -> Iterator[Row]:
        """Return the series of a function that are no sums over builds: behaviours of all builds that run."""
        for each in members:
            yield from self._of_violations(label, each)
        newest = members[0]
        for each in (newest, *(each for each in members[1:] if each.running)):
            yield from rows(_OF_BUILDS, each, label)
        yield from rows(_OF_THE_NEWEST, newest, label)

    def _of_violations(self, label: Label, function: FunctionSnapshot) -> Iterator[Row]:
        """Return the series of violations; of two with the same labels the open one stands."""
        by_labels = {each.identity: each for each in sorted(function.violations, key=lambda one: one.is_open)}
        for identity, each in by_labels.items():
            told = self._told.get((function.key, identity))
            if told is None or not each.says_as(told):
                told = self._told[function.key, identity] = each
            for family in OF_VIOLATIONS:
                yield from rows((family,), told if family.labels[-1] == "text" else each, (*label, *identity))

    def _of_programs(self, functions: Sequence[FunctionSnapshot], status: Mapping[str, Any]) -> Iterator[Row]:
        calls = {
            labels: value
            for _, labels, value in self._calls.with_values(
                (f"{each.key} {program}", ("", (program,), float(each.calls)))
                for each in functions
                for program in each.programs
            )
        }
        for each in status["watched"]:
            name = label_text(each["program"])
            yield from rows(OF_PROGRAMS, {**each, "calls": calls.get((each["program"],), 0.0)}, (name,))

    def _other(self, folded: Sequence[FunctionSnapshot]) -> Iterator[Row]:
        """Return the series of function="other" of each program of which a function was ever folded."""
        self._folds |= {each.program for each in folded}
        values = [
            (each.key, row) for each in folded for row in rows(_FOLDED, each, (label_text(each.program), OTHER, ""))
        ]
        none = [
            ("", (family.name, (label_text(program), OTHER, ""), 0.0)) for program in self._folds for family in _FOLDED
        ]
        return self._sums.with_values([*none, *values])


def _of_changes(functions: Sequence[FunctionSnapshot], status: Mapping[str, Any]) -> Iterator[Row]:
    """Return the series of one comparison of each function, so that the next build begins no new series."""
    programs = {(each.name, each.module): each.program for each in functions}
    shown: dict[tuple[str, str], Mapping[str, Any]] = {}
    for change in sorted(status.get("changes", ()), key=_change_rank):  # else in their order: the newest first
        shown.setdefault((str(change["function"]), str(change["module"])), change)
    for (name, module), change in list(shown.items())[:_MOST_CHANGES]:
        told = (programs.get((name, module), ""), name, module)
        yield from rows(OF_CHANGES, change, tuple(map(label_text, told)))


def _change_rank(change: Mapping[str, Any]) -> int:
    if change["alarm"] == "raised":
        return 0 if change["cause"] else 1
    return 2 if change["alarm"] == "acknowledged" else 3


def _scraped(functions: Sequence[FunctionSnapshot], folded: Sequence[FunctionSnapshot]) -> Scraped:
    standing = [each.violation for function in functions for each in function.violations if each.is_open]
    disturbed = any(each.cause.kind is CauseKind.HOST for each in standing)
    return Scraped(folded=len(folded), open=len(standing), disturbed=disturbed)
