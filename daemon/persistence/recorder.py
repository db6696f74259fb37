"""From the loop to the store and back: the next daemon or ``mine --store`` goes on with what this one learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specmine.daemon.config.settings import SECOND
from specmine.daemon.config.tree import StoreSettings
from specmine.daemon.controller.checkpoint import function_record
from specmine.daemon.controller.events import Arrived, Begun, Restored, Stopping, Surveyed
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.host_detection import HostDetection
from specmine.daemon.documents.specification import last_specification, specification
from specmine.daemon.documents.timestamps import utc_offset_ns
from specmine.daemon.loop import Step
from specmine.mining.assertions.checks import Check
from specmine.model.clock import utc_ns
from specmine.model.json_codec import decode, encode
from specmine.store import (
    Build,
    Contents,
    Document,
    EnvironmentVector,
    ExperimentWindow,
    FunctionProfile,
    FunctionRecord,
    Host,
    LifetimeSummary,
    Retention,
    StoreCorrupt,
    StoreError,
    StoreWriter,
    Verdict,
    open_store,
    read_store,
)

from .profile_totals import ProfileTotals
from .violation_record import ViolationRecord, listed

RECORDS_EVERY_NS, RECORDS_UNDER_PRESSURE_NS = 30 * SECOND, 150 * SECOND
"""How often what a function is like is written where its state did not change: it takes a sixth of a steady daemon's
CPU time each 30 s. Windows and violations are written at once."""
DOCUMENT_EVERY_NS, DOCUMENT_UNDER_PRESSURE_NS = 60 * SECOND, 300 * SECOND
_LOADED = 40
"""Observations read of each function and kind: more than the controller holds."""
_LIFETIMES = 2_000
"""Summaries of lifetimes read, to go on comparing builds."""


class StoreRecorder:
    """Writes the results of the loop's steps; the loop gets ``listen`` and ``restored``."""

    def __init__(
        self,
        path: str | Path,
        settings: StoreSettings,
        report: Callable[[str], None],
        *,
        set_aside: bool = True,
    ) -> None:
        """Open the store and read what it holds.

        Parameters
        ----------
        path : path
            The store.
        settings : StoreSettings
            How much is stored for how long.
        report : callable
            Gets one line about each failure.
        set_aside : bool
            Move a damaged store aside and begin a new one, instead of raising.

        Raises
        ------
        StoreError
            If it cannot be used.
        LockTaken
            If another process writes to it.
        """
        self._report = report
        self._store = open_store(path, set_aside=report if set_aside else None)
        try:
            self._contents = self._load(report, set_aside)
        except BaseException:
            self._store.close()
            raise
        self._lifetimes = self._store.read(LifetimeSummary, newest=_LIFETIMES)
        self._profile_totals = ProfileTotals(self._profiles_of)
        self._writer = StoreWriter(self._store, retention=retention_of(settings), utc_ns=utc_ns, report=report)
        self._builds = frozenset(each.build_id for each in self._contents.builds)
        self._labels = {each.build_id: each.label for each in self._contents.builds if each.label}
        self._offset_ns = 0
        self._boot_id = ""
        self._written: dict[str, FunctionState] = {}
        self._verdicts: dict[tuple[str, str], str] = {}
        self._violations = ViolationRecord()
        self._records_ns = self._document_ns = 0

    @property
    def builds(self) -> frozenset[str]:
        """Build-ids that the store knew when it was opened."""
        return self._builds

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that builds have."""
        return self._labels

    @property
    def facts(self) -> dict[str, Any]:
        """What was written since the start, for the status."""
        return {"path": str(self._store.path), **asdict(self._writer.counts)}

    def loaded(self) -> tuple[Contents, tuple[LifetimeSummary, ...]]:
        """Return what the store held when it was opened, and its newest lifetimes; only before ``restored``."""
        return self._contents, self._lifetimes

    def write_changes(self, verdicts: Sequence[Verdict], changes: Sequence[Mapping[str, Any]]) -> None:
        """Write verdicts about changes soon, and all comparisons of now."""
        document = {"schema": "specmine.changes/1", "changes": list(changes)}
        self._writer.put(*verdicts, Document(name="changes", document=document))

    def label_build(self, build_id: str, name: str) -> None:
        """Label a build: at once for whoever asks, soon in the store."""
        self._labels = {**self._labels, build_id: name}
        self._writer.put(Build(build_id=build_id, label=name))

    def write_document(self, name: str, content: Mapping[str, Any]) -> None:
        """Store a document soon, in place of the last of its name."""
        self._writer.put(Document(name=name, document=content))

    def apply(self, settings: StoreSettings) -> None:
        """Use the limits of the new configuration from now on."""
        self._writer.retention = retention_of(settings)

    def restored(self, now_ns: int) -> Restored:
        """Return what the store held, times on the clock of this boot; the source must have started."""
        contents, self._contents = self._contents, Contents()
        self._lifetimes = ()
        offset_ns = contents.offset_on_disk(self._boot_id, now_ns, self._offset_ns)
        violations = tuple(each.shifted(-offset_ns) for each in listed(contents.violations, now_ns + offset_ns))
        self._violations.restore(violations)
        return Restored(
            now_ns=now_ns,
            functions=contents.functions,
            records=contents.states,
            observations=contents.observations_at(offset_ns),
            violations=violations,
            detection=detection_in(contents.documents).shifted(-offset_ns),
            utc_offset_ns=offset_ns,
        )

    def listen(self, step: Step) -> None:
        """Write the results of a step of the loop; returns at once."""
        match step.event:
            case Begun(started=started):
                self._boot_id = started.host.get("boot_id", "")
                self._put_host(step.state)
                self._writer.put(*started.lifetimes)
                for each in started.lifetimes:
                    self._profile_totals.note_lifetime(each.id, each.build_id, each.processes)
            case Surveyed(now_ns=now_ns, environment=environment, marks=marks):
                since = now_ns + self._offset_ns
                self._writer.put(
                    EnvironmentVector(boot_id=self._boot_id, since_utc_ns=since, document=environment),
                    *(ExperimentWindow(boot_id=self._boot_id, start_ns=mark.start_ns, end_ns=mark.end_ns,
                                       name=mark.name, cpus=mark.cpus) for mark in marks),
                )  # fmt: skip
            case Arrived(batch=batch):
                if batch.utc_offset_ns is not None:
                    self._put_host(step.state)
                self._writer.put(*batch.functions, *batch.lifetimes, *batch.observations, *batch.call_samples)
                self._profile_totals.add(batch)
        if step.published:
            self._put_violations(step.state)
        self._put_functions(step.state, moved=step.published, last=isinstance(step.event, Stopping))

    def close(self) -> bool:
        """Write what waits and close the store; report it and return False if something could not be written."""
        complete = self._writer.stop()
        if not complete:
            self._report(f"the store {self._store.path} could not take everything before the end")
        return complete

    def _put_host(self, state: ControllerState) -> None:
        """Write this boot and where UTC lies on its clock now."""
        self._offset_ns = utc_offset_ns(state)
        facts = dict(state.started.host) if state.started is not None else {}
        self._writer.put(
            Host(
                boot_id=self._boot_id,
                hostname=facts.get("hostname", ""),
                utc_offset_ns=self._offset_ns,
                facts=facts,
            )
        )

    def _put_functions(self, state: ControllerState, *, moved: bool, last: bool) -> None:
        if not moved and not last:
            return
        cost = state.agent_cost
        every_ns = RECORDS_EVERY_NS + cost.pressure * (RECORDS_UNDER_PRESSURE_NS - RECORDS_EVERY_NS)
        everything = last or state.now_ns - self._records_ns >= every_ns * cost.stretch
        changed = {
            key: function
            for key, function in state.functions.items()
            if self._is_news(self._written.get(key), function, everything=everything)
        }
        self._writer.put(*(self._function_record(key, function, state) for key, function in changed.items()))
        self._put_verdicts(state)
        self._written |= changed
        if everything:
            self._written = {key: each for key, each in self._written.items() if key in state.functions}
            self._verdicts = {key: each for key, each in self._verdicts.items() if key[0] in state.functions}
            self._writer.functions = state.catalog
            self._records_ns = state.now_ns
            self._writer.put(*self._profile_totals.changed())
        rarely_ns = DOCUMENT_EVERY_NS + cost.pressure * (DOCUMENT_UNDER_PRESSURE_NS - DOCUMENT_EVERY_NS)
        if last or state.now_ns - self._document_ns >= rarely_ns * cost.stretch:
            self._document_ns = state.now_ns
            described = last_specification if last else specification
            self._writer.put(Document(name="specification", document=described(state, detail=True)))
            self._writer.put(Document(name="detection", document=encode(state.detection.shifted(self._offset_ns))))

    def _put_violations(self, state: ControllerState) -> None:
        """Write the violations that changed; where one opened or closed, before anybody is told."""
        news = self._violations.news(state)
        if not news.functions:
            self._writer.put(*news.records)
            return
        # a daemon that is killed right after somebody was told must know it when it comes back
        functions = {key: state.functions[key] for key in news.functions}
        described = (function.function for function in functions.values())
        states = (self._function_record(key, function, state) for key, function in functions.items())
        if not self._writer.put_now(*described, *news.records, *states):
            self._report("a violation that opened or closed is not in the store yet")

    def _function_record(self, key: str, function: FunctionState, state: ControllerState) -> FunctionRecord:
        return FunctionRecord(function=key, state=function_record(function, state.now_ns, state.utc_offset_ns))

    @staticmethod
    def _is_news(old: FunctionState | None, new: FunctionState, *, everything: bool) -> bool:
        """Whether a function's record is to be written: at once if its state changed, else from time to time."""
        if old is new:
            return False
        if new.phase.state is State.CANDIDATE and new.history.totals.observations == 0:
            return False  # found again by sampling
        return old is None or old.state is not new.state or everything

    def _put_verdicts(self, state: ControllerState) -> None:
        offset = utc_offset_ns(state)
        news = []
        for key, function in state.functions.items():
            if not function.verification.checks and function.provisional is None:
                continue
            for subject, check in _checks(function):
                if self._verdicts.get((key, subject)) != check.verdict:
                    self._verdicts[key, subject] = check.verdict
                    news.append(
                        Verdict(
                            function=key,
                            subject=subject,
                            verdict=check.verdict,
                            utc_ns=(function.verification.checked_ns or state.now_ns) + offset,
                            evidence={
                                "calls": check.calls,
                                "p_value": check.p_value,
                                "shares": list(check.shares),
                            },
                        )
                    )
        self._writer.put(*news)

    def _profiles_of(self, build: str) -> tuple[FunctionProfile, ...]:
        """Return the profile of a build as the store has it."""
        try:
            with read_store(self._store.path) as store:
                return store.read(FunctionProfile, build_id=build)
        except StoreError:
            return ()

    def _load(self, report: Callable[[str], None], set_aside: bool) -> Contents:
        try:
            return self._store.load(newest=_LOADED)
        except StoreCorrupt as error:
            if not set_aside:
                raise
            report(self._store.begin_anew(error.message))
            return self._store.load()


def _checks(function: FunctionState) -> Iterator[tuple[str, Check]]:
    """Yield the checks of the function's assertions; before there are any, those of the build before."""
    for check in function.verification.checks:
        yield check.subject, check
    if function.provisional is not None and function.state not in FINISHED:
        for check in function.provisional.checks:
            yield f"{check.subject}, as in build {function.provisional.build_id}", check


def detection_in(documents: Mapping[str, Mapping[str, Any]]) -> HostDetection:
    """Return what the detectors shared when the store was written, times in UTC; of an older store nothing."""
    try:
        detection: HostDetection = decode(HostDetection, documents.get("detection", {}))
    except ValueError:
        return HostDetection()
    return detection


def retention_of(settings: StoreSettings) -> Retention:
    """Return the limits of the store under a configuration."""
    return Retention(
        limit_bytes=settings.limit_bytes,
        merge_after_ns=settings.merge_after_ns,
        merge_again_after_ns=settings.merge_again_after_ns,
    )
