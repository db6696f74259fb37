"""What a build before stated about a function holds provisionally for a new one, until that has a statement of its own.

Functions are the same if name and module are, or for a program's own file, whose name may hold a version, if the name
is. Edges in expressions are names already; an edge that the new build does not show, since a compiler may have inlined
its caller, leaves the claims over it unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from specmine.daemon.config.settings import Settings
from specmine.mining.assertions.explanation import JobResult
from specmine.mining.assertions.expression import named_edges, shared_names
from specmine.mining.borders.inference import Check, Conclusion, borders_of, check, conclude, no_finer
from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.model.sparse import Kept, kept

NEWEST = 3
HELD_BEFORE = 10
"""Observations of the build before that say with what a new one must agree."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inherited:
    """The statement of a build before, and how it fares with the new one."""

    build_id: str
    """Where it comes from."""
    learned: Conclusion
    result: JobResult | None = None
    before: tuple[Kept, ...] = ()
    """The newest observations that it rests on."""
    since: tuple[Kept, ...] = ()
    """The newest of the new build: one unknown border may be chance, in two of three it is none."""
    checks: tuple[Check, ...] = ()
    checked_ns: int | None = None
    violations: int = 0
    """Observations of the new build running that violate it."""
    observations: int = 0
    """Observations of the new build it was checked against."""

    @property
    def verdict(self) -> str:
        """What the last check said of the whole."""
        verdicts = {each.verdict for each in self.checks}
        return "violated" if "violated" in verdicts else "holds" if "holds" in verdicts else "unknown"


class Estate:
    """Who left what: the statements of finished functions by name."""

    def __init__(self, finished: Iterable[tuple[Function, Inherited]]) -> None:
        """Take functions with a statement; of two of one name the later one stands."""
        self._by_key: dict[Key, tuple[Function, Inherited]] = {}
        for function, left in finished:
            for key in _keys(function):
                self._by_key[key] = function, left

    def of(self, function: Function) -> Inherited | None:
        """Return what another build left to a function, None if nothing."""
        for key in _keys(function):
            known = self._by_key.get(key)
            if known is not None and known[0].build_id != function.build_id:
                return known[1]
        return None


def _keys(function: Function) -> Sequence[Key]:
    own: list[Key] = [(function.name, function.module)]
    return [*own, (function.name, "")] if function.in_program else own


def checked(left: Inherited, seen: Observation, settings: Settings) -> Inherited:
    """Return it after one more observation of the new build."""
    if seen.timed < settings.mining.minimum_calls:
        return left
    left = replace(left, since=(*left.since, kept(seen))[-NEWEST:])
    fits = _fits(left, settings)
    checks = check(seen, left.result, left.learned, fits, settings.mining)
    if left.result is not None and seen.paths and not _shows(left.result, seen):
        checks = tuple(each if each.subject == "true" else replace(each, verdict="unknown") for each in checks)
    wrong = any(each.verdict == "violated" for each in checks)
    return replace(
        left,
        checks=checks,
        checked_ns=seen.end_ns,
        violations=left.violations + 1 if wrong else 0,
        observations=left.observations + 1,
    )


def _fits(left: Inherited, settings: Settings) -> bool:
    """Tell whether the new build's observations go on the chain of the build before."""
    held = [each.whole() for each in (*left.before, *left.since)[-settings.mining.recent :]]
    finer = no_finer(settings.mining, held)
    return conclude(held, [borders_of(each, finer) for each in held], None, settings.mining).chain > 0


def _shows(result: JobResult, seen: Observation) -> bool:
    """Tell whether every edge that an expression asks for stands on some path of the observation."""
    shared = shared_names(each.path for each in result.paths)
    there = frozenset[tuple[str, str]]().union(*(named_edges(one.path, shared) for one in seen.paths))
    asked = {
        (literal.caller, literal.callee)
        for each in result.behaviours
        for conjunction in each.formula
        for literal in conjunction
    }
    return asked <= there


def document_of(left: Inherited | None) -> Mapping[str, object] | None:
    """Return what the specification tells of it."""
    if left is None:
        return None
    return {
        "build_id": left.build_id,
        "verdict": left.verdict,
        "observations": left.observations,
        "violations": left.violations,
        "checks": [
            {"expression": each.subject, "verdict": each.verdict, "calls": each.calls, "p_value": each.p_value}
            for each in left.checks
        ],
    }
