"""The data of formulas: lifetimes from a CSV or a store, or a specification as mined or live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.selection import lifetimes_named
from specmine.mining.assertions.expression import evaluate, from_records, is_inside
from specmine.mining.levels.window import Window
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import Sample, sample_of_histogram
from specmine.mining.spl.data import ClassCalls, Missing, StatedQuantile
from specmine.mining.spl.syntax import Condition, Subject
from specmine.model.errors import InputError
from specmine.model.globs import names_of
from specmine.model.histogram import Histogram
from specmine.model.json_codec import decode
from specmine.model.text import listed

BASE, NEW = "base", "new"
MANY_LIFETIMES = 5
"""From so many lifetimes on they say themselves how far they differ."""
RECENT = 5
"""Windows that ``observed`` rests on."""
_SAME_BORDER = 0.01


class LifetimeData:
    """Lifetimes of functions; ``by_path`` has the same calls split by path, as far as paths are known."""

    def __init__(
        self,
        observed: Sequence[FunctionLifetime],
        by_path: Sequence[FunctionLifetime] = (),
        builds: Mapping[str, str] | None = None,
        on_cpu: Callable[[], Sequence[FunctionLifetime]] = tuple,
        windows: Callable[[], tuple[Sequence[FunctionLifetime], Sequence[FunctionLifetime]]] = lambda: ((), ()),
    ) -> None:
        """Take the lifetimes.

        Parameters
        ----------
        observed, by_path : sequence of FunctionLifetime
        builds : mapping, optional
            Alias to build; without ``base`` and ``new`` in it these are the two newest builds.
        on_cpu : callable
            What gives the same windows by their calls' time on CPU; asked once, if a formula speaks of it.
        windows : callable
            What gives all windows, and all by call path; asked once, if a formula speaks of levels.
        """
        self._observed, self._by_path = tuple(observed), tuple(by_path)
        self._builds = {**_last_two(observed), **(builds or {})}
        self._read_on_cpu = cache(on_cpu)
        self._read_windows = cache(windows)

    def lifetimes(self, subject: Subject) -> Sequence[LifetimeSample]:
        """Return the lifetimes of a subject, in ns."""
        if subject.cpu:
            source = self._on_cpu(subject)
        else:
            source = self._by_path if subject.condition is not None else self._observed
        chosen = self._chosen(source, subject)
        groups: dict[tuple[str, str, str], list[FunctionLifetime]] = {}
        for each in chosen:
            groups.setdefault((each.build, each.host, each.lifetime), []).append(each)
        return [
            replace(group[0].as_sample(), lifetime=f"{build}/{lifetime}", sample=_merged(group))
            for (build, _, lifetime), group in groups.items()
        ]

    def class_calls(self, subject: Subject, borders_ns: Sequence[float]) -> ClassCalls:
        """Return the calls per class: a row per lifetime where there are many, else per window as far as it is known.

        Rows say how far shares vary by themselves. Lifetimes vary at least as much as their windows.
        """
        chosen = self._chosen(self._classified(subject), subject)
        if not chosen and subject.condition is None and not subject.cpu:
            chosen = self._chosen(self._observed, subject)
        many = len({each.lifetime for each in chosen}) >= MANY_LIFETIMES
        rows: dict[tuple[str, int], list[FunctionLifetime]] = {}
        for each in chosen:
            rows.setdefault((each.lifetime, 0 if many else each.window), []).append(each)
        return ClassCalls(rows=tuple(_classes(_merged(group), borders_ns) for group in rows.values()))

    def _classified(self, subject: Subject) -> Sequence[FunctionLifetime]:
        """Return what class shares come from."""
        if subject.cpu:
            return self._on_cpu(subject)
        windows = self._split(subject)
        if windows:
            return windows
        return self._by_path if subject.condition is not None else self._observed

    def windows(self, subject: Subject) -> Sequence[Window]:
        """Return the windows of a subject, in the order of time within each lifetime."""
        chosen = self._chosen(self._on_cpu(subject) if subject.cpu else self._split(subject), subject)
        rows: dict[tuple[str, str, str, int], list[FunctionLifetime]] = {}
        for each in chosen:
            rows.setdefault((each.build, each.host, each.lifetime, each.window), []).append(each)
        return [
            Window(
                histogram=Histogram.sum(each.histogram for each in group if each.histogram is not None),
                start_ns=window,
                end_ns=window + 1,
                lifetime=f"{build}/{host}/{lifetime}",
                bias_ns=group[0].bias_ns,
            )
            for (build, host, lifetime, window), group in sorted(rows.items(), key=lambda row: row[0])
        ]

    def stated(self, subject: Subject) -> None:
        """Return nothing: the windows are here."""

    def _split(self, subject: Subject) -> Sequence[FunctionLifetime]:
        """Return what windows come from: those by call path if only some paths are meant."""
        whole, by_path = self._read_windows()
        return by_path if subject.condition is not None else whole

    def _on_cpu(self, subject: Subject) -> Sequence[FunctionLifetime]:
        if subject.condition is not None:
            raise Missing("time on CPU is not kept apart by call path")
        found = self._read_on_cpu()
        if not found:
            raise Missing("what calls did of their time is not known here; a store that specmine filled knows it")
        return found

    def _chosen(self, source: Sequence[FunctionLifetime], subject: Subject) -> list[FunctionLifetime]:
        named = [each for each in source if _is_called(each.function, each.module, subject.function)]
        if not named:
            if subject.condition is not None and not source:
                raise Missing("no call paths are known here")
            known = sorted({each.function for each in source})
            raise Missing(f"no function {subject.function} was seen; known: {listed(known[:5]) or 'none'}")
        if subject.host is not None:
            named = [each for each in named if each.host == subject.host]
        wanted = self._builds.get(subject.build, subject.build) if subject.build else self._builds.get(NEW)
        if wanted is not None:
            try:
                everywhere = {
                    (each.build, each.host, each.lifetime) for each in lifetimes_named(self._observed, wanted, "it")
                }
            except InputError as error:
                raise Missing(str(error)) from error
            named = [each for each in named if (each.build, each.host, each.lifetime) in everywhere]
        elif subject.build is not None:
            raise Missing(f"there is no build {subject.build}: only one build was seen")
        condition = subject.condition
        return named if condition is None else [each for each in named if _meant(each, condition)]


class DocumentData:
    """A specification: one lifetime as mined, with durations only if it was written in detail."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Take the document."""
        self._functions = [each for each in document["functions"] if isinstance(each, Mapping)]

    def lifetimes(self, subject: Subject) -> Sequence[LifetimeSample]:
        """Return the one lifetime that the document is of."""
        entry = self._entry(subject)
        if subject.condition is not None:
            raise Missing("a specification holds class shares of paths, not their durations")
        histogram = _on_cpu(entry).get("histogram") if subject.cpu else entry.get("histogram")
        if histogram is None:
            raise Missing("this specification holds no durations; check against a store")
        durations: Histogram = decode(Histogram, histogram)
        rate = entry.get("rate_per_second")
        sample = sample_of_histogram(durations, 1e9 * float(entry.get("bias_seconds") or 0.0))
        return [LifetimeSample(lifetime="1", host="", sample=sample, rate=rate)]

    def class_calls(self, subject: Subject, borders_ns: Sequence[float]) -> ClassCalls:
        """Return the calls per class, of the durations or of the paths."""
        entry = self._entry(subject)
        told = _on_cpu(entry) if subject.cpu else entry
        if subject.condition is None and told.get("histogram") is not None:
            (whole,) = self.lifetimes(subject)
            return ClassCalls(rows=(_classes(whole.sample, borders_ns),))
        own = [1e9 * float(each) for each in told.get("borders_seconds") or ()]
        if len(own) != len(borders_ns) or any(
            abs(a - b) > _SAME_BORDER * b for a, b in zip(own, borders_ns, strict=True)
        ):
            raise Missing("its classes are cut elsewhere, and it holds no durations; check against a store")
        paths = entry.get("paths") or ()
        if subject.cpu:
            rows = [_calls([each["share"] for each in told["classes"]], told["calls"])]
        elif subject.condition is None:
            rows = [_calls(each["shares"], each["calls"]) for each in entry.get("behaviours") or ()]
        elif is_inside(subject.condition.edges):
            _, behaviour = self._part(subject)
            if not behaviour:
                raise Missing("a specification does not tell what other calls reached; check against a store")
            rows = [_calls(behaviour["shares"], behaviour["calls"])]
        elif not paths:
            raise Missing("no call paths are known of it")
        else:
            rows = [
                _calls(each["shares"], each["calls"])
                for each in paths
                if each.get("complete") and _over(tuple(each["frames"]), subject.condition)
            ]
        summed = np.sum(np.array(rows, dtype=np.int64).reshape(-1, len(borders_ns) + 1), axis=0)
        return ClassCalls(rows=(tuple(int(each) for each in summed),))

    def windows(self, subject: Subject) -> Sequence[Window]:
        """Return the durations that the document holds as one window."""
        entry, told = self._part(subject)
        if told.get("histogram") is None:
            raise Missing("this specification holds no durations of these calls; check against a store")
        histogram: Histogram = decode(Histogram, told["histogram"])
        bias_ns = 1e9 * float(entry.get("bias_seconds") or 0.0)
        return [Window(histogram=histogram, start_ns=0, end_ns=1, lifetime="1", bias_ns=bias_ns)]

    def stated(self, subject: Subject) -> Mapping[str, StatedQuantile] | None:
        """Return the quantiles of the newest windows, else those learned, unless the durations say it better."""
        _, told = self._part(subject)
        newest = told.get("observed")
        if newest is None and told.get("histogram") is not None:
            return None
        windows = min(RECENT, int(told.get("windows") or 1)) if newest is not None else int(told.get("windows") or 1)
        ranges, calls = told.get("quantiles") or {}, int(told.get("calls") or 0)
        return {
            name: StatedQuantile(
                seconds=float(each["seconds"]),
                low=float(ranges[name]["low"]),
                high=float(ranges[name]["high"]),
                windows=windows,
                calls=calls,
            )
            for name, each in (newest or ranges).items()
            if each and ranges.get(name) and None not in (ranges[name]["low"], ranges[name]["high"])
        }

    def _part(self, subject: Subject) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the entry of a function, and the part of it that a subject means."""
        entry = self._entry(subject)
        if subject.condition is not None:
            return entry, next((each for each in entry.get("behaviours") or () if _is_of(each, subject.condition)), {})
        return entry, _on_cpu(entry) if subject.cpu else entry

    def _entry(self, subject: Subject) -> Mapping[str, Any]:
        if subject.build is not None or subject.host is not None:
            raise Missing("a specification is of one build on one host; check against a store")
        found = [each for each in self._functions
                 if _is_called(str(each.get("function")), str(each.get("module") or ""), subject.function)]  # fmt: skip
        if not found:
            raise Missing(f"no function {subject.function} was seen")
        return found[0]


def _on_cpu(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the time on CPU in an entry; for calls that never leave the CPU it is their duration."""
    found: Mapping[str, Any] | None = entry.get("on_cpu")
    if found is not None:
        return found
    if not entry.get("time"):
        raise Missing("what its calls did of their time is not known")
    calls = entry["time"]["calls"]
    return {**{name: entry.get(name) for name in ("histogram", "borders_seconds", "classes")}, "calls": calls}


