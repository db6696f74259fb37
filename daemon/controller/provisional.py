"""Provisional assertions: what the build before, or the fleet, stated of a function holds until there is an own one.

Functions are the same if name and module are. For the program's own file the name alone decides, since the file's
name may hold a version. Edges in expressions are names already. A compiler may have inlined an edge's caller, so
claims over an edge that the new build does not show are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specmine.mining.assertions.checks import Check, check
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import named_edges, shared_names
from specmine.mining.borders.inference import Inference, at_resolution, borders_of, infer_stable_borders
from specmine.mining.fleet.statement import InheritedStatement, octaves, rescaled, unknown_borders
from specmine.mining.inside.call_kinds import names_of_callees
from specmine.mining.settings import MiningSettings
from specmine.model.function import Function
from specmine.model.observation import Observation
from specmine.model.verdict import Verdict

from .violations.detection import calmed
from .violations.function_violations import FunctionViolations

NEWEST = 3
RETAINED = 10
"""Observations of the build before with which a new one must agree."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Provisional:
    """The statement of the build before, and whether the new build agrees with it."""

    build_id: str
    """The build that the statement comes from."""
    learned: Inference
    result: Explanation | None = None
    measured: FunctionViolations = field(default_factory=FunctionViolations)
    """What it is measured by."""
    before: tuple[Observation, ...] = ()
    """The newest observations that it rests on."""
    since: tuple[Observation, ...] = ()
    """The newest of the new build: one unknown border may be chance, in two of three it is none."""
    checks: tuple[Check, ...] = ()
    checked_ns: int | None = None
    violations: int = 0
    """Observations of the new build running that violate it."""
    observations: int = 0
    """Observations of the new build that it was compared with."""
    stated: InheritedStatement | None = None
    """Where many hosts stated it: as the fleet sent it. ``learned`` and ``result`` are on this host's scale."""
    agreeing: int = 0
    """Observations running that agree with it."""

    @property
    def hosts(self) -> int:
        """Hosts of the fleet on which it was learned; 0: on this one."""
        return self.stated.hosts if self.stated is not None else 0

    @property
    def verdict(self) -> str:
        """Verdict of the last check on the whole statement."""
        return Verdict.of_all(one.verdict for one in self.checks).value


class ProvisionalAssertions:
    """The statements of finished functions by name."""

    def __init__(
        self, finished: Iterable[tuple[Function, Provisional]], stated: Mapping[str, InheritedStatement] | None = None
    ) -> None:
        """Take functions with a statement; of two of one name the later one stands. ``stated``: by the fleet."""
        self._by_key: dict[Key, tuple[Function, Provisional]] = {}
        self._stated = stated or {}
        for function, provisional in finished:
            for key in _keys(function):
                self._by_key[key] = function, provisional

    def of(self, function: Function) -> Provisional | None:
        """Return what another build stated about a function, None if nothing."""
        for key in _keys(function):
            found = self._by_key.get(key)
            if found is not None and found[0].build_id != function.build_id:
                return found[1]
        stated = self._stated.get(function.key)
        return None if stated is None else provisional_of(stated)


def provisional_of(statement: InheritedStatement) -> Provisional:
    """Return a statement of the fleet as one that waits to be confirmed."""
    return Provisional(
        build_id=statement.build_id, learned=statement.learned, result=statement.result, stated=statement
    )


def inherited(provisional: Provisional | None, now_ns: int) -> FunctionViolations:
    """Return what a new build is measured by at first: the yardstick and the baselines of the build before."""
    yardstick = provisional.measured.yardstick if provisional is not None else None
    if provisional is None or yardstick is None or not yardstick.ready:
        return FunctionViolations()
    settled = yardstick.settled()
    return FunctionViolations(
        yardstick=settled if settled.inherited_ns is not None else replace(settled, inherited_ns=now_ns),
        detector=calmed(provisional.measured.detector),
    )


def _keys(function: Function) -> Sequence[Key]:
    key = function.name, function.module
    return [key, (function.name, "")] if function.in_program else [key]


def with_build(provisional: Provisional, observation: Observation, mining: MiningSettings) -> Provisional:
    """Return the statement after one more observation of the new build."""
    if observation.timed < mining.minimum_calls:
        return provisional
    if provisional.stated is not None:
        return _with_window(provisional, provisional.stated, observation, mining)
    since = (*provisional.since, observation)[-NEWEST:]
    result, learned = provisional.result, provisional.learned
    fits = _agrees((*provisional.before, *since)[-mining.recent :], mining)
    checks = check(observation, result, learned, fits, mining)
    if result is not None and observation.paths and not _shows(result, observation):
        checks = tuple(one if one.subject == "true" else replace(one, verdict="unknown") for one in checks)
    wrong = any(one.verdict == "violated" for one in checks)
    return replace(
        provisional,
        since=since,
        checks=checks,
        checked_ns=observation.end_ns,
        violations=provisional.violations + 1 if wrong else 0,
        observations=provisional.observations + 1,
    )


def _with_window(
    provisional: Provisional, stated: InheritedStatement, observation: Observation, mining: MiningSettings
) -> Provisional:
    """Return a statement of the fleet after one more window of this host, on the scale that fits it better."""
    by = octaves(stated, observation.histogram.quantile(0.5) - observation.bias_ns)
    choices = [(provisional.learned, provisional.result)]
    if by is not None:
        scaled = rescaled(stated, by)
        choices.append((scaled.learned, scaled.result))
    tried = []
    for learned, result in choices:
        strange = unknown_borders(observation, learned, mining)
        checks = check(observation, result, learned, not strange, mining)
        tried.append((strange > 0 or any(one.verdict == "violated" for one in checks), checks, learned, result))
    wrong, checks, learned, result = min(tried, key=lambda each: each[0])
    return replace(
        provisional,
        learned=learned,
        result=result,
        checks=checks,
        checked_ns=observation.end_ns,
        violations=provisional.violations + 1 if wrong else 0,
        agreeing=0 if wrong else provisional.agreeing + 1,
        observations=provisional.observations + 1,
    )


def _agrees(observations: Sequence[Observation], mining: MiningSettings) -> bool:
    """Tell whether the new build's observations continue the chain of the build before."""
    settings = at_resolution(mining, observations)
    borders = {observation: borders_of(observation, settings) for observation in observations}
    return infer_stable_borders(observations, borders, None, mining)[0].chain > 0


def _shows(result: Explanation, observation: Observation) -> bool:
    """Tell whether each edge that an expression asks for is on some path, and each callee that it names was timed."""
    shared = shared_names(path.path for path in result.paths)
    shown = frozenset[tuple[str, str]]().union(*(named_edges(path.path, shared) for path in observation.paths))
    timed = names_of_callees(frame for part in observation.inside for frame in part.timed)
    asked = [literal for behaviour in result.behaviours for conjunction in behaviour.formula for literal in conjunction]
    return all(
        (not literal.callee or literal.callee in timed) if literal.inside else (literal.caller, literal.callee) in shown
        for literal in asked
    )


def document_of(provisional: Provisional | None) -> Mapping[str, object] | None:
    """Return the statement as the specification has it."""
    if provisional is None:
        return None
    return {
        "build_id": provisional.build_id,
        "source": "fleet" if provisional.hosts else "build",
        "hosts": provisional.hosts or None,
        "verdict": provisional.verdict,
        "observations": provisional.observations,
        "violations": provisional.violations,
        "checks": [
            {"expression": one.subject, "verdict": one.verdict, "calls": one.calls, "p_value": one.p_value}
            for one in provisional.checks
        ],
    }
