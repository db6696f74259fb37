"""Run hostile targets, unwatched or several under one set of probes, and say what they did and what was counted."""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from specmine.model.batch import Refusal, Unwatch, Watch
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from specmine.probes.timing.function.timed_function import TimedFunction
from tests.support.breakpoints import Text, family
from tests.support.chaos_building import offsets
from tests.support.chaos_hostile import Target
from tests.support.patience import patient

LIMIT_S = patient(120.0)
_COUNTS = ("hits", "calls", "timed", "inner", "lost", "dropped", "unlearnt", "nested_ns")
_COUNT_ONLY = frozenset({"go-runtime"})
"""Reasons for which a function is counted instead."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How one run ended and what specmine counted in it."""

    output: str = ""
    status: int | None = None
    truth: dict[str, int] = field(default_factory=dict)
    """What the target says that it did."""
    least_ns: dict[str, int] = field(default_factory=dict)
    """Function -> duration below which no call of it can lie, by the target's own clock."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Counters by function."""
    refused: dict[str, str] = field(default_factory=dict)
    """Function -> reason code."""
    ways: dict[str, str] = field(default_factory=dict)
    """Function -> session, sites or count."""
    durations: dict[str, Histogram] = field(default_factory=dict)
    """Function -> histogram of all its observations."""
    left: list[tuple[int, str, int]] = field(default_factory=list)
    """Pid, path, offset of bytes of the target's text that were not its file's after the probes were taken off."""
    troubles: list[str] = field(default_factory=list)
    """What went wrong in meddling."""

    def total(self, what: str) -> int:
        """Return the sum of one counter."""
        return sum(each[what] for each in self.counted.values())

    def open(self, name: str) -> int:
        """Return the calls of a function that began, and that neither ended nor were found abandoned."""
        counted = self.counted[name]
        if self.ways.get(name) == "count":
            return 0
        return counted["calls"] - sum(counted[each] for each in ("timed", "unlearnt", "lost", "dropped"))

    def heard(self, text: str) -> None:
        """Take in what the target printed."""
        self.output = text
        try:
            told = json.loads(text.splitlines()[-1])
        except (IndexError, ValueError):
            return  # it has crashed: its status says so
        self.least_ns = told.pop("least_ns", {})
        self.truth = told


def unwatched(path: Path) -> Outcome:
    """Run a target by itself."""
    done = subprocess.run([path], input="\n\n", capture_output=True, text=True, timeout=LIMIT_S, check=False)
    result = Outcome(status=done.returncode)
    result.heard(done.stdout)
    return result


@dataclass(slots=True, kw_only=True)
class _Member:
    target: Target
    child: subprocess.Popen[bytes]
    keys: dict[str, str]
    """Function -> key; at first only of functions that the file does not name."""
    result: Outcome = field(default_factory=Outcome)
    before: dict[str, dict[str, int]] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    meddling: threading.Thread | None = None

    @property
    def modules(self) -> tuple[str, str]:
        """What its functions lie in: the program and its library."""
        return self.target.name, f"{self.target.name}_library"

    def line(self) -> None:
        """Let it go on."""
        assert self.child.stdin is not None
        with suppress(BrokenPipeError):  # it has crashed: its status says so
            self.child.stdin.write(b"\n")
            self.child.stdin.flush()

    def listen(self) -> bool:
        """Take in its output; True once it is there, or never will be."""
        assert self.child.stdout is not None
        if not self.result.output and select.select([self.child.stdout], [], [], 0)[0]:
            self.result.heard(os.read(self.child.stdout.fileno(), 65536).decode())
        return bool(self.result.output) or self.child.poll() is not None

    def meddle(self) -> None:
        """Do to it what is done to it, beside."""

        def work() -> None:
            assert self.target.meddle is not None
            try:
                self.target.meddle(self.child.pid)
            except Exception as error:
                self.result.troubles.append(repr(error))

        if self.target.meddle is not None:
            self.meddling = threading.Thread(target=work)
            self.meddling.start()

    def end(self) -> None:
        """Kill it if it lives."""
        self.child.kill()
        self.child.wait()
        if self.meddling is not None:
            self.meddling.join()
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def watched(
    group: Sequence[tuple[Target, Path]],
    number: int,
    *,
    cache: Path,
    limits: Mapping[str, float] | None = None,
) -> dict[str, Outcome]:
    """Run targets beside each other with their functions watched, by turns as TIME and PATH.

    Parameters
    ----------
    group : sequence
        Targets and their programs.
    number : int
        Of the run: functions change kinds from pair to pair of runs; in odd runs targets end under their probes.
    cache : Path
        Folder for compiled programs and the calibration.
    limits : mapping, optional
        Fields of the requests.

    Returns
    -------
    dict
        Outcome by name of the target.
    """
    with ExitStack() as stack:
        members = []
        for target, path in group:
            child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            members.append(_Member(target=target, child=child, keys=_keys_of(path, target)))
            stack.callback(members[-1].end)
        named = [f"{name} ({m})" for each in members for m in each.modules for name in each.target.functions]
        settings = SourceSettings(watch=tuple(named), sampling=False, isolate=False, cache=str(cache))
        source = BpfSource([Selection(pid=each.child.pid) for each in members], settings)
        stack.callback(source.close)
        source.start()
        run = _Run(source, members)
        run.put_on(number, dict(limits or {}))
        run.let_work()
        if number % 2 == 0:  # else they end under their probes
            run.take_off()
        for each in members:
            each.line()
            each.result.status = each.child.wait(LIMIT_S)
        return {each.target.name: each.result for each in members}


