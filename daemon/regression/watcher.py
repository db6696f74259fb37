"""Comparisons of builds while the daemon runs, evaluated after each lifetime.

Each lifetime counts once, when it has ended or is old enough. A verdict stays valid however often it is asked for
(``mining/regression/sequential_test.py``). Needs numpy only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.events import Arrived, Begun, Stopping
from specmine.daemon.controller.hotness import is_named_wait
from specmine.daemon.documents.timestamps import utc_offset_ns
from specmine.daemon.loop import Step
from specmine.mining.regression.acknowledgement import Acknowledgement
from specmine.mining.regression.code_diff import same_code
from specmine.mining.regression.comparison import Change
from specmine.mining.regression.probe_kinds import are_comparable
from specmine.mining.regression.sample import quantile, sample_of_histogram
from specmine.model.batch import Lifetime, boot_of
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import Contents, LifetimeSummary, Verdict, environment_at

from .acknowledgements import acknowledgement_of, key_of
from .history import (
    BuildComparison,
    BuildHistory,
    LifetimeMedian,
    Name,
    entries,
    entry_of,
    with_acknowledgement,
    with_median,
)
from .host_effects import HostEffects

FEWEST_CALLS = 200
OLD_NS = 600 * SECOND
"""A lifetime that has not ended counts when its first calls are so old."""
SWEEP_NS = 60 * SECOND
"""How often builds that are compared no more are forgotten."""
MOST_ENDED = 256
"""Lifetimes that have ended and are still known: their last windows come a little later."""


@dataclass(slots=True)
class _OpenLifetime:
    """A lifetime's calls of one function, not counted yet."""

    first_ns: int
    histogram: Histogram = EMPTY
    bias: float = 0.0

    def add(self, histogram: Histogram, bias_ns: float) -> None:
        """Add calls with the probes' own cost in their durations."""
        calls = self.histogram.total + histogram.total
        self.bias = (self.bias * self.histogram.total + bias_ns * histogram.total) / calls
        self.histogram += histogram


