"""The data of formulas from lifetimes: of a CSV file or a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.selection import lifetimes_named
from specmine.mining.levels.window import Window
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import Sample
from specmine.mining.spl.data import ClassCalls, Missing
from specmine.mining.spl.syntax import Specification, Subject
from specmine.model.errors import InputError
from specmine.model.histogram import Histogram
from specmine.model.text import listed

from .data_age import Span, before
from .subjects import calls_by_class, is_called, meant

BASE, NEW = "base", "new"
MANY_LIFETIMES = 5
"""From so many lifetimes on they say themselves how far they differ."""


class LifetimeData:
    """Lifetimes of functions; ``by_path`` has the same calls split by path, as far as paths are known."""

    def __init__(
        self,
        observed: Sequence[FunctionLifetime],
        by_path: Sequence[FunctionLifetime] = (),
        builds: Mapping[str, str] | None = None,
        on_cpu: Callable[[], Sequence[FunctionLifetime]] = tuple,
        windows: Callable[[], tuple[Sequence[FunctionLifetime], Sequence[FunctionLifetime]]] = lambda: ((), ()),
        mined: Specification | None = None,
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
        mined : Specification, optional
            What is checked: of the lifetimes that it was mined from, windows before it do not count.
        """
        self._mined = mined if mined is not None else Specification(statements=())
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
        chosen = self._later(chosen, subject)
        many = len({each.lifetime for each in chosen}) >= MANY_LIFETIMES
        rows: dict[tuple[str, int], list[FunctionLifetime]] = {}
        for each in chosen:
            rows.setdefault((each.lifetime, 0 if many else each.window), []).append(each)
        return ClassCalls(rows=tuple(calls_by_class(_merged(group), borders_ns) for group in rows.values()))

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
        chosen = self._later(
            self._chosen(self._on_cpu(subject) if subject.cpu else self._split(subject), subject), subject
        )
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

    def span(self, subject: Subject, *, recent: bool) -> Span | None:
        """Return when the calls of a subject were observed; None where the source has no dates."""
        found = [each for each in self._chosen(self._observed, replace(subject, condition=None)) if each.end_utc_ns]
        if not found:
            return None
        return Span(start_ns=min(each.start_ns for each in found), end_ns=max(each.end_utc_ns for each in found))

    def _later(self, chosen: list[FunctionLifetime], subject: Subject) -> list[FunctionLifetime]:
        """Return what counts for a mined statement: a program that goes on may have warmed up before it was mined."""
        since = self._mined.since_ns.get(subject.function)
        if since is None:
            return chosen
        same = self._mined.lifetimes
        later = [each for each in chosen if each.lifetime not in same or not 0 < each.end_utc_ns <= since]
        if chosen and not later:
            raise Missing(before(since - max(each.end_utc_ns for each in chosen)))
        return later

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
        named = [each for each in source if is_called(each.function, each.module, subject.function)]
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
        return named if condition is None else [each for each in named if meant(each, condition)]


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