def _keys_of(path: Path, target: Target) -> dict[str, str]:
    """Return the keys of functions that the file does not name."""
    if target.variant != "stripped":
        return {}
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    return {name: f"{build_id}+{at:#x}" for name, at in offsets(path.with_suffix(".whole"), target.functions).items()}


class _Run:
    def __init__(self, source: BpfSource, members: list[_Member]) -> None:
        self.source, self.members = source, members
        self.functions: dict[tuple[str, str], Function] = {}
        self.refusals: list[Refusal] = []
        self.durations: dict[str, Histogram] = {}

    @property
    def by_key(self) -> dict[str, tuple[_Member, str]]:
        return {key: (each, name) for each in self.members for name, key in each.keys.items()}

    def watched(self, key: str) -> TimedFunction | None:
        return self.source.parts.registry.by_function.get(key)

    def poll(self, done: Callable[[], object], limit_s: float = LIMIT_S) -> None:
        end = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end, f"not within {limit_s} s: {self.refusals}"
            batch = self.source.poll(time.monotonic_ns())
            self.functions |= {(f.module, f.name): f for f in batch.functions}
            self.refusals += batch.refusals
            for each in batch.observations:
                so_far = self.durations.get(each.function, EMPTY)
                self.durations[each.function] = so_far + each.histogram
            time.sleep(0.01)

    def put_on(self, number: int, limits: dict[str, float]) -> None:
        """Ask for the probes, and wait until they are on or refused."""
        self.poll(self._found)
        for index, key in enumerate(sorted(self.by_key)):
            kind = Kind.TIME if (index + number // 2) % 2 else Kind.PATH
            how = {"window_calls": 100, "minimum_calls": 1, **limits}
            self.source.apply(Watch(function=key, kind=kind, **how))  # type: ignore[arg-type]
        self.poll(self._settled)
        for refusal in list(self.refusals):
            if refusal.reason.code in _COUNT_ONLY:
                self.source.apply(Watch(function=refusal.function, kind=Kind.COUNT))
        self.poll(self._settled)
        self.poll(self._followed)
        for key, (member, name) in self.by_key.items():
            w = self.watched(key)
            if w is not None:
                member.slots[name] = w.slot.number
                member.before[name] = self._counters(w.slot.number)
                timed = "sites" if w.by_site else "session"
                member.result.ways[name] = "count" if w.watch.kind is Kind.COUNT else timed

    def _found(self) -> bool:
        for each in self.members:
            for name in each.target.functions:
                for module in each.modules:
                    if (module, name) in self.functions:
                        each.keys[name] = self.functions[module, name].key
        return all(set(each.target.functions) == set(each.keys) for each in self.members)

    def _settled(self) -> bool:
        refused = {r.function for r in self.refusals if r.reason.code not in _COUNT_ONLY}
        given_up = {r.function for r in self.refusals}
        for key in self.by_key:
            w = self.watched(key)
            if key in self.source.parts.later_requests._held:  # only counted until the programs for call paths come
                return False
            if not (w.attachment.on_ns if w is not None else key in (given_up if key not in refused else refused)):
                return False
        return True

    def _followed(self) -> bool:
        """Tell whether it is known of all processes how they leave frames, so that their work is not over before."""
        following = self.source.parts.nonlocal_exits
        asked = None in following._places.values()
        return not asked and not any(each.pending for each in following._processes.values())

    def _counters(self, slot: int) -> dict[str, int]:
        return {each: int(self.source.parts.counts.counters[slot][each]) for each in _COUNTS}

    def let_work(self) -> None:
        """Let the targets work to their end and read what was counted."""
        for each in self.members:
            each.line()
        if any(each.target.meddle for each in self.members):
            begun = time.monotonic()
            self.poll(lambda: time.monotonic() - begun > 0.1)
            for each in self.members:
                each.meddle()
        self.poll(lambda: all([each.listen() for each in self.members]))
        self.poll(lambda: not any(each.meddling and each.meddling.is_alive() for each in self.members))
        quiet = time.monotonic() + 0.1
        self.poll(lambda: time.monotonic() > quiet)
        for each in self.members:
            for name, slot in each.slots.items():
                after = self._counters(slot)
                each.result.counted[name] = {what: after[what] - each.before[name][what] for what in _COUNTS}
        for refusal in self.refusals:
            if refusal.function in self.by_key:
                member, name = self.by_key[refusal.function]
                member.result.refused[name] = refusal.reason.code
        self._cut()

    def _cut(self) -> None:
        """Have the open windows told as well."""
        watching = self.source.parts.registry
        watching.windows.drain(watching.by_function.values(), time.monotonic_ns())
        for w in watching.by_function.values():
            if w.watch.kind is not Kind.COUNT and watching.windows.timed(w):
                watching.windows.cut(w, time.monotonic_ns())
        self.poll(lambda: not watching.windows._unnamed)
        for key, (member, name) in self.by_key.items():
            member.result.durations[name] = self.durations.get(key, EMPTY)

    def take_off(self) -> None:
        """Take all probes off and see that none is left in the targets' memory."""
        for key in list(self.source.parts.registry.by_function):
            self.source.apply(Unwatch(function=key))
        for each in self.members:
            with Text(family(each.child.pid)) as text:
                end = time.monotonic() + LIMIT_S
                while (left := [*text.changed()]) and time.monotonic() < end:
                    self.source.poll(time.monotonic_ns())
                    time.sleep(0.02)
            each.result.left = left
