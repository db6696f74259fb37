"""Everything that is compared with ``expected/``, made by the code that is installed.

python -m tests.snapshots.run --list
python -m tests.snapshots.run --print paths.replay.json
python -m tests.snapshots.run --write
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

from specmine.cli.main import run as run_command
from specmine.daemon.config.tree import StoreSettings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Event, Mine, Mined
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents import detectable, function, levels
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.loop import Step
from specmine.daemon.metrics.collector import SnapshotCollector, scraping
from specmine.daemon.metrics.snapshot import snapshots
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.daemon.regression.watcher import ChangeWatcher
from specmine.daemon.replay import events, line_of
from specmine.daemon.socket.budget_leases import BudgetLeases
from specmine.daemon.socket.handlers import RequestHandlers
from specmine.daemon.socket.server import Server
from specmine.daemon.worker.jobs import run_job
from tests.snapshots.outputs import BUILDS, OUTPUTS, RECORDINGS

DATA, EXPECTED = Path(__file__).parent / "data", Path(__file__).parent / "expected"
AGE = re.compile(r"(?<=data are ).*(?= old\.)")
LONGEST = 12_000
"""Longer outputs are stored compressed."""
FOREVER_NS = 4 * 10**18
"""Age at which a store merges observations: it looks at the wall clock, which the expected outputs know nothing of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a command wrote, or a scrape."""

    text: str
    error: str = ""
    code: int = 0

    def __str__(self) -> str:
        """Return all of it as one text."""
        error = f"--- standard error\n{self.error}" if self.error else ""
        return f"{self.text}{error}--- exit code {self.code}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a recording leads to."""

    state: ControllerState
    daemon: DaemonFacts
    changes: ChangeWatcher


class Workshop:
    """A folder with the inputs, in which commands run; what several outputs need is made once."""

    def __init__(self, folder: Path) -> None:
        """Copy the inputs."""
        self.folder = folder
        for each in DATA.iterdir():
            shutil.copy(each, folder)
        self.replayed = cache(self._replayed)
        self.prepared = cache(self._prepared)

    def make(self, name: str) -> Output:
        """Return an output of today."""
        how = OUTPUTS[name]
        for each in how.needs:
            self.prepared(each)
        forget()
        if how.accept:
            return Output(text=self.scraped(how.daemon, how.accept))
        made = self.asked(how.daemon, *how.arguments) if how.daemon else self.command(*how.arguments)
        return replace(made, text=(self.folder / how.file).read_text(encoding="utf-8")) if how.file else made

    def command(self, *arguments: str) -> Output:
        """Run a command line of the product in this process; its text is 80 columns wide."""
        out, err = _stream(), _stream()
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        plain |= {"COLUMNS": "80", "LINES": "24"}
        with patch.dict(os.environ, plain, clear=True), redirect_stdout(out), redirect_stderr(err), chdir(self.folder):
            code = run_command(arguments)
        # the inputs are of one day, and older with each
        return Output(text=AGE.sub("some time", _text(out)), error=_text(err), code=code)

    def scraped(self, name: str, accept: str) -> str:
        """Return what Prometheus gets from a daemon that knows what a recording led to."""
        found = self.replayed(name)
        view = snapshots(found.state), status_of(found.state, found.daemon)
        return scraping(SnapshotCollector(lambda: view, series=2000))(accept)[1].decode()

    def asked(self, name: str, *arguments: str) -> Output:
        """Run a command line that asks a daemon, which knows what a recording led to."""
        found = self.replayed(name)
        answers = RequestHandlers(
            state=lambda: found.state,
            daemon=lambda: found.daemon,
            leases=BudgetLeases(0.01, lambda _: None),
            label=lambda build, label: None,
            builds=frozenset,
            changes=found.changes,
        )
        server = Server(self.folder / "socket", answers)
        try:
            return self.command(*arguments, "--socket", "socket")
        finally:
            server.close()

    def _prepared(self, need: str) -> None:
        if need in RECORDINGS:
            self.replayed(need)
        elif need == "builds":
            for name in BUILDS:
                self.replayed(name)
            self._taken_through(need, BUILDS)
        elif need == "merged":
            self.prepared("paths")
            self.prepared("paths_again")
            self.command("merge", "paths.db", "paths_again.db", "--output", "merged.db")
        else:
            self.command("analyze", need, "--output", f"{need}.json")

    def _replayed(self, name: str) -> Replayed:
        return self._taken_through(name, (name,))

    def _taken_through(self, name: str, recordings: Sequence[str]) -> Replayed:
        """Take recordings through the controller into a store; return what the last led to."""
        return [self._put(name, recording) for recording in recordings][-1]

    def _put(self, name: str, recording: str) -> Replayed:
        """Take a recording into a store."""
        forget()
        with chdir(self.folder):
            storing = StoreSettings(merge_after_ns=FOREVER_NS, merge_again_after_ns=FOREVER_NS)
            store_recorder = StoreRecorder(f"{name}.db", storing, _fail, set_aside=False)
            try:
                changes = ChangeWatcher(store_recorder.write_changes)
                changes.restore(*store_recorder.loaded())
                for step in steps(self.folder / f"{recording}.jsonl.gz"):
                    store_recorder.listen(step)
                    changes.listen(step)
                    state = step.state
            finally:
                whole = store_recorder.close()
        assert whole, "the store could not take everything"
        daemon = DaemonFacts(
            version="0",
            pid=1,
            programs=(name,),
            lent_ratio=0.002,
            metrics="127.0.0.1:9752",
            kill_switch="/run/specmine/off",
            store=store_recorder.facts,
            resident_bytes=1 << 26,
            changes=changes.changes,
        )
        return Replayed(state=state, daemon=daemon, changes=changes)


