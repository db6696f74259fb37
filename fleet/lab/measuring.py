"""One run of one build: made if need be, executed, and what it measured."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from specmine.analysis.importers.records import Faults, Names
from specmine.analysis.importers.registry import opened, reader_of
from specmine.analysis.lifetimes.from_store import from_store
from specmine.mining.regression.sample import Floats
from specmine.model.clock import Clock
from specmine.model.errors import InputError, SpecmineError
from specmine.model.globs import fits

from .benchmark import MOST_CALLS, OUTPUT, Benchmark, TestedBuild
from .execution import Ended, Place, account_of, command_line, execute
from .results import FunctionResult

CALLS_VARIABLE = "SPECMINE_CALLS"
_GRACE_S = 60.0
"""What mining may take beside the time that it watches."""
Alive = Callable[[], bool]


class RunFailed(Exception):
    """A run that gave no result; the message says why."""


class GivenUp(Exception):
    """The run is no longer ours."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """What a run gave."""

    seconds: float
    found: tuple[FunctionResult, ...]


@dataclass(slots=True, kw_only=True)
class Bench:
    """Runs builds of one benchmark on this host, in a folder of its own."""

    benchmark: Benchmark
    folder: Path
    clock: Clock
    every_s: float = 10.0
    """Between two signs of life."""
    made: dict[tuple[str, int], float] = field(default_factory=dict)
    """What making each build took, s."""

    def make(self, label: str, making: int, alive: Alive = lambda: True) -> Path:
        """Return the folder in which a build runs; its recipe is followed once. Raises RunFailed, GivenUp."""
        build = self.benchmark.build(label)
        if not build.recipe:
            return Path(self.benchmark.folder or ".").absolute()
        number = [each.label for each in self.benchmark.builds].index(label)
        at = self.folder / f"build-{number}-{making}"
        if (label, making) in self.made:
            return at
        shutil.rmtree(at, ignore_errors=True)
        self._folder(at)
        ended = self._execute(["/bin/sh", "-ec", build.recipe], at, alive, self.benchmark.timeout)
        if ended.why:
            raise RunFailed(f"its recipe failed: {ended.why}")
        self.made[label, making] = ended.seconds
        return at

    def program_digest(self, label: str, making: int) -> str:
        """Return a hash of what a build's command executes, '' if that is not a file of its folder."""
        at = self.make(label, making)
        name = command_line(self.benchmark.build(label).command, 0, at)[0]
        path = at / name
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_relative_to(at) else ""
        except OSError:
            return ""

    def run(self, label: str, making: int, calls: int, alive: Alive = lambda: True) -> Measured:
        """Run a build once and return all its calls.

        Parameters
        ----------
        label : str
        making : int
            Which making of the build.
        calls : int
            What the program is told.
        alive : callable
            Whether to go on.

        Raises
        ------
        RunFailed
            With the reason.
        GivenUp
            If ``alive`` says no.
        """
        build, at = self.benchmark.build(label), self.make(label, making, alive)
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        self._folder(run)
        if self.benchmark.measure == "mined":
            return self._mined(build, at, run, calls, alive)
        output = run / "output"
        ended = self._execute(command_line(build.command, calls, output), at, alive, self.benchmark.timeout, calls)
        if ended.why:
            raise RunFailed(ended.why)
        source = output if OUTPUT in build.command else self.folder / "stdout"
        found = [each for each in printed(source) if self._wanted(each)]
        if not found:
            raise RunFailed("it printed no duration of such a function")
        return Measured(seconds=ended.seconds, found=tuple(found))

    def _mined(self, build: TestedBuild, at: Path, run: Path, calls: int, alive: Alive) -> Measured:
        store = run / "store.db"
        watched = self.benchmark.run_seconds
        argv = [sys.executable, "-m", "specmine.cli", "mine", "--store", str(store), "--duration", str(watched)]
        argv += [part for glob in self.benchmark.functions for part in ("--function", glob)]
        if self.benchmark.user:
            argv += ["--user", self.benchmark.user]
        argv += ["--format", "json", "--", *command_line(build.command, calls, run / "output")]
        limit = max(self.benchmark.timeout, watched + _GRACE_S)
        ended = self._execute(argv, at, alive, limit, calls, as_runner=True)
        if ended.status not in (0, 3):
            raise RunFailed(ended.why)
        try:
            lifetimes = [each for each in from_store(store) if self._wanted(each) and each.sample.calls]
        except SpecmineError as error:
            raise RunFailed(str(error)) from error
        if not lifetimes:
            raise RunFailed("no call of such a function was timed")
        calls_of = Counter[str]()
        for each in lifetimes:
            calls_of[each.lifetime] += each.sample.calls
        longest = max(sorted(calls_of), key=calls_of.__getitem__)  # the program itself, not what it started
        return Measured(
            seconds=ended.seconds,
            found=tuple(
                FunctionResult(function=each.function, module=_module(each.module, build), warmup=each.warmup,
                               rate=each.rate, durations_ns=None, cells=each.sample)
                for each in lifetimes if each.lifetime == longest
            ),
        )  # fmt: skip

    def _wanted(self, each: object) -> bool:
        name, module = str(getattr(each, "function")), str(getattr(each, "module"))  # noqa: B009
        return not self.benchmark.functions or any(fits(name, module, glob) for glob in self.benchmark.functions)

    def _folder(self, path: Path) -> None:
        """Make a folder that the command's user may write to."""
        path.mkdir(parents=True)
        account = account_of(self.benchmark.user)
        if account is not None:
            shutil.chown(path, account.pw_uid, account.pw_gid)

    def _execute(
        self, argv: Sequence[str], at: Path, alive: Alive, timeout_s: float, calls: int = 0, *, as_runner: bool = False
    ) -> Ended:
        place = Place(
            folder=at, stdout=self.folder / "stdout", stderr=self.folder / "stderr",
            user="" if as_runner else self.benchmark.user, as_invoker=not as_runner,
            environment={CALLS_VARIABLE: str(calls)},
        )  # fmt: skip
        ended = execute(argv, place, self.clock, timeout_s=timeout_s, alive=alive, every_s=self.every_s)
        if ended.given_up:
            raise GivenUp
        return ended


