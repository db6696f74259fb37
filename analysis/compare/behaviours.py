"""The calls of a function's behaviours on both sides of a comparison, lifetime by lifetime.

Behaviours are those that the specification in a store states. Of recorded durations with call paths they are mined from
the base, where its durations have a border.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.daemon.worker.jobs import Job, run_job
from specmine.mining.assertions.expression import Formula, render
from specmine.mining.comparison.function_parts import Split, class_bounds
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import histogram_of, joined
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import bucket_of
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

from .sides import ByFunction, Key, Sides


class BehaviourCalls:
    """Splits the calls of functions by behaviour; call paths are read once, when they are first needed."""

    def __init__(self, sides: Sides) -> None:
        """Take the sides."""
        self._stated = sides.stated
        self._mined = not sides.stated
        self._by_path: Callable[[], tuple[ByFunction, ByFunction]] = cache(sides.by_path)

    def of(self, key: Key) -> Split | None:
        """Return the calls of both sides by expression, None if the function has no several behaviours."""
        if key not in self._stated and not self._mined:
            return None
        base, new = (side.get(key, ()) for side in self._by_path())
        if not base or not new:
            return None
        formulas = self._stated.get(key) or mined_formulas(base)
        if len(formulas) < 2:
            return None
        return {render(each): (calls_with(base, each), calls_with(new, each)) for each in formulas}


def calls_with(observed: Sequence[FunctionLifetime], formula: Formula) -> list[LifetimeSample]:
    """Return of each lifetime the calls that fulfil a formula."""
    groups: dict[tuple[str, str, str], list[FunctionLifetime]] = {}
    for each in observed:
        if each.fulfils(formula):
            groups.setdefault((each.build, each.host, each.lifetime), []).append(each)
    return [
        replace(group[0].as_sample(), sample=joined([each.sample for each in group]), rate=None)
        for group in groups.values()
    ]


def mined_formulas(base: Sequence[FunctionLifetime]) -> tuple[Formula, ...]:
    """Return the behaviours that call paths show in the base, () if there is one only."""
    bounds = class_bounds([joined([each.sample for each in group]) for group in _lifetimes(base).values()])
    paths = {each.path for each in base if each.path}
    if len(bounds) < 2 or len(paths) < 2:
        return ()
    job = Job(
        function=base[0].function,
        observations=tuple(_observation(at, group) for at, group in enumerate(_lifetimes(base).values())),
        borders=tuple(int(bucket_of(lower)) for lower, _ in bounds[1:]),
        program_modules=("",),
        mining=MiningSettings(),
    )
    found = run_job(job)
    return tuple(each.formula for each in found.behaviours) if not found.why else ()


def _lifetimes(observed: Sequence[FunctionLifetime]) -> Mapping[tuple[str, str], list[FunctionLifetime]]:
    groups: dict[tuple[str, str], list[FunctionLifetime]] = {}
    for each in observed:
        groups.setdefault((each.host, each.lifetime), []).append(each)
    return groups


def _observation(number: int, group: Sequence[FunctionLifetime]) -> Observation:
    """Return one lifetime's calls as an observation: shares differ between lifetimes as between windows."""
    paths = tuple(
        PathHistogram(path=CallPath(tuple(Frame(name, "") for name in each.path)), histogram=histogram_of(each.sample))
        for each in group
        if each.path
    )
    whole = Histogram.sum(each.histogram for each in paths)
    return Observation(
        function=group[0].function,
        lifetime=group[0].lifetime,
        kind=Kind.PATH,
        start_ns=number,
        end_ns=number + 1,
        histogram=whole,
        calls=whole.total,
        watched_ns=1,
        paths=paths,
    )
