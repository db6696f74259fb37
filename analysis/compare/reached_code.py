"""The functions that a program reached, by build: sampled on stacks or observed, with the digest of their code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from specmine.mining.regression.code_diff import Name, ReachedFunction
from specmine.store import WHOLE_PROGRAM, Contents, FunctionProfile, LifetimeSummary, Where, read_store


class ReachedCode:
    """The functions in a store, read once for any number of builds."""

    def __init__(self, path: Where) -> None:
        """Read the store."""
        with read_store(path) as store:
            self._contents = store.load(newest=2)
            self._summaries, self._rows = store.read(LifetimeSummary), store.read(FunctionProfile)

    def reached(self, builds: Collection[str]) -> dict[Name, ReachedFunction]:
        """Return the functions reached in some builds of the program; of several of one name that with most time."""
        return _reached(self._contents, self._summaries, self._rows, builds)


def _reached(
    contents: Contents, summaries: Sequence[LifetimeSummary], rows: Sequence[FunctionProfile], builds: Collection[str]
) -> dict[Name, ReachedFunction]:
    lifetimes = {each.id for each in contents.lifetimes if each.build_id in builds}
    sampled = [each for each in rows if each.build_id in builds]
    totals = _by_function(sampled)
    whole = totals.get(WHOLE_PROGRAM)
    observed = {each.function for each in summaries if each.lifetime in lifetimes}
    functions = {each.key: each for each in contents.functions}
    names = {key: (each.name, each.module) for key, each in functions.items()}
    callers: dict[Name, dict[Name, float]] = defaultdict(dict)
    for each in totals.values():
        if each.function in names:
            over = callers[names[each.function]]
            for key, ns in each.callers.items():
                if key in names:
                    over[names[key]] = over.get(names[key], 0.0) + ns
    for window in contents.observations:
        if window.lifetime in lifetimes:
            for one in window.paths:
                for caller, callee in one.path.edges():
                    callers[callee.name, callee.module].setdefault((caller.name, caller.module), 0.0)
    found: dict[Name, ReachedFunction] = {}
    for key, function in sorted(functions.items()):
        own = totals.get(key)
        if own is None and key not in observed and function.build_id not in builds:
            continue
        name = names[key]
        before = found.get(name)
        if before is not None and before.samples >= (own.samples if own else 0):
            continue
        found[name] = ReachedFunction(
            name=name,
            key=key,
            digest=function.code,
            offset=function.offset,
            samples=own.samples if own else 0,
            share=(own.cpu_ns if own else 0.0) / whole.cpu_ns if whole is not None and whole.cpu_ns > 0 else None,
            callers={each: ns for each, ns in callers[name].items() if each != name},
            inside=(own.cpu_ns + own.wait_ns) / own.inclusive_ns if own and own.inclusive_ns > 0 else None,
        )
    return found


def _by_function(rows: Collection[FunctionProfile]) -> dict[str, FunctionProfile]:
    """Add the rows of several builds up."""
    found: dict[str, FunctionProfile] = {}
    for each in rows:
        before = found.get(each.function)
        if before is None:
            found[each.function] = each
            continue
        found[each.function] = FunctionProfile(
            build_id=each.build_id,
            function=each.function,
            samples=before.samples + each.samples,
            cpu_ns=before.cpu_ns + each.cpu_ns,
            wait_ns=before.wait_ns + each.wait_ns,
            inclusive_ns=before.inclusive_ns + each.inclusive_ns,
            callers={**before.callers, **each.callers},
        )
    return found
