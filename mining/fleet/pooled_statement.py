"""What many hosts together say of one function: borders, behaviours and expressions, from their rows. Pure.

Each host counts once, whatever it sends: a few hundred calls of each, on one scale, by lot. A border must stand in most
of the hosts, and a call path in more than one. So a host that lies adds nothing that the others do not show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specmine.mining.assertions.explanation import Explanation
from specmine.mining.borders.inference import Inference, infer_stable_borders
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.call_path import CallPath
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.pooling import pooled

from .host_factors import FARTHEST, LEAST_SCALE, MAD_TO_SIGMA
from .panel import drawn
from .statement import InheritedStatement
from .trimmed import FEWEST, trimmed_mean

MOST_ROWS = 20
"""Rows that borders come from; each is of one host."""
MOST_CALLS = 1_000
"""Calls of a row that count: no host has a louder voice than others."""
FEWEST_CALLS = 20
"""Of a host: fewer do not tell its scale. What is called rarely is learned from many hosts, from a little of each."""
SLOT_NS = 10_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledStatement:
    """What was found."""

    state: str
    """stated; paths: it has classes, and call paths are missing; unstable: hosts do not agree; few: too few calls."""
    statement: InheritedStatement | None = None
    hosts: int = 0
    left_out: tuple[str, ...] = ()
    """Hosts whose durations lie too far from those of all others."""


def pooled_statement(
    function: str,
    build_id: str,
    rows: Mapping[str, Sequence[Observation]],
    program_modules: Sequence[str],
    settings: MiningSettings,
) -> PooledStatement:
    """Return what hosts together say of a function.

    Parameters
    ----------
    function, build_id : str
    rows : mapping from host to its rows, the newest first
    program_modules : sequence of str
        Modules whose call edges are preferred.
    settings : MiningSettings
    """
    parts = {host: _parts(each, settings) for host, each in rows.items()}
    medians = {host: value for host, each in parts.items() if (value := _log_median(each)) is not None}
    left_out = _outliers(medians)
    used = {host: parts[host] for host in sorted(medians) if host not in left_out}
    hosts = len(used)
    if not used:
        return PooledStatement(state="few", left_out=left_out)
    centre = _centre([medians[host] for host in used])
    bias_ns = float(np.median([row.bias_ns for each in used.values() for row in each]))
    scaled = {host: [_scaled(row, centre - medians[host], bias_ns) for row in each] for host, each in used.items()}
    chosen = _chosen(scaled, settings)
    if len(chosen) < settings.chain_observations:
        return PooledStatement(state="few", hosts=hosts, left_out=left_out)
    learned = infer_stable_borders(chosen, {}, None, settings)[0]
    if not learned.stable:
        return PooledStatement(state="unstable", hosts=hosts, left_out=left_out)
    result = None
    if learned.borders:
        by_path = _chosen(_seen_by_several(scaled), settings, Kind.PATH)
        if len(by_path) < settings.chain_observations:
            return PooledStatement(state="paths", hosts=hosts, left_out=left_out)
        result = _explained(by_path, learned, program_modules, settings)
    statement = InheritedStatement(
        function=function,
        build_id=build_id,
        learned=_portable(learned),
        result=result,
        median_ns=math.exp(centre),
        hosts=hosts,
        calls=sum(row.timed for row in chosen),
    )
    return PooledStatement(state="stated", statement=statement, hosts=hosts, left_out=left_out)


def scaled_histogram(histogram: Histogram, factor: float, bias_ns: float, to_bias_ns: float, most: int) -> Histogram:
    """Return a histogram whose durations are ``factor`` times as long, of at most so many calls.

    The calls of a bucket are spread evenly over it, and sums are rounded, not single buckets: no gap appears that was
    not there, and none is filled.

    Parameters
    ----------
    histogram : Histogram
    factor : float
    bias_ns, to_bias_ns : float
        What the probes added to the durations, and what they are to have added.
    most : int
        Calls that are left of more.
    """
    total = histogram.total
    if not total:
        return EMPTY
    source = (BUCKET_EDGES - to_bias_ns) / factor + bias_ns
    below = np.interp(source, BUCKET_EDGES, np.concatenate(([0.0], np.cumsum(histogram.dense, dtype=np.float64))))
    below[0], below[-1] = 0.0, total
    counts = np.diff(np.round(below * min(1.0, most / total)).astype(np.int64))
    return Histogram.from_dense(np.maximum(counts, 0))


def _parts(rows: Sequence[Observation], settings: MiningSettings) -> list[Observation]:
    """Return rows that can be judged; smaller ones of a kind are joined. What is left is one part that may be small."""
    found, rest = [], []
    for kind in (Kind.PATH, Kind.TIME):
        small: list[Observation] = []
        for row in (each for each in rows if each.kind is kind and _is_whole(each)):
            small.append(row)
            if sum(each.timed for each in small) >= settings.minimum_calls:
                found.append(_joined(small))
                small = []
        if sum(each.timed for each in small) >= FEWEST_CALLS:
            rest.append(_joined(small))
    return found or rest[:1]


def _joined(rows: Sequence[Observation]) -> Observation:
    return pooled(rows) if len(rows) > 1 else rows[0]


def _is_whole(row: Observation) -> bool:
    """Tell whether the call paths of a row hold its calls, no others."""
    return row.kind is not Kind.PATH or sum(one.histogram.total for one in row.paths) == row.timed


def _log_median(rows: Sequence[Observation]) -> float | None:
    values = [value for row in rows if (value := row.histogram.quantile(0.5) - row.bias_ns) > 0]
    return float(np.median(np.log(values))) if values else None


def _outliers(medians: Mapping[str, float]) -> tuple[str, ...]:
    """Return the hosts that lie beyond what the others differ by; of two nobody can tell which."""
    if len(medians) < FEWEST:
        return ()
    values = np.array(list(medians.values()))
    middle = float(np.median(values))
    scale = max(LEAST_SCALE, MAD_TO_SIGMA * float(np.median(np.abs(values - middle))))
    return tuple(sorted(host for host, value in medians.items() if abs(value - middle) > FARTHEST * scale))


def _centre(values: Sequence[float]) -> float:
    found = trimmed_mean(values)
    return found.mean if found is not None else float(np.median(values))


def _chosen(
    rows: Mapping[str, Sequence[Observation]], settings: MiningSettings, kind: Kind | None = None
) -> list[Observation]:
    """Return rows by turns, one of each host by lot, then a second one, and so on.

    Hosts that sent too few calls to be judged follow, joined by lot: each is in one row only.
    """
    fitting = {host: [row for row in each if kind is None or row.kind is kind] for host, each in rows.items()}
    large = {host: [row for row in each if row.timed >= settings.minimum_calls] for host, each in fitting.items()}
    order = drawn([host for host, each in large.items() if each], MOST_ROWS)
    found: list[Observation] = []
    for turn in range(max((len(large[host]) for host in order), default=0)):
        found += [large[host][turn] for host in order if turn < len(large[host])]
    small: dict[Kind, list[Observation]] = {}
    for host in drawn([host for host, each in fitting.items() if each and not large[host]], len(fitting)):
        row = fitting[host][0]
        group = small.setdefault(row.kind, [])
        group.append(row)
        if sum(each.timed for each in group) >= settings.minimum_calls:
            found.append(_together(group))
            small[row.kind] = []
    # hosts have no common clock, and need none: each row gets a time of its own
    return [
        replace(row, start_ns=1 + place * SLOT_NS, end_ns=(place + 1) * SLOT_NS)
        for place, row in enumerate(found[:MOST_ROWS])
    ]


def _together(rows: Sequence[Observation]) -> Observation:
    """Return rows of several hosts, on one scale, as one."""
    paths: dict[CallPath, Histogram] = {}
    for one in (one for row in rows for one in row.paths):
        paths[one.path] = paths[one.path] + one.histogram if one.path in paths else one.histogram
    return replace(
        rows[0],
        histogram=Histogram.sum(row.histogram for row in rows),
        calls=sum(row.calls for row in rows),
        watched_ns=sum(row.watched_ns for row in rows),
        paths=tuple(PathHistogram(path=path, histogram=histogram) for path, histogram in paths.items()),
    )


def _scaled(row: Observation, log_factor: float, bias_ns: float) -> Observation:
    """Return a row on the scale of the fleet, of at most ``MOST_CALLS``."""
    factor, share = math.exp(log_factor), min(1.0, MOST_CALLS / max(1, row.timed))
    paths = tuple(
        PathHistogram(
            path=one.path,
            histogram=scaled_histogram(one.histogram, factor, row.bias_ns, bias_ns, round(share * one.histogram.total)),
        )
        for one in row.paths
    )
    whole = scaled_histogram(row.histogram, factor, row.bias_ns, bias_ns, MOST_CALLS)
    return replace(
        row, histogram=whole, paths=tuple(one for one in paths if one.histogram.total), bias_ns=bias_ns, split=None,
        inside=(), calls=max(row.calls, whole.total),
    )  # fmt: skip


def _seen_by_several(rows: Mapping[str, Sequence[Observation]]) -> dict[str, list[Observation]]:
    """Return rows without the call paths that one host alone shows, where there are three or more."""
    if len(rows) < FEWEST:
        return {host: list(each) for host, each in rows.items()}
    seen = Counter(path for each in rows.values() for path in {one.path for row in each for one in row.paths})
    found: dict[str, list[Observation]] = {}
    for host, each in rows.items():
        for row in each:
            paths = tuple(one for one in row.paths if seen[one.path] > 1)
            if paths:
                whole = Histogram.sum(one.histogram for one in paths)
                found.setdefault(host, []).append(replace(row, paths=paths, histogram=whole))
    return found


def _explained(
    rows: Sequence[Observation], learned: Inference, program_modules: Sequence[str], settings: MiningSettings
) -> Explanation:
    from specmine.mining.assertions.explain import explain  # noqa: PLC0415  scikit-learn: for those who mine alone

    return explain(tuple(rows), learned.edges, program=tuple(program_modules), settings=settings)


def _portable(learned: Inference) -> Inference:
    """Return an inference without what is true of the rows alone: their times."""
    return replace(learned, start_ns=None, end_ns=None, ended_by="", step=1.0)
