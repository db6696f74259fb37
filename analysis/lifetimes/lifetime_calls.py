"""The calls of one function in one lifetime, put together from the summaries of each kind of probe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from specmine.mining.regression.probe_kinds import are_comparable
from specmine.mining.regression.sample import Sample, joined, quantile, sample_of_histogram
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.store import LifetimeSummary

_KINDS = (Kind.TIME, Kind.PATH)
Name = tuple[str, str]
"""Function and module: what makes it the same in another build."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LifetimeCalls:
    """The calls of one function in one lifetime that count."""

    newest: LifetimeSummary
    """Of those that they come from the one that ends last."""
    start_utc_ns: int
    sample: Sample
    """Their durations, less the probes' own cost."""
    rate: float | None
    """Calls per watched second, None if that is not known."""
    warmup: int
    """Calls left out as warm-up."""


def calls_by_lifetime(
    summaries: Sequence[LifetimeSummary], functions: Mapping[str, Function], *, warmup: bool = True
) -> list[LifetimeCalls]:
    """Return the calls of each function in each lifetime.

    Parameters
    ----------
    summaries : sequence of LifetimeSummary
    functions : mapping
        By key.
    warmup : bool
        Leave out the calls of a lifetime's first seconds, if as many came later.

    Notes
    -----
    Calls timed alone and calls timed with their path count together where that cannot look like a change. Of other
    functions only the kind counts that more lifetimes have.
    """
    found: dict[tuple[str, str], list[LifetimeSummary]] = defaultdict(list)
    for each in _counted(summaries, functions):
        found[each.function, each.lifetime].append(each)
    return [_together(each, warmup=warmup) for each in found.values()]


def not_counted(summaries: Sequence[LifetimeSummary], functions: Mapping[str, Function]) -> dict[str, frozenset[Name]]:
    """Return by lifetime the functions that were timed in it, but by the kind of probe that does not count."""
    counted = {(_name(functions[each.function]), each.lifetime) for each in _counted(summaries, functions)}
    found: dict[str, set[Name]] = defaultdict(set)
    for each in summaries:
        if each.function in functions and (name := _name(functions[each.function]), each.lifetime) not in counted:
            found[each.lifetime].add(name)
    return {lifetime: frozenset(names) for lifetime, names in found.items()}


def _counted(summaries: Sequence[LifetimeSummary], functions: Mapping[str, Function]) -> list[LifetimeSummary]:
    by_name: dict[Name, list[LifetimeSummary]] = defaultdict(list)
    for each in summaries:
        if each.function in functions:
            by_name[_name(functions[each.function])].append(each)
    kinds = {name: _comparable_kinds(group) for name, group in by_name.items()}
    return [each for name, group in by_name.items() for each in group if each.kind in kinds[name]]


def _comparable_kinds(group: Sequence[LifetimeSummary]) -> Collection[Kind]:
    """Return the kinds of probes whose calls count together."""
    lifetimes = {kind: len({each.lifetime for each in group if each.kind is kind}) for kind in _KINDS}
    if 0 in lifetimes.values() or all(map(_are_long, group)):
        return _KINDS
    return (max(_KINDS, key=lambda kind: lifetimes[kind]),)


def _are_long(summary: LifetimeSummary) -> bool:
    calls = sample_of_histogram(summary.early + summary.later, summary.bias_ns)
    return bool(calls.calls) and are_comparable(quantile(calls, 0.5), summary.bias_ns)


def _together(summaries: Sequence[LifetimeSummary], *, warmup: bool) -> LifetimeCalls:
    pairs = [(each.early, each.later) for each in summaries]
    early, later = (sum(each[at].total for each in pairs) for at in (0, 1))
    cut = warmup and later >= max(early, 1)
    samples = [
        sample_of_histogram(pair[1] if cut else pair[0] + pair[1], each.bias_ns)
        for each, pair in zip(summaries, pairs, strict=True)
    ]
    watched_ns = sum(each.watched_ns for each in summaries)
    return LifetimeCalls(
        newest=max(summaries, key=lambda each: each.end_utc_ns),
        start_utc_ns=min(each.start_utc_ns for each in summaries),
        sample=samples[0] if len(samples) == 1 else joined(samples),
        rate=sum(each.calls for each in summaries) / (watched_ns * 1e-9) if watched_ns else None,
        warmup=early if cut else 0,
    )


def _name(function: Function) -> Name:
    return function.name, function.module
