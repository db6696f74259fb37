"""The steps of a report: pairs of builds, compared as ``specmine compare`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from specmine.analysis.compare.call_tree import LocatedChanges
from specmine.analysis.compare.code_diff import MachineCode
from specmine.analysis.compare.comparing import ComparedFunctions, compare_functions
from specmine.analysis.compare.document import function_entry
from specmine.analysis.compare.order import order_document
from specmine.analysis.compare.reached_code import ReachedCode
from specmine.analysis.compare.sides import Key, Sides, sides_of_builds
from specmine.analysis.documents import is_store
from specmine.analysis.lifetimes.selection import RecordedLifetimes
from specmine.mining.regression.comparison import Rule
from specmine.store import Where

Pair = tuple[str, str]
"""Base and new build."""


class ComparedBuilds:
    """All pairs of builds that functions need, each compared once."""

    def __init__(
        self, recorded: RecordedLifetimes, source: Where, rule: Rule, wanted: Mapping[Key, Sequence[Pair]]
    ) -> None:
        """Compare; ``wanted`` has the pairs of each function."""
        self._rule = rule
        self._reached = ReachedCode(source) if str(source) != "-" and is_store(source) else None
        once = replace(recorded, by_path=cache(recorded.by_path), by_window=cache(recorded.by_window))
        keys: dict[Pair, list[Key]] = {}
        for key, pairs in wanted.items():
            for pair in pairs:
                keys.setdefault(pair, []).append(key)
        self._sides: dict[Pair, Sides] = {pair: sides_of_builds(once, source, *pair) for pair in keys}
        self._found: dict[Pair, ComparedFunctions] = {
            pair: compare_functions(self._sides[pair], chosen, rule, reached=self._reached)
            for pair, chosen in keys.items()
        }
        self._places = {
            pair: LocatedChanges(self._sides[pair], found.functions, found.code, rule)
            for pair, found in self._found.items()
        }

    def step(self, pair: Pair, key: Key) -> dict[str, Any]:
        """Return the comparison of one function, with the builds compared."""
        entry = function_entry(self._sides[pair], key, self._found[pair], self._rule, self._places[pair])
        return {"base": pair[0], "new": pair[1], **entry}

    def facts(self, pair: Pair) -> dict[str, Any]:
        """Return what all functions of a pair have in common."""
        found = self._found.get(pair)
        seen = [len(each) for each in self._sides[pair].seen] if found is not None else None
        order = order_document(found.order, found.drift) if found is not None else None
        return {"base": pair[0], "new": pair[1], "lifetimes_seen": seen, "order": order}

    def code_steps(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        """Return for each pair which machine code differs, with the suspects by rank; [] if there is no code."""
        if self._reached is None:
            return []
        steps = []
        for pair in pairs:
            found = self._found.get(pair)
            code = found.code if found is not None else MachineCode.of_builds(self._reached, {pair[0]}, {pair[1]}, {})
            steps.append({"base": pair[0], "new": pair[1], **code.document()})
        return steps
