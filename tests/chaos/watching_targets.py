"""Run one hostile target, unwatched or watched, and say what it did and what was counted."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from breakpoints import Text, family

from specmine.mining.observation import Function, Kind, Observation
from specmine.probes.batch import Refusal, Unwatch, Watch
from specmine.probes.processes import Selection
from specmine.probes.source import BpfSource, SourceSettings

LIMIT_S = 40.0
_COUNTS = ("hits", "calls", "timed", "inner", "lost", "dropped", "unlearnt")


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How one run ended and what specmine counted in it."""

    output: str = ""
    status: int | None = None
    truth: dict[str, int] = field(default_factory=dict)
    """What the target says that it did."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Counters by function."""
    refused: dict[str, str] = field(default_factory=dict)
    """Function -> reason code."""
    ways: dict[str, str] = field(default_factory=dict)
    """Function -> session or sites."""
    observations: list[Observation] = field(default_factory=list)
    left: list[object] = field(default_factory=list)
    """Bytes of the target's text that were not its file's after the probes were taken off."""

    def total(self, what: str) -> int:
        """Return the sum of one counter."""
        return sum(each[what] for each in self.counted.values())

    @property
    def open(self) -> int:
        """Calls that began, and that neither ended nor were found abandoned."""
        return self.total("calls") - sum(self.total(each) for each in ("timed", "unlearnt", "lost", "dropped"))


def unwatched(path: Path) -> Outcome:
    """Run a target by itself."""
    done = subprocess.run([path], input="\n\n", capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return Outcome(output=done.stdout, status=done.returncode, truth=_truth(done.stdout))


def watched(
    path: Path,
    keys: Mapping[str, str | None],
    number: int,
    *,
    cache: Path,
    meddle: Callable[[int], None] | None = None,
    limits: Mapping[str, float] | None = None,
) -> Outcome:
    """Run a target with its functions watched, by turns as TIME and PATH.

    Parameters
    ----------
    keys : mapping
        Name of each function -> its key where it has no name in the file, else None.
    number : int
        Of the run: functions change kinds from pair to pair of runs; in odd runs the target ends under its probes.
    meddle : callable, optional
        What is done to the process (pid) while it works.
    limits : mapping, optional
        Fields of the requests.
    """
    result = Outcome()
    with ExitStack() as stack:
        child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stack.callback(_end, child)
        named = tuple(name for name, key in keys.items() if key is None)
        settings = SourceSettings(watch=named or ("no-such-function",), sampling=False, cache=str(cache))
        source = BpfSource([Selection(pid=child.pid)], settings)
        stack.callback(source.close)
        source.start()
        _Run(source, child, result).go(keys, number, meddle, dict(limits or {}))
        if number % 2:
            _line(child)  # it ends under its probes
            result.status = child.wait(LIMIT_S)
        else:
            source_off(source, child.pid, result)
            _line(child)
            result.status = child.wait(LIMIT_S)
    return result


class _Run:
    def __init__(self, source: BpfSource, child: subprocess.Popen[bytes], result: Outcome) -> None:
        self.source, self.child, self.result = source, child, result
        self.functions: dict[str, Function] = {}
        self.refusals: list[Refusal] = []

    def poll(self, done: Callable[[], object], limit_s: float = LIMIT_S) -> None:
        end = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end, f"not within {limit_s} s; status {self.child.poll()}, {self.refusals}"
            batch = self.source.poll(time.monotonic_ns())
            self.functions |= {f.name: f for f in batch.functions}
            self.refusals += batch.refusals
            self.result.observations += batch.observations
            time.sleep(0.01)

    def go(
        self,
        keys: Mapping[str, str | None],
        number: int,
        meddle: Callable[[int], None] | None,
        limits: dict[str, float],
    ) -> None:
        """Put the probes on, let the target work, read the counters."""
        self.poll(lambda: all(key or name in self.functions for name, key in keys.items()))
        by_name = {name: key or self.functions[name].key for name, key in keys.items()}
        for index, (_, key) in enumerate(sorted(by_name.items())):
            kind = Kind.TIME if (index + number // 2) % 2 else Kind.PATH
            how = {"window_calls": 100, "minimum_calls": 20, **limits}
            self.source.apply(Watch(function=key, kind=kind, **how))  # type: ignore[arg-type]
        watching = self.source._watching

        def settled(key: str) -> bool:
            on = key in watching.by_function and watching.by_function[key].on_ns
            return bool(on) or any(r.function == key for r in self.refusals)

        self.poll(lambda: all(map(settled, by_name.values())), 10)
        slots = {name: watching.by_function[key].slot for name, key in by_name.items() if key in watching.by_function}
        self.result.ways = {
            name: "sites" if watching.by_function[key].by_site else "session"
            for name, key in by_name.items()
            if key in watching.by_function
        }
        counters = self.source._counters
        before = {name: {each: int(counters[slot][each]) for each in _COUNTS} for name, slot in slots.items()}
        _line(self.child)
        if meddle is not None:
            begun = time.monotonic()
            self.poll(lambda: time.monotonic() - begun > 0.1)
            meddle(self.child.pid)
        assert self.child.stdout is not None
        output = self.child.stdout.fileno()
        self.poll(lambda: self.child.poll() is not None or select.select([output], [], [], 0)[0])
        self.result.output = os.read(output, 65536).decode()
        self.result.truth = _truth(self.result.output)
        quiet = time.monotonic() + 0.1
        self.poll(lambda: time.monotonic() > quiet)
        for name, slot in slots.items():
            self.result.counted[name] = {each: int(counters[slot][each]) - before[name][each] for each in _COUNTS}
        names = {key: name for name, key in by_name.items()}
        self.result.refused = {names[r.function]: r.reason.code for r in self.refusals if r.function in names}


def source_off(source: BpfSource, pid: int, result: Outcome) -> None:
    """Take all probes off and see that none is left in the target's memory."""
    for key in list(source._watching.by_function):
        source.apply(Unwatch(function=key))
    end = time.monotonic() + 2
    with Text(family(pid)) as text:
        while time.monotonic() < end:
            source.poll(time.monotonic_ns())
            result.left = [*text.changed()]
            if not result.left:
                return
            time.sleep(0.02)


def _truth(output: str) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        return {}
    return found


def _line(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write(b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        pass  # it has crashed: its status says so


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