def forget() -> None:
    """Forget what documents keep: levels are those of the moment when they were first asked for, by whatever test."""
    for documents in (detectable, function, levels):
        documents.keep(frozenset())


def steps(path: Path) -> Iterator[Step]:
    """Return the steps of a recording, each decision made again."""
    state = ControllerState()
    for number, event, _ in events(path):
        state, actions = decide(state, event)
        yield Step(number=number, event=event, state=state, actions=actions)


def rewrite(path: Path) -> None:
    """Make all decisions of a recording anew, over the same events, and record these."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(next(file))]
    state, pending, number = ControllerState(), list[Event](), 0
    for _, recorded, _ in events(path):
        # what the worker said belongs to other decisions: its jobs are done again
        pending += [] if isinstance(recorded, Mined) else [recorded]
        while pending:
            event = pending.pop(0)
            state, actions = decide(state, event)
            lines.append(line_of(Step(number=number, event=event, state=state, actions=actions)))
            number += 1
            for job in (action for action in actions if isinstance(action, Mine)):
                pending.append(Mined(now_ns=state.now_ns, job=job.job, result=run_job(job.inputs)))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_bytes(compressed(text))


def compressed(text: str) -> bytes:
    """Return a text compressed; equal texts give equal bytes."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def expected(name: str) -> str:
    """Return an output as it was when it was written."""
    path = EXPECTED / f"{name}.gz"
    if path.exists():
        return gzip.decompress(path.read_bytes()).decode()
    return (EXPECTED / name).read_text(encoding="utf-8")


def write() -> None:
    """Make the recordings' decisions and all expected outputs anew."""
    for path in sorted(DATA.glob("*.jsonl.gz")):
        rewrite(path)
    shutil.rmtree(EXPECTED, ignore_errors=True)
    EXPECTED.mkdir()
    with workshop() as shop:
        for name in OUTPUTS:
            text = str(shop.make(name))
            if len(text) > LONGEST:
                (EXPECTED / f"{name}.gz").write_bytes(compressed(text))
            else:
                (EXPECTED / name).write_text(text, encoding="utf-8")


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def _fail(text: str) -> None:
    raise AssertionError(f"the store is in trouble: {text}")


@contextmanager
def workshop() -> Iterator[Workshop]:
    """Give a workshop in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield Workshop(Path(folder))


def main() -> None:
    """Print the names of the outputs, or one of them as it is now."""
    parser = argparse.ArgumentParser(description="What is compared with expected/.")
    parser.add_argument("--write", action="store_true", help="make recordings' decisions and all outputs anew")
    parser.add_argument("--list", action="store_true", help="list the names of all outputs")
    parser.add_argument("--print", metavar="NAME", choices=list(OUTPUTS), help="make this output and print it")
    options = parser.parse_args()
    if options.write:
        write()
        return
    if options.print is None:
        print("\n".join(OUTPUTS))
        return
    with workshop() as shop:
        sys.stdout.write(str(shop.make(options.print)))


if __name__ == "__main__":
    main()