class ChangeWatcher:
    """Compares builds by the loop's steps; the loop gets ``listen``. ``changes`` may be read from any thread."""

    def __init__(self, report: Callable[[Sequence[Verdict], Sequence[Mapping[str, Any]]], None]) -> None:
        """Take the function that gets new verdicts, with all comparisons of now."""
        self._report = report
        self._history = BuildHistory()
        self._functions: dict[str, Function] = {}
        self._builds: dict[str, str] = {}
        self._open: dict[tuple[str, str], _OpenLifetime] = {}
        self._counted: dict[str, set[str]] = {}
        """Functions that were counted in a lifetime."""
        self._ended: deque[str] = deque()
        self._host_effects = HostEffects()
        self._swept_ns = 0
        self._requests: deque[tuple[frozenset[str], Mapping[str, Acknowledgement] | None]] = deque()
        self.changes: tuple[dict[str, Any], ...] = ()

    def restore(self, contents: Contents, summaries: Sequence[LifetimeSummary]) -> None:
        """Go on from the contents of a store, lifetimes in the order of time; none of it is reported again."""
        self._functions |= {each.key: each for each in contents.functions}
        self._builds |= {each.id: each.build_id for each in contents.lifetimes}
        recorded: dict[tuple[str, str], _OpenLifetime] = {}
        ends: dict[tuple[str, str], int] = {}
        for each in summaries:
            histogram = each.histogram
            if _counts(each.kind, histogram, each.bias_ns):
                calls = each.function, each.lifetime
                recorded.setdefault(calls, _OpenLifetime(each.start_utc_ns)).add(histogram, each.bias_ns)
                ends[calls] = max(ends.get(calls, 0), each.end_utc_ns)
        for calls, end_ns in sorted(ends.items(), key=lambda one: (one[1], one[0][1], one[0][0])):
            histogram = recorded[calls].histogram
            if histogram.total >= FEWEST_CALLS:
                host = environment_at(contents.environments, boot_of(calls[1]), end_ns)
                self._count_lifetime(*calls, histogram, recorded[calls].bias, end_ns, host)
        for entry in contents.documents.get("changes", {}).get("changes", ()):
            key, known = acknowledgement_of(entry)
            if known is not None:
                self._history = with_acknowledgement(self._history, [key], known)
        self.changes = self._entries()

    def acknowledge(self, entries: Sequence[Mapping[str, Any]], known: Sequence[Acknowledgement] | None) -> None:
        """Acknowledge alarms at the next step; None undoes that. May be called from any thread."""
        keys = [key_of(each) for each in entries]
        self._requests.append((frozenset(keys), None if known is None else dict(zip(keys, known, strict=True))))

    def listen(self, step: Step) -> None:
        """Take a step of the loop; returns at once."""
        self._apply_requests(step)
        match step.event:
            case Begun(started=started):
                self._builds = {each.id: each.build_id for each in started.lifetimes}
                self._counted = {each: counted for each, counted in self._counted.items() if each in self._builds}
            case Arrived(batch=batch):
                self._functions |= {each.key: each for each in batch.functions}
                self._builds |= {each.id: each.build_id for each in batch.lifetimes}
                for window in batch.observations:
                    self._add_window(window)
                if self._open:
                    self._count_due(step, batch.lifetimes)
                self._forget([each.id for each in batch.lifetimes if not each.processes])
                if batch.now_ns - self._swept_ns >= SWEEP_NS:
                    self._swept_ns = batch.now_ns
                    self._sweep(step)
            case Stopping():
                self._count_due(step, (), last=True)

    def _forget(self, ended: Sequence[str]) -> None:
        """Forget lifetimes that ended long ago."""
        self._ended.extend(ended)
        while len(self._ended) > MOST_ENDED:
            lifetime = self._ended.popleft()
            self._builds.pop(lifetime, None)
            self._counted.pop(lifetime, None)

    def _sweep(self, step: Step) -> None:
        """Forget functions of builds that are compared no more, but for those that the controller knows."""
        known, catalog = self._history.builds, step.state.catalog
        self._functions = {
            key: each
            for key, each in self._functions.items()
            if key in catalog or ((each.name, each.module), each.build_id) in known
        }
        self._host_effects.keep(known)

    def _entries(self, calls: Collection[tuple[Name, Name]] = ()) -> tuple[dict[str, Any], ...]:
        """Return the comparisons, with the change of each function's machine code and the effect of the host.

        ``machine_code`` is changed, same or None. ``host`` is as in ``specmine compare``, None without a change.
        """
        code = {(each.name, each.module, each.build_id): each.code for each in self._functions.values()}
        texts = {None: None, True: "same", False: "changed"}
        return tuple(
            {
                **each,
                "machine_code": texts[same_code(*(
                    code.get((each["function"], each["module"], each[side]), "") for side in ("base", "new")
                ))],
                "host": self._host_of(each),
            }
            for each in entries(self._history, calls)
        )  # fmt: skip

    def _host_of(self, entry: Mapping[str, Any]) -> dict[str, Any] | None:
        if entry["verdict"] not in (Change.WORSE.value, Change.BETTER.value):
            return None
        name = entry["function"], entry["module"]
        return self._host_effects.explained((name, entry["base"]), (name, entry["new"]), tuple(entry["lifetimes"]))

    def _apply_requests(self, step: Step) -> None:
        if not self._requests:
            return
        while self._requests:
            keys, known = self._requests.popleft()
            for key in keys:
                self._history = with_acknowledgement(self._history, [key], known[key] if known is not None else None)
        self.changes = self._entries(_calls(step))
        self._report((), self.changes)

    def _add_window(self, window: Observation) -> None:
        key = window.function, window.lifetime
        if window.function in self._counted.get(window.lifetime, ()):
            return
        if _counts(window.kind, window.histogram, window.bias_ns):
            self._open.setdefault(key, _OpenLifetime(window.start_ns)).add(window.histogram, window.bias_ns)

    def _count_due(self, step: Step, changed: Sequence[Lifetime], *, last: bool = False) -> None:
        ended = {each.id for each in changed if each.processes == 0}
        now_ns, offset = step.state.now_ns, utc_offset_ns(step.state)
        before = {each.key: each for each in self._history.comparisons.values()}
        due = [
            (key, one) for key, one in self._open.items() if last or key[1] in ended or now_ns - one.first_ns >= OLD_NS
        ]
        for key, one in due:
            del self._open[key]
            if one.histogram.total >= FEWEST_CALLS:
                self._count_lifetime(*key, one.histogram, one.bias, now_ns + offset, step.state.environment)
        if due:
            self.changes = self._entries(_calls(step))
            news = [_verdict(each) for key, each in self._history.comparisons.items()
                    if key not in before or before[key].verdict is not each.verdict]  # fmt: skip
            self._report(news, self.changes)

    def _count_lifetime(
        self,
        function: str,
        lifetime: str,
        histogram: Histogram,
        bias_ns: float,
        utc_ns: int,
        environment: Mapping[str, Any] | None,
    ) -> None:
        described, build = self._functions.get(function), self._builds.get(lifetime)
        median_ns = quantile(sample_of_histogram(histogram, bias_ns), 0.5)
        if described is None or build is None or median_ns <= 0.0 or function in self._counted.get(lifetime, ()):
            return
        if is_named_wait(described):
            return  # it tells how much work there was
        self._counted.setdefault(lifetime, set()).add(function)
        name = (described.name, described.module)
        self._host_effects.add((name, build), histogram, bias_ns, environment)
        self._history = with_median(
            self._history,
            LifetimeMedian(
                name=name,
                function=function,
                build=build,
                lifetime=lifetime,
                median_ns=median_ns,
                utc_ns=utc_ns,
            ),
        )


def _counts(kind: Kind, histogram: Histogram, bias_ns: float) -> bool:
    """Return whether calls count: timed alone, or with their path where that cannot look like a change."""
    if histogram.total == 0:
        return False
    return kind is Kind.TIME or are_comparable(histogram.quantile(0.5) - bias_ns, bias_ns)


def _calls(step: Step) -> frozenset[tuple[Name, Name]]:
    """Return the call edges of the paths that explain functions."""
    return frozenset(
        ((caller.name, caller.module), (callee.name, callee.module))
        for function in step.state.functions.values()
        if function.explanation.result is not None
        for path in function.explanation.result.paths
        for caller, callee in path.path.edges()
    )


def _verdict(each: BuildComparison) -> Verdict:
    entry = entry_of(each)
    names = ("ratio", "interval", "level", "lifetimes", "log_e", "alarm")
    return Verdict(
        function=each.function,
        subject=f"change {each.base} -> {each.new}",
        verdict=each.verdict.value,
        utc_ns=each.utc_ns,
        evidence={name: entry[name] for name in names},
    )
