"""Has a function changed from build to build, evaluated after each lifetime while the daemon runs.

Each lifetime counts once, when it has ended or is old enough; what was said stays valid however often it was
looked at (``mining/change/sequential.py``). Needs numpy only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specmine.mining.change.acknowledged import Acknowledgement, answered
from specmine.mining.change.alarms import Alarm, Status, causes, discoveries, stepped
from specmine.mining.change.sample import quantile, sample_of_counts
from specmine.mining.change.sequential import Sequential, begun, interval, verdict, with_lifetime
from specmine.mining.change.suspects import same_code
from specmine.mining.change.verdicts import Change
from specmine.mining.observation import BUCKETS, Counts, Function, Kind, Observation
from specmine.probes.batch import Lifetime

from .acknowledging import acknowledgement_of, key_of
from .changehosts import ChangeHosts
from .dates import utc_offset_ns
from .events import Arrived, Begun, Stopping
from .loop import Step
from .settings import SECOND
from .store import Contents, LifetimeSummary, Verdict, vector_at

LEVEL = 0.99
TOLERANCE = 0.02
FALSE_RATE = 0.05
"""Of all changes reported on a host within a month, at most this share is false."""
MONTH_NS = 30 * 86_400 * SECOND
FEWEST_CALLS = 200
OLD_NS = 600 * SECOND
"""A lifetime that has not ended counts when its first calls are so old."""
MOST = 2_000
"""Comparisons held at most; the oldest go first."""

_STANDING = frozenset({Status.RAISED, Status.ACKNOWLEDGED})
Name = tuple[str, str]
"""Function and module: what makes it the same in another build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The median of a function in one lifetime that counts from now on."""

    name: Name
    function: str
    build: str
    lifetime: str
    median_ns: float
    utc_ns: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """Where the comparison of a function between two builds stands."""

    name: Name
    function: str
    base: str
    new: str
    state: Sequential
    alarm: Alarm = field(default_factory=Alarm)
    said: Change = Change.UNDECIDED
    utc_ns: int = 0
    known: Acknowledgement | None = None
    """What somebody acknowledged."""

    @property
    def key(self) -> str:
        """What tells it from other comparisons."""
        return key_of({"function": self.name[0], "module": self.name[1], "base": self.base, "new": self.new})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """All lifetimes that count, and the comparisons between their builds."""

    medians: Mapping[Name, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    """Function to build to the medians of its lifetimes, builds in the order in which they were first seen."""
    comparisons: Mapping[str, Compared] = field(default_factory=dict)
    month: int = 0
    tested: frozenset[str] = frozenset()
    """Comparisons looked at this month."""


def with_settled(history: History, one: Settled) -> History:
    """Return the history after one more lifetime. A build is compared with the one before, and with the first.

    The second catches what creeps: many builds, each a little slower than the last.
    """
    month = one.utc_ns // MONTH_NS
    if month != history.month:
        history = replace(history, month=month, tested=frozenset())
    builds = dict(history.medians.get(one.name, {}))
    earlier = [build for build in builds if build != one.build]
    is_latest = one.build not in builds or list(builds)[-1] == one.build
    comparisons = dict(history.comparisons)
    touched = []
    for base in dict.fromkeys([*earlier[-1:], *earlier[:1]]) if is_latest else ():
        fresh = Compared(name=one.name, function=one.function, base=base, new=one.build, state=begun(builds[base]))
        before = comparisons.get(fresh.key, fresh)
        comparisons[fresh.key] = replace(
            before, state=with_lifetime(before.state, one.median_ns), utc_ns=one.utc_ns, function=one.function
        )
        touched.append(fresh.key)
    builds[one.build] = (*builds.get(one.build, ()), one.median_ns)
    tested = history.tested | set(touched)
    comparisons = _judged(comparisons, touched, tested)
    for key in list(comparisons)[: max(0, len(comparisons) - MOST)]:
        del comparisons[key]
    return replace(history, medians={**history.medians, one.name: builds}, comparisons=comparisons, tested=tested)


def entries(history: History, calls: Collection[tuple[Name, Name]] = ()) -> list[dict[str, Any]]:
    """Return the comparisons as JSON values: those with an alarm first, then by name.

    Parameters
    ----------
    history : History
    calls : collection of (caller, callee)
        Call edges seen. Of functions that call each other and were raised between the same builds only the
        deepest is a ``cause``; the others are in its ``explains``.
    """
    explained: dict[str, dict[str, tuple[str, ...]]] = {}
    named = [tuple(map(_shown, edge)) for edge in calls]
    for pair in {(each.base, each.new) for each in history.comparisons.values()}:
        raised = [each for each in history.comparisons.values()
                  if (each.base, each.new) == pair and each.alarm.status in _STANDING]  # fmt: skip
        explained["\0".join(pair)] = causes({_shown(each.name) for each in raised}, [(a, b) for a, b in named])
    found = sorted(
        history.comparisons.values(),
        key=lambda each: (each.alarm.status is Status.QUIET, each.name, each.base, each.new),
    )
    return [_entry(each, explained[f"{each.base}\0{each.new}"].get(_shown(each.name))) for each in found]


def _judged(comparisons: Mapping[str, Compared], touched: Iterable[str], tested: frozenset[str]) -> dict[str, Compared]:
    """Say what may be said after a look, alarms at the stated rate."""
    result = dict(comparisons)
    alarms = {key: result[key].alarm for key in tested if key in result}
    evidence = {key: result[key].state.log_e for key in tested if key in result}
    found = discoveries(alarms, evidence, len(tested), FALSE_RATE)
    for key in touched:
        each = result[key]
        said = verdict(each.state, LEVEL, TOLERANCE)
        alarm = stepped(each.alarm, said, each.state.log_e, discovered=key in found, now_ns=each.utc_ns)
        alarm, known = answered(alarm, each.known or _known_before(each, result), interval(each.state, LEVEL))
        result[key] = replace(each, said=said, alarm=alarm, known=known)
    return result


def _known_before(each: Compared, comparisons: Mapping[str, Compared]) -> Acknowledgement | None:
    """Return what was acknowledged of the function between the same base and an earlier build."""
    found = [other.known for other in comparisons.values() if (other.name, other.base) == (each.name, each.base)]
    return next((known for known in reversed(found) if known is not None), None)


def with_known(history: History, keys: Collection[str], known: Acknowledgement | None) -> History:
    """Acknowledge the alarms of some comparisons, or with None take that back."""
    comparisons = dict(history.comparisons)
    for key in keys:
        each = comparisons.get(key)
        if each is not None:
            alarm, kept = answered(each.alarm, known, interval(each.state, LEVEL))
            comparisons[key] = replace(each, alarm=alarm, known=kept)
    return replace(history, comparisons=comparisons)


def _shown(name: Name) -> str:
    return f"{name[0]} ({name[1]})"


def _entry(each: Compared, explains: Sequence[str] | None = None) -> dict[str, Any]:
    bounds = interval(each.state, LEVEL)
    return {
        "function": each.name[0],
        "module": each.name[1],
        "base": each.base,
        "new": each.new,
        "verdict": each.said.value,
        "alarm": each.alarm.status.value,
        "direction": each.alarm.direction.value,
        "acknowledged": None
        if each.known is None
        else {
            "ratio": each.known.ratio,
            "utc_ns": each.known.utc_ns,
            "note": each.known.note,
        },
        "cause": explains is not None,
        "explains": list(explains or ()),
        "ratio": float(np.exp(each.state.log_ratio)),
        "interval": list(bounds) if bounds else None,
        "level": LEVEL,
        "lifetimes": list(each.state.lifetimes),
        "log_e": each.state.log_e,
    }


@dataclass(slots=True)
class _Growing:
    """A lifetime's calls of one function, not counted yet."""

    counts: Counts
    bias: float
    first_ns: int
    calls: int = 0


