"""Where in the program a change is: in a function or in what it calls; one cause for functions worse together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.comparison.function_comparison import FunctionComparison
from specmine.mining.regression.attribution_evidence import ChangeEvidence
from specmine.mining.regression.code_diff import CodeChange, Name, ReachedFunction
from specmine.mining.regression.comparison import Change, Rule
from specmine.mining.regression.sample import mean
from specmine.mining.regression.self_vs_callees import (
    CallTimes,
    Cause,
    ChangeSplit,
    LifetimeMean,
    causes_of,
    exchanged,
    split_change,
)
from specmine.model.text import title

from .code_diff import MachineCode
from .sides import Key, Sides

_DEEPEST = 12
_DECIDED = (Change.WORSE, Change.BETTER)


class LocatedChanges:
    """The changes of one comparison, located in the call tree."""

    def __init__(self, sides: Sides, found: Mapping[Key, FunctionComparison], code: MachineCode, rule: Rule) -> None:
        """Divide each change, and group those that are worse."""
        self._sides, self._code = sides, code
        observed = set(sides.base) & set(sides.new)
        weights = [_weights(reached, observed) for reached in code.reached]
        changed = [key for key, each in found.items() if each.verdict in _DECIDED]
        self.splits = {key: self._split(key, weights, rule.level) for key in changed}
        worse = {key: self.splits[key].part for key, each in found.items() if each.verdict is Change.WORSE}
        edges = sorted({(caller, name) for name, above in self._callers().items() for caller in above})
        costs = {key: _costs(sides, key) for key in changed}
        known = {key: cost for key, cost in costs.items() if cost is not None}
        rising = {key: after - before for key, (before, after) in known.items()}
        self.causes: tuple[Cause, ...] = causes_of(worse, edges, rising)
        self.exchanged = exchanged(known, self._callers(), rule.tolerance)
        self._explained: dict[Key, list[Key]] = {}
        for cause in self.causes:
            for name in cause.explains:
                self._explained.setdefault(name, []).append(cause.name)
        self._suspects = {each.name for each in code.suspects if each.code in (CodeChange.CHANGED, CodeChange.NEW)}

    def evidence(self, key: Key) -> ChangeEvidence:
        """Return what is known of a function besides its durations."""
        what = self._code.of(key)
        return ChangeEvidence(
            code=CodeChange(what) if what else None,
            suspects=tuple(sorted(self._below(key) & self._suspects - {key})),
            exchanged=self.exchanged.get(key, ()),
        )

    def fields(self, key: Key) -> dict[str, Any]:
        """Return the fields of one function in the JSON of a comparison."""
        causes = {cause.name: cause for cause in self.causes}
        return {
            "where": _where(self.splits.get(key)),
            "cause": key in causes,
            "explains": [title(*each) for each in causes[key].explains] if key in causes else [],
            "explained_by": [title(*each) for each in self._explained.get(key, ())],
            "exchanged_with": [title(*each) for each in self.exchanged.get(key, ())],
        }

    def _callers(self) -> Mapping[Name, Mapping[Name, float]]:
        return {name: each.callers for name, each in self._code.reached[1].items()}

    def _below(self, key: Key) -> set[Name]:
        callers, seen, level = self._callers(), set[Name](), {key}
        while level:
            seen |= level
            level = {name for name, above in callers.items() if not level.isdisjoint(above)} - seen
        return seen

    def _split(self, key: Key, weights: Sequence[Mapping[Name, Mapping[Name, float]]], level: float) -> ChangeSplit:
        nests = []
        for side, reached, shares in zip((self._sides.base, self._sides.new), self._code.reached, weights, strict=True):
            place = reached.get(key)
            nests.append(
                CallTimes(
                    own=_timed(side.get(key, ())),
                    callees={name: (_timed(side[name]), above[key]) for name, above in shares.items() if key in above},
                    inside=place.inside if place else None,
                    samples=place.samples if place else 0.0,
                )
            )
        calls_nothing = all(
            key in reached
            and reached[key].share is not None
            and not any(key in one.callers for one in reached.values())
            for reached in self._code.reached
        )
        return split_change(nests[0], nests[1], level, leaf=calls_nothing)


def _weights(reached: Mapping[Name, ReachedFunction], observed: set[Key]) -> dict[Name, dict[Name, float]]:
    """Return for each observed function the shares of its calls that come, over unobserved ones, from observed ones."""

    def above(name: Name, share: float, depth: int, seen: frozenset[Name]) -> dict[Name, float]:
        found: dict[Name, float] = {}
        callers = reached[name].callers if name in reached else {}
        whole = sum(callers.values())
        for caller, ns in callers.items():
            part = share * (ns / whole if whole > 0.0 else 1.0 / len(callers))
            if caller in observed:
                found[caller] = found.get(caller, 0.0) + part
            elif depth < _DEEPEST and caller not in seen and part > 1e-3:
                for name_above, more in above(caller, part, depth + 1, seen | {caller}).items():
                    found[name_above] = found.get(name_above, 0.0) + more
        return found

    return {name: above(name, 1.0, 0, frozenset({name})) for name in observed}


def _timed(observed: Sequence[FunctionLifetime]) -> dict[str, LifetimeMean]:
    return {
        each.lifetime: LifetimeMean(mean_ns=mean(each.sample), rate=each.rate or 0.0)
        for each in observed
        if each.sample.calls
    }


def _costs(sides: Sides, key: Key) -> tuple[float, float] | None:
    """Return the time per second in a function, base and new; None if its rate is not known."""
    means = []
    for side in (sides.base, sides.new):
        rates = [each.mean_ns * 1e-9 * each.rate for each in _timed(side.get(key, ())).values() if each.rate > 0.0]
        if not rates:
            return None
        means.append(sum(rates) / len(rates))
    return means[0], means[1]


def _where(found: ChangeSplit | None) -> dict[str, Any] | None:
    if found is None:
        return None

    def seconds(value: float | None) -> float | None:
        return None if value is None else float(f"{value * 1e-9:.6g}")

    interval = found.self_interval
    return {
        "part": found.part.value,
        "by": found.by or None,
        "self_change_seconds": seconds(found.self_ns),
        "self_interval_seconds": [seconds(each) for each in interval] if interval else None,
        "callees_change_seconds": seconds(found.callees_ns),
        "through": [title(*each) for each in found.through],
    }
