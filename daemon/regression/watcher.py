"""Has a function changed from build to build, evaluated after each lifetime while the daemon runs.

Each lifetime counts once, when it has ended or is old enough; what was said stays valid however often it was
looked at (``mining/regression/sequential_test.py``). Needs numpy only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.events import Arrived, Begun, Stopping
from specmine.daemon.documents.timestamps import utc_offset_ns
from specmine.daemon.loop import Step
from specmine.mining.regression.acknowledgement import Acknowledgement
from specmine.mining.regression.code_diff import same_code
from specmine.mining.regression.comparison import Change
from specmine.mining.regression.sample import quantile, sample_of_histogram
from specmine.model.batch import Lifetime
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
from .host_effects import ChangeHosts

FEWEST_CALLS = 200
OLD_NS = 600 * SECOND
"""A lifetime that has not ended counts when its first calls are so old."""


@dataclass(slots=True)
class _Growing:
    """A lifetime's calls of one function, not counted yet."""

    histogram: Histogram
    bias: float
    first_ns: int
    calls: int = 0


class ChangeWatcher:
    """Follows the loop's steps; give ``listen`` to it. ``changes`` may be read from any thread."""

    def __init__(self, tell: Callable[[Sequence[Verdict], Sequence[Mapping[str, Any]]], None]) -> None:
        """Take what is told of new verdicts, with all comparisons as they stand."""
        self._tell = tell
        self._history = BuildHistory()
        self._functions: dict[str, Function] = {}
        self._builds: dict[str, str] = {}
        self._growing: dict[tuple[str, str], _Growing] = {}
        self._counted: set[tuple[str, str]] = set()
        self._hosts = ChangeHosts()
        self._answers: deque[tuple[frozenset[str], Mapping[str, Acknowledgement] | None]] = deque()
        self.changes: tuple[dict[str, Any], ...] = ()

    def restore(self, contents: Contents, summaries: Sequence[LifetimeSummary]) -> None:
        """Take up what a store remembers, lifetimes in the order of time; nothing is told of it again."""
        self._functions |= {each.key: each for each in contents.functions}
        self._builds |= {each.id: each.build_id for each in contents.lifetimes}
        for each in sorted(summaries, key=lambda one: (one.end_utc_ns, one.lifetime, one.function)):
            histogram = each.histogram
            if each.kind is Kind.TIME and histogram.total >= FEWEST_CALLS:
                boot = each.lifetime.split(":", maxsplit=1)[0]
                host = environment_at(contents.environments, boot, each.end_utc_ns)
                self._settle(each.function, each.lifetime, histogram, each.bias_ns, each.end_utc_ns, host)
        for entry in contents.documents.get("changes", {}).get("changes", ()):
            key, known = acknowledgement_of(entry)
            if known is not None:
                self._history = with_acknowledgement(self._history, [key], known)
        self.changes = self._entries()

    def acknowledge(self, entries: Sequence[Mapping[str, Any]], known: Sequence[Acknowledgement] | None) -> None:
        """Have alarms acknowledged at the next step, or with None raised again; from any thread."""
        keys = [key_of(each) for each in entries]
        self._answers.append((frozenset(keys), None if known is None else dict(zip(keys, known, strict=True))))

    def listen(self, step: Step) -> None:
        """Take up a step of the loop; returns at once."""
        self._take_answers(step)
        match step.event:
            case Begun(started=started):
                self._builds |= {each.id: each.build_id for each in started.lifetimes}
            case Arrived(batch=batch):
                self._functions |= {each.key: each for each in batch.functions}
                self._builds |= {each.id: each.build_id for each in batch.lifetimes}
                for seen in batch.observations:
                    self._grow(seen)
                if self._growing:
                    self._settle_due(step, batch.lifetimes)
            case Stopping():
                self._settle_due(step, (), last=True)

    def _entries(self, calls: Collection[tuple[Name, Name]] = ()) -> tuple[dict[str, Any], ...]:
        """Return the comparisons, with what became of each function's machine code and what the host explains.

        ``machine_code`` is changed, same or None; ``host`` is as ``specmine compare`` tells it, None of no change.
        """
        code = {(each.name, each.module, each.build_id): each.code for each in self._functions.values()}
        said = {None: None, True: "same", False: "changed"}
        return tuple(
            {
                **each,
                "machine_code": said[same_code(*(
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
        return self._hosts.explained((name, entry["base"]), (name, entry["new"]), tuple(entry["lifetimes"]))

    def _take_answers(self, step: Step) -> None:
        if not self._answers:
            return
        while self._answers:
            keys, known = self._answers.popleft()
            for key in keys:
                self._history = with_acknowledgement(self._history, [key], known[key] if known is not None else None)
        self.changes = self._entries(_calls(step))
        self._tell((), self.changes)

    def _grow(self, seen: Observation) -> None:
        key = seen.function, seen.lifetime
        if seen.kind is not Kind.TIME or seen.timed == 0 or key in self._counted:
            return
        one = self._growing.get(key)
        if one is None:
            one = _Growing(histogram=EMPTY, bias=0.0, first_ns=seen.start_ns)
            self._growing[key] = one
        one.bias = (one.bias * one.calls + seen.bias_ns * seen.timed) / (one.calls + seen.timed)
        one.histogram += seen.histogram
        one.calls += seen.timed

    def _settle_due(self, step: Step, changed: Sequence[Lifetime], *, last: bool = False) -> None:
        ended = {each.id for each in changed if each.processes == 0}
        now_ns, offset = step.state.now_ns, utc_offset_ns(step.state)
        before = {each.key: each for each in self._history.comparisons.values()}
        due = [
            (key, one)
            for key, one in self._growing.items()
            if last or key[1] in ended or now_ns - one.first_ns >= OLD_NS
        ]
        for key, one in due:
            del self._growing[key]
            if one.calls >= FEWEST_CALLS:
                self._settle(*key, one.histogram, one.bias, now_ns + offset, step.state.environment)
        if due:
            self.changes = self._entries(_calls(step))
            news = [_verdict(each) for key, each in self._history.comparisons.items()
                    if key not in before or before[key].verdict is not each.verdict]  # fmt: skip
            self._tell(news, self.changes)

    def _settle(
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
        if described is None or build is None or median_ns <= 0.0 or (function, lifetime) in self._counted:
            return
        self._counted.add((function, lifetime))
        name = (described.name, described.module)
        self._hosts.add((name, build), histogram, bias_ns, environment)
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
    kept = ("ratio", "interval", "level", "lifetimes", "log_e", "alarm")
    return Verdict(
        function=each.function,
        subject=f"change {each.base} -> {each.new}",
        verdict=each.verdict.value,
        utc_ns=each.utc_ns,
        evidence={name: entry[name] for name in kept},
    )