class ChangeWatcher:
    """Follows the loop's steps; give ``listen`` to it. ``changes`` may be read from any thread."""

    def __init__(self, tell: Callable[[Sequence[Verdict], Sequence[Mapping[str, Any]]], None]) -> None:
        """Take what is told of new verdicts, with all comparisons as they stand."""
        self._tell = tell
        self._history = History()
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
            counts = each.counts
            if each.kind is Kind.TIME and int(counts.sum()) >= FEWEST_CALLS:
                boot = each.lifetime.split(":", maxsplit=1)[0]
                host = vector_at(contents.environments, boot, each.end_utc_ns)
                self._settle(each.function, each.lifetime, counts, each.bias_ns, each.end_utc_ns, host)
        for entry in contents.documents.get("changes", {}).get("changes", ()):
            key, known = acknowledgement_of(entry)
            if known is not None:
                self._history = with_known(self._history, [key], known)
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
                self._history = with_known(self._history, [key], known[key] if known is not None else None)
        self.changes = self._entries(_calls(step))
        self._tell((), self.changes)

    def _grow(self, seen: Observation) -> None:
        key = seen.function, seen.lifetime
        if seen.kind is not Kind.TIME or seen.timed == 0 or key in self._counted:
            return
        one = self._growing.get(key)
        if one is None:
            one = _Growing(counts=np.zeros(BUCKETS, dtype=np.uint64), bias=0.0, first_ns=seen.start_ns)
            self._growing[key] = one
        one.bias = (one.bias * one.calls + seen.bias_ns * seen.timed) / (one.calls + seen.timed)
        one.counts = one.counts + seen.counts
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
                self._settle(*key, one.counts, one.bias, now_ns + offset, step.state.environment)
        if due:
            self.changes = self._entries(_calls(step))
            news = [_verdict(each) for key, each in self._history.comparisons.items()
                    if key not in before or before[key].said is not each.said]  # fmt: skip
            self._tell(news, self.changes)

    def _settle(
        self,
        function: str,
        lifetime: str,
        counts: Counts,
        bias_ns: float,
        utc_ns: int,
        environment: Mapping[str, Any] | None,
    ) -> None:
        described, build = self._functions.get(function), self._builds.get(lifetime)
        median_ns = quantile(sample_of_counts(counts, bias_ns), 0.5)
        if described is None or build is None or median_ns <= 0.0 or (function, lifetime) in self._counted:
            return
        self._counted.add((function, lifetime))
        name = (described.name, described.module)
        self._hosts.add((name, build), counts, bias_ns, environment)
        self._history = with_settled(
            self._history,
            Settled(
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
        for each in step.state.known.values()
        if each.result is not None
        for path in each.result.paths
        for caller, callee in path.path.edges()
    )


def _verdict(each: Compared) -> Verdict:
    entry = _entry(each)
    kept = ("ratio", "interval", "level", "lifetimes", "log_e", "alarm")
    return Verdict(
        function=each.function,
        subject=f"change {each.base} -> {each.new}",
        verdict=each.said.value,
        utc_ns=each.utc_ns,
        evidence={name: entry[name] for name in kept},
    )
