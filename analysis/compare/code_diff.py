"""The machine code of both sides of a comparison: what differs, ranked as suspects, as JSON and as sentences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from specmine.analysis.documents import is_store
from specmine.mining.regression.code_diff import Code, Name, Reached, Suspect, compared_code, counted, suspects
from specmine.mining.regression.comparison import Change, Comparison
from specmine.model.text import escaped, listed, plural, title

from .code_seen import Sightings
from .sides import Key, Sides, other_name

MOST_TOLD = 10


class MachineCode:
    """What is known of the code of the functions that both sides reached."""

    def __init__(self, base: Mapping[Name, Reached], new: Mapping[Name, Reached], worse: Mapping[Name, float]) -> None:
        """Take what was reached on both sides, and by what factor functions are worse for sure."""
        self._base, self._new = base, new
        self.suspects = suspects(self._base, self._new, worse)

    @classmethod
    def of_sides(cls, sides: Sides, found: Mapping[Key, Comparison]) -> MachineCode:
        """Read it from the stores; recorded durations have none."""
        worse = {
            key: each.estimate.ratio
            for key, each in found.items()
            if each.verdict is Change.WORSE and each.estimate is not None
        }
        if not all(str(each) != "-" and is_store(each) for each in sides.files):
            return cls({}, {}, worse)
        builds = [{each.build for group in side.values() for each in group} for side in (sides.base, sides.new)]
        seen = [Sightings(each) for each in dict.fromkeys(sides.files)]
        base = _renamed(seen[0].reached(builds[0]), sides.renamed)
        return cls(base, seen[-1].reached(builds[1]), worse)

    @classmethod
    def of_builds(
        cls, sightings: Sightings, base: Collection[str], new: Collection[str], worse: Mapping[Name, float]
    ) -> MachineCode:
        """Compare builds that one store saw; a program whose file has another name in each is one."""
        sides = [sightings.reached(each) for each in (base, new)]
        modules = other_name(*({module for _, module in side} for side in sides))
        return cls(_renamed(sides[0], modules), sides[1], worse)

    def of(self, key: Key) -> str | None:
        """Return what became of a function's code, None if that is not known."""
        if key not in self._base or key not in self._new:
            return None
        what = compared_code(self._base[key], self._new[key])
        return None if what is Code.UNKNOWN else what.value

    @property
    def reached(self) -> tuple[Mapping[Name, Reached], Mapping[Name, Reached]]:
        """What was reached on both sides."""
        return self._base, self._new

    def document(self) -> dict[str, Any]:
        """Return how many functions there are of each kind, and the suspects by rank."""
        counts = counted(self._base, self._new)
        return {
            "counts": {kind.value: number for kind, number in counts.items()},
            "suspects": [_entry(each) for each in self.suspects],
        }


def _renamed(found: Mapping[Name, Reached], modules: Mapping[str, str]) -> dict[Name, Reached]:
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


def sentences(document: Mapping[str, Any]) -> Sequence[str]:
    """Return what to tell people: one sentence on all code, one on each suspect."""
    counts = document["counts"]
    compared = sum(counts[kind] for kind in ("changed", "moved", "same"))
    if not compared:
        return []
    lines = [
        f"Machine code: of {plural(compared, 'function')} reached in both {counts['changed']} changed,"
        f" {counts['moved']} only moved."
    ]
    told = document["suspects"][:MOST_TOLD]
    lines += [f"{number}. {_sentence(each)}" for number, each in enumerate(told, 1)]
    more = len(document["suspects"]) - len(told)
    return [*lines, f"{more} more changed functions are in --format json."] if more > 0 else lines


def _sentence(each: Mapping[str, Any]) -> str:
    name = escaped(title(each["function"], each["module"]))
    parts = [
        {
            "changed": "its code changed",
            "new": "reached in the new build only",
        }.get(each["code"], f"its code is as it was; it calls {escaped(listed(each['through'][:3]))}")
    ]
    before, after = each["self_share"]
    if before is not None and after is not None and max(before, after) >= 0.005:
        parts.append(f"{100 * before:.3g} % of the CPU time inside it became {100 * after:.3g} %")
    elif after is not None and after >= 0.005:
        parts.append(f"{100 * after:.3g} % of the CPU time inside it")
    if each["ratio"] is not None:
        parts.append(f"its calls take {each['ratio']:.4g} times as long")
    return f"{name}: {'; '.join(parts)}."
