"""What a benchmark found out: its runs as lifetimes, compared as ``specmine compare`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specmine.analysis.compare.comparing import compare_functions
from specmine.analysis.compare.document import document_of
from specmine.analysis.compare.sides import chosen_functions, sides_of_builds
from specmine.analysis.lifetimes.lifetime import PREFIX, FunctionLifetime
from specmine.analysis.lifetimes.seen import seen_in
from specmine.analysis.lifetimes.selection import RecordedLifetimes
from specmine.mining.regression.sample import Floats, joined
from specmine.model.host.environment import Environment, environment_from

from .ledger import DONE, Record, RunState
from .results import BadResult, FunctionResult, decoded

NO_FILE = Path("-")
"""Of durations that are in no store: there is no machine code to compare."""


def lifetimes_of(record: Record) -> tuple[list[FunctionLifetime], list[tuple[RunState, str]]]:
    """Return the functions of all runs that are done, and the runs whose results cannot be read, with the reason.

    Where builds were made several times, what repeats is a making: its runs count as one lifetime.
    """
    assert record.benchmark.rebuilds is not None
    environments = {each.host: _environment(each.facts) for each in record.hosts}
    groups: dict[tuple[str, str, str, str, str], list[tuple[RunState, FunctionResult]]] = {}
    unread = []
    for state in record.runs:
        if state.state != DONE:
            continue
        try:
            found = decoded(state.result)
        except BadResult as error:
            unread.append((state, str(error)))
            continue
        lifetime = f"making-{state.run.rebuild + 1}" if record.benchmark.rebuilds > 1 else f"run-{state.run.number + 1}"
        for each in found:
            key = (each.function, each.module, state.run.build, state.host, lifetime)
            groups.setdefault(key, []).append((state, each))
    return [_lifetime(key, group, environments.get(key[3])) for key, group in groups.items()], unread


def recorded(record: Record) -> RecordedLifetimes:
    """Return what compare, report and plan work on."""
    observed, _ = lifetimes_of(record)
    return RecordedLifetimes(observed=observed, seen=seen_in(observed))


def comparisons(record: Record) -> list[dict[str, Any]]:
    """Return ``specmine.comparison/1`` of each build with the first; a pair without a function on both sides too."""
    known = recorded(record)
    base, *others = (each.label for each in record.benchmark.builds)
    found = []
    for new in others:
        sides = sides_of_builds(known, NO_FILE, base, new)
        globs = record.benchmark.functions if sides.base or sides.new else ()
        compared = compare_functions(sides, chosen_functions(sides, globs), record.benchmark.rule)
        found.append(document_of(sides, compared, record.benchmark.rule, fdr=False))
    return found


def durations_csv(record: Record) -> Iterator[str]:
    """Yield the durations of all runs as CSV, for other tools. Mined runs have none: theirs are histograms."""
    yield "build,lifetime,host,function,time_ns,duration_ns\n"
    for state in record.runs:
        if state.state != DONE:
            continue
        try:
            found = decoded(state.result)
        except BadResult:
            continue
        for each in found:
            if each.durations_ns is not None:
                names = (state.run.build, f"run-{state.run.number + 1}", state.host, each.function)
                where = ",".join(map(_quoted, names))
                for at, value in enumerate(each.durations_ns.tolist()):
                    yield f"{where},{state.begun_utc_ns + at},{value:.12g}\n"


def _lifetime(
    key: tuple[str, str, str, str, str],
    group: Sequence[tuple[RunState, FunctionResult]],
    environment: Environment | None,
) -> FunctionLifetime:
    function, module, build, host, lifetime = key
    raw = [each.durations_ns for _, each in group if each.durations_ns is not None]
    whole = np.concatenate(raw) if len(raw) == len(group) else None
    rates = [each.rate for _, each in group if each.rate is not None]
    return FunctionLifetime(
        function=function,
        module=module,
        build=build,
        label=build,
        host=host,
        lifetime=lifetime,
        start_ns=min(state.begun_utc_ns for state, _ in group),
        sample=joined([each.sample for _, each in group]) if len(group) > 1 else group[0][1].sample,
        rate=sum(rates) / len(rates) if rates else None,
        warmup=sum(each.warmup for _, each in group),
        first_ns=whole[:PREFIX].copy() if whole is not None else None,
        drawn_ns=_drawn(whole) if whole is not None else None,
        environment=environment,
    )


def _drawn(durations: Floats) -> Floats:
    """Return a fair sample of some durations, the same for the same durations."""
    if len(durations) <= PREFIX:
        return durations.copy()
    return durations[np.random.default_rng(len(durations)).choice(len(durations), PREFIX, replace=False)]


def _environment(facts: object) -> Environment | None:
    if not isinstance(facts, dict) or not facts:
        return None
    try:
        return environment_from(facts)
    except (ValueError, TypeError, AttributeError):  # a host may say anything of itself
        return None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\n\r') else text