def printed(path: Path) -> list[FunctionResult]:
    """Return the durations that a program wrote, CSV or NDJSON, by function in their order. Raises RunFailed."""
    names, faults = Names(), Faults("its output")
    try:
        with opened(str(path)) as (file, _, _):
            form, reader = reader_of(file, "its output", None)
            if form not in ("csv", "ndjson"):
                raise RunFailed("what it printed is neither CSV nor NDJSON of durations")
            chunks = list(reader(file, names, faults))
    except InputError as error:
        raise RunFailed(error.message) from error
    paths = np.concatenate([each.paths for each in chunks]) if chunks else np.zeros(0, dtype=np.int32)
    durations = np.concatenate([each.durations_ns for each in chunks]) if chunks else np.zeros(0)
    times = [each.times_ns for each in chunks if each.times_ns is not None and len(each.times_ns)]
    order = np.argsort(np.concatenate(times), kind="stable") if times else np.arange(len(paths))
    functions = np.array(names.function_of, dtype=np.int64)[paths] if len(paths) else np.zeros(0, dtype=np.int64)
    return [
        FunctionResult(function=frame.name, module=frame.module, warmup=0, rate=None,
                       durations_ns=durations[order][functions[order] == number], cells=None)
        for number, frame in enumerate(names.functions)
    ]  # fmt: skip


def counted(found: Sequence[FunctionResult], warm_up: int, calls: int | None) -> tuple[FunctionResult, ...]:
    """Return what counts of a run: its calls after the warm-up, as many as planned.

    Raises
    ------
    RunFailed
        If no function has so many. Functions that are called less often keep what they have.
    """
    kept = []
    for each in found:
        if each.durations_ns is None:
            kept.append(each)
            continue
        rest: Floats = each.durations_ns[warm_up : warm_up + (calls or MOST_CALLS)]
        if len(rest):
            kept.append(replace(each, durations_ns=rest, warmup=min(warm_up, len(each.durations_ns))))
    most = max((each.sample.calls for each in kept), default=0)
    if most < min(calls or 1, MOST_CALLS) and not all(each.cells is not None for each in kept if kept):
        raise RunFailed(f"it made {most} calls after its warm-up, {calls} are planned")
    if not kept:
        raise RunFailed("no call is left after its warm-up")
    return tuple(kept)


def _module(module: str, build: TestedBuild) -> str:
    """Return the module of a function; the program itself has one name whatever its build is called."""
    own = Path(command_line(build.command, 0, Path())[0]).name
    return "" if module == own else module
