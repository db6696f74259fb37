"""One run of a command-line tool as its users start it: what it prints, and the CPU time and memory that it takes."""

from __future__ import annotations

import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.lib.child_processes import started
from bench.lib.peers import environment, stopped
from bench.lib.tools.costs import Costs

LOOK_S, MEMORY_S, ASK_S = 0.2, 1.0, 0.02
"""How often CPU time and memory are read, and how often it is asked whether something has come. Memory takes the kernel
milliseconds a process, which the program's clients lose."""


@dataclass(slots=True)
class Spent:
    """What all processes of one use of a tool took, summed over the commands that it needs."""

    cpu_s: float = 0.0
    memory_mb: float = 0.0
    """The most that all processes of a command had together, shared pages divided among those that share them."""

    def add(self, cpu_s: float, memory_mb: float) -> None:
        """Take in a command that ran after the others."""
        self.cpu_s, self.memory_mb = self.cpu_s + cpu_s, max(self.memory_mb, memory_mb)


@dataclass(slots=True)
class ToolRun:
    """A command at work."""

    process: subprocess.Popen[bytes]
    folder: Path
    began: float = field(default_factory=time.monotonic)
    costs: Costs = field(default_factory=Costs)
    _looked: float = 0.0
    _weighed: float = 0.0

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return (self.folder / "tool.out").read_text(errors="replace")

    @property
    def errors(self) -> str:
        """What it has said on standard error so far."""
        return (self.folder / "tool.err").read_text(errors="replace")

    @property
    def seconds(self) -> float:
        """Time since it was started, s."""
        return time.monotonic() - self.began

    def follow(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Look at it for a while, or until something is true; False if that did not come, or the tool ended before."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if now - self._looked >= LOOK_S:
                self._looked = now
                weigh = now - self._weighed >= MEMORY_S
                self._weighed = now if weigh else self._weighed
                self.costs.look(self.process.pid, self.seconds, memory=weigh)
            if until():
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(min(ASK_S, max(0.0, end - now)))
        return False

    def failure(self) -> str:
        """Return the last thing that it said."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.process.poll()}"


@contextmanager
def tool_run(command: Sequence[object], folder: Path, spent: Spent, number: int = signal.SIGINT) -> Iterator[ToolRun]:
    """Run a command; end it at the end, if it has not ended, and account for what it took.

    Its CPU time is what the kernel charged for it and its children at their ends. A process that has ended unseen by
    its parent is missing there, so the sum of the looks counts where it is more.
    """
    before_s = _reaped_s()
    with (folder / "tool.out").open("wb") as out, (folder / "tool.err").open("wb") as err:
        how = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "start_new_session": True}
        run = ToolRun(started(command, env=environment(), **how), folder)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.costs.look(run.process.pid, run.seconds, memory=True)
            stopped(run.process, number)
        looked_s = sum(run.costs.cpu_s.values())
        spent.add(max(looked_s, _reaped_s() - before_s), max(run.costs.together, default=0.0))


def _reaped_s() -> float:
    """Return the CPU time of all children that have ended, with their own, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
