"""The time profile of each build of the program, added up from samples: also of functions without a probe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from specmine.model.batch import Batch, HotSample
from specmine.store import WHOLE_PROGRAM, FunctionProfile

_CALLERS = 16
KEPT = 4
"""Builds that have ended whose profiles stay in memory, those sampled last; a store has the others."""


class ProfileTotals:
    """Adds up samples; ``changed`` returns the rows that are new since its last call."""

    def __init__(self, stored: Callable[[str], Iterable[FunctionProfile]] = lambda build: ()) -> None:
        """Have no profile; ``stored`` returns what a store has of a build, to go on from when it runs."""
        self._stored = stored
        self._rows: dict[str, dict[str, FunctionProfile]] = {}
        """By build, the one sampled last at the end, and function."""
        self._living: dict[str, str] = {}
        self._changed: set[tuple[str, str]] = set()

    def note_lifetime(self, lifetime: str, build_id: str, processes: int) -> None:
        """Note that a lifetime of a build runs, or has ended."""
        if processes:
            self._living[lifetime] = build_id
        else:
            self._living.pop(lifetime, None)

    def add(self, batch: Batch) -> None:
        """Add the samples of a batch; several builds at a time are distinguished by their files."""
        builds = sorted(set(self._living.values()))
        for each in batch.lifetimes:
            self.note_lifetime(each.id, each.build_id, each.processes)
        builds = sorted({*builds, *self._living.values()})
        if not batch.hot_samples and not batch.runtime:
            return
        for sample in batch.hot_samples:
            file_build = sample.function.rpartition("+")[0]
            for build in [file_build] if file_build in builds else builds:
                self._add(build, sample, sample.function)
        for build in builds:
            self._add(build, _whole((*batch.hot_samples, *batch.runtime), {*builds} - {build}), WHOLE_PROGRAM)

    def changed(self) -> list[FunctionProfile]:
        """Return the rows that are new since the last call."""
        keys, self._changed = self._changed, set()
        changed = [self._rows[build][function] for build, function in sorted(keys)]
        ended = [build for build in self._rows if build not in self._living.values()]
        for build in ended[: max(0, len(ended) - KEPT)]:
            del self._rows[build]
        return changed

    def _add(self, build: str, sample: HotSample, function: str) -> None:
        rows = self._rows.pop(build, None)
        if rows is None:
            rows = {each.function: each for each in self._stored(build)}
        self._rows[build] = rows
        before = rows.get(function) or FunctionProfile(build_id=build, function=function)
        callers = dict(before.callers)
        for caller, ns in sample.callers:
            callers[caller] = callers.get(caller, 0.0) + ns
        most = sorted(callers, key=lambda each: (-callers[each], each))[:_CALLERS]
        rows[function] = FunctionProfile(
            build_id=build,
            function=function,
            samples=before.samples + sample.cpu_samples,
            cpu_ns=before.cpu_ns + sample.on_cpu_ns,
            wait_ns=before.wait_ns + sample.off_cpu_ns,
            inclusive_ns=before.inclusive_ns + sample.inclusive_ns,
            callers={each: callers[each] for each in most},
        )
        self._changed.add((build, function))


def _whole(samples: Iterable[HotSample], others: Collection[str]) -> HotSample:
    """Return all time that may belong to one build: without that in the files of other builds."""
    of_build = [each for each in samples if each.function.rpartition("+")[0] not in others]
    return HotSample(
        function=WHOLE_PROGRAM,
        samples=0,
        cpu_samples=sum(each.cpu_samples for each in of_build),
        on_cpu_ns=sum(each.on_cpu_ns for each in of_build),
        off_cpu_ns=sum(each.off_cpu_ns for each in of_build),
        inclusive_ns=0.0,
    )
