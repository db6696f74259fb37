"""The machine code of both sides of a comparison: what differs, ranked as suspects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from specmine.analysis.documents import is_store
from specmine.mining.comparison.function_comparison import FunctionComparison
from specmine.mining.regression.code_diff import (
    CodeChange,
    Name,
    ReachedFunction,
    Suspect,
    code_change,
    count_changes,
    rank_suspects,
    unchanged_code,
)
from specmine.mining.regression.comparison import Change
from specmine.model.text import title

from .reached_code import ReachedCode
from .sides import Key, Sides, other_name


class MachineCode:
    """What is known of the code of the functions that both sides reached."""

    def __init__(
        self, base: Mapping[Name, ReachedFunction], new: Mapping[Name, ReachedFunction], worse: Mapping[Name, float]
    ) -> None:
        """Take what was reached on both sides, and by what factor functions are worse for sure."""
        self._base, self._new = base, new
        self.suspects = rank_suspects(self._base, self._new, worse)

    @classmethod
    def of_sides(cls, sides: Sides, reached: ReachedCode | None = None) -> MachineCode:
        """Read it from the stores; recorded durations have none."""
        if not all(str(each) != "-" and is_store(each) for each in sides.files):
            return cls({}, {}, {})
        builds = [{each.build for group in side.values() for each in group} for side in (sides.base, sides.new)]
        seen = [reached] if reached else [ReachedCode(each) for each in dict.fromkeys(sides.files)]
        base = _renamed(seen[0].reached(builds[0]), sides.renamed)
        return cls(base, seen[-1].reached(builds[1]), {})

    def suspected_for(self, found: Mapping[Key, FunctionComparison]) -> MachineCode:
        """Return the same, suspects ranked by which functions are worse."""
        worse = {
            key: ratio
            for key, each in found.items()
            if each.verdict is Change.WORSE and (ratio := each.decisive.comparison.ratio) is not None
        }
        return MachineCode(self._base, self._new, worse)

    @classmethod
    def of_builds(
        cls, code: ReachedCode, base: Collection[str], new: Collection[str], worse: Mapping[Name, float]
    ) -> MachineCode:
        """Compare builds in one store; a program whose file has another name in each counts as one."""
        sides = [code.reached(each) for each in (base, new)]
        modules = other_name(*({module for _, module in side} for side in sides))
        return cls(_renamed(sides[0], modules), sides[1], worse)

    def of(self, key: Key) -> str | None:
        """Return how a function's code changed, None if that is not known."""
        if key not in self._base or key not in self._new:
            return None
        what = code_change(self._base[key], self._new[key])
        return None if what is CodeChange.UNKNOWN else what.value

    def unchanged(self, key: Key) -> bool | None:
        """Return whether the code of a function and of all that it calls is the same, None if that is not known."""
        return unchanged_code(key, self._base, self._new)

    @property
    def reached(self) -> tuple[Mapping[Name, ReachedFunction], Mapping[Name, ReachedFunction]]:
        """What was reached on both sides."""
        return self._base, self._new

    def document(self) -> dict[str, Any]:
        """Return how many functions there are of each kind, and the suspects by rank."""
        counts = count_changes(self._base, self._new)
        return {
            "counts": {kind.value: number for kind, number in counts.items()},
            "suspects": [_entry(each) for each in self.suspects],
        }


def _renamed(found: Mapping[Name, ReachedFunction], modules: Mapping[str, str]) -> dict[Name, ReachedFunction]:
    def named(name: Name) -> Name:
        return name[0], modules.get(name[1], name[1])

    return {
        named(name): replace(each, name=named(name), callers={named(one): ns for one, ns in each.callers.items()})
        for name, each in found.items()
    }


def _entry(one: Suspect) -> dict[str, Any]:
    return {
        "function": one.name[0],
        "module": one.name[1],
        "code": one.code.value,
        "grown": one.grown,
        "self_share": [None if each is None else float(f"{each:.6g}") for each in one.shares],
        "ratio": None if one.ratio is None else float(f"{one.ratio:.6g}"),
        "through": [title(*each) for each in one.through],
        "callers": [title(*each) for each in one.callers],
    }