def _is_of(behaviour: Mapping[str, Any], condition: Condition) -> bool:
    return condition.on_path is None and from_records(behaviour.get("formula") or []) == condition.edges


def _is_called(function: str, module: str, wanted: str) -> bool:
    return wanted in names_of(function, module)


def _meant(observed: FunctionLifetime, condition: Condition) -> bool:
    """Tell whether calls are those of a condition."""
    if condition.on_path is not None:
        return _passes(observed.path, condition.on_path)
    return observed.fulfils(condition.edges)


def _over(path: Sequence[str], condition: Condition) -> bool:
    """Tell whether a call path is one of a condition's."""
    if condition.on_path is not None:
        return _passes(path, condition.on_path)
    return bool(path) and evaluate(condition.edges, frozenset(pairwise(path)))


def _passes(path: Sequence[str], function: str) -> bool:
    return any(_is_called(frame, "", function) for frame in path[:-1])


def _last_two(observed: Iterable[FunctionLifetime]) -> dict[str, str]:
    """Return what base and new mean: the last two builds in the order of their first observation."""
    first: dict[str, int] = {}
    for each in observed:
        first[each.build] = min(first.get(each.build, each.start_ns), each.start_ns)
    labels = [build for build in first]
    ordered = sorted(labels, key=first.__getitem__)  # stable: without times the order of the file
    return {BASE: ordered[-2], NEW: ordered[-1]} if len(ordered) > 1 else {}


def _merged(group: Sequence[FunctionLifetime]) -> Sample:
    if len(group) == 1:
        return group[0].sample
    lower, upper = (np.concatenate([getattr(each.sample, name) for each in group]) for name in ("lower", "upper"))
    order = np.argsort(lower, kind="stable")
    counts = np.concatenate([each.sample.counts for each in group])
    return Sample(lower[order], upper[order], counts[order])


def _classes(sample: Sample, borders_ns: Sequence[float]) -> tuple[int, ...]:
    """Count calls per class; a duration equal to a border belongs to the lower one."""
    cell = np.searchsorted(np.asarray(borders_ns, dtype=np.float64), sample.middle, side="left")
    return tuple(int(each) for each in np.bincount(cell, weights=sample.counts, minlength=len(borders_ns) + 1))


def _calls(shares: Sequence[float], calls: int) -> list[int]:
    return [round(share * calls) for share in shares]
