"""The product's kernel side in the hands of a bench: programs under probes that it chose itself."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from specmine.model.batch import Watch
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from specmine.probes.timing.function.timed_function import TimedFunction
from tests.support import source_driver

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ROOT / "bench" / "targets"
LIMIT_S = 30.0


class Driver(source_driver.Driver):
    """The driver of the tests, which ends the bench if nothing comes and reads the kernel's counters."""

    def poll(self, done: Callable[[], object] = lambda: True, limit_s: float = LIMIT_S) -> None:
        """Poll at least once, and until something is true; ends the bench if that does not happen."""
        end = time.monotonic() + limit_s
        while True:
            self.step()
            if done():
                return
            if time.monotonic() > end:
                raise SystemExit(f"nothing came of it in {limit_s:g} s; refused: {self.refusals}")
            time.sleep(0.01)

    def watch(self, name: str, kind: Kind, **how: float) -> str:
        """Put a probe on a function and wait until it is on; return the function's key."""
        key = self.key(name)
        self.source.apply(Watch(function=key, kind=kind, **how))  # type: ignore[arg-type]
        registry = self.source.parts.registry
        self.poll(lambda: key in registry.by_function and registry.by_function[key].attachment.on_ns)
        return key

    def timed(self, name: str) -> TimedFunction:
        """Return what the kernel side holds of a watched function; does not poll."""
        registry = self.source.parts.registry
        return next(timed for key, timed in registry.by_function.items() if self.functions[key].name == name)

    def way(self, name: str) -> str:
        """Return how the returns of a watched function are timed: session or sites."""
        return "sites" if self.timed(name).by_site else "session"

    def counted(self, name: str, what: str) -> int:
        """Return one of the kernel's counters of a watched function."""
        return self.timed(name).slot.count(what)

    def time_some(self, name: str, share: float) -> bool:
        """Have only this share of a function's calls timed, where the programs can choose; False: they cannot."""
        function = self.timed(name)
        if function.by_site:
            return False
        function.slot.set_timed_share(share)
        return True


@contextmanager
def driven(pid: int, names: Iterable[str], cache: Path | None = None) -> Iterator[Driver]:
    """Start the kernel side on a process, with hints to functions; take it off at the end."""
    settings = SourceSettings(watch=tuple(names), sampling=False, cache=str(cache) if cache else "")
    source = BpfSource([Selection(pid=pid)], settings)
    try:
        source.start()
        yield Driver(source)
    finally:
        source.close()


def built(folder: Path, source: Path, *flags: str) -> Path:
    """Compile a target program."""
    program = folder / source.stem
    include = ["-I", str(ROOT / "tests" / "programs")]
    command = [
        "gcc",
        "-O2",
        "-fno-omit-frame-pointer",
        *include,
        "-o",
        str(program),
        str(source),
        *flags,
        "-lm",
        "-lpthread",
    ]
    subprocess.run(command, check=True)
    return program


class Spoken:
    """A target program that answers a line with a line, on the last CPU."""

    def __init__(self, *command: str | Path, preload: str = "", first: bool = False) -> None:
        """Start it; ``first``: no ordinary process is scheduled before it."""
        last = str((os.cpu_count() or 1) - 1)
        self.process = subprocess.Popen(
            ["taskset", "-c", last, *(("chrt", "-f", "1") if first else ()), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_PRELOAD": preload} if preload else None,
        )

    @property
    def pid(self) -> int:
        """Process id; taskset has become the program."""
        return self.process.pid

    def say(self, line: str) -> None:
        """Ask for something."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """Wait for the answer."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        """Close its input and wait for its end."""
        self.process.communicate()


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, row by row."""
    print(f"\n| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)
    print(flush=True)
