"""What do the programs see when a process of specmine is killed or stopped, and how soon are they watched again?

    .venv/bin/python -m bench.resilience.kills [--kills 200] [--stops 50] [--seconds 270] [--results FILE] [--seed 1]

A daemon watches programs under load. Again and again one of its processes gets SIGKILL or SIGSTOP at a random moment:
the daemon, the holder of the probes, the reader of binaries, the worker, the compiling child. Nothing is repaired by
hand: the bench only starts a daemon that has ended, as systemd does, and it kills a stopped one, as systemd's watchdog
does. *Clean* is the time until the programs' executable pages were what the files say. *Again* is the time until a
probe was in them; for the reader, until a new build was watched; for the worker, until another was at the job.
``--seconds`` ends a run early; with ``--results`` the next run goes on. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.lib.driver import ROOT, TARGETS, built, table
from specmine.store import open_store
from tests.support.breakpoints import Text, family
from tests.support.killing import observations_stored
from tests.support.product import Daemon, busy, daemon, running, wait_until, wait_until_gone

CLEAN_S, CLEAN_STOPPED_HOLDER_S, AGAIN_S = 1.0, 3.0, 10.0
"""What is promised."""
LIMIT_S = 60.0
WORDS = {"holder": "holder", "reader": "parser", "worker": "worker.process", "compiler": "compiler"}
"""What the command line of each helper holds."""
PROGRAMS = (*(ROOT / "tests" / "programs" / f"{name}.c" for name in ("paths", "forks")), TARGETS / "redeployed.c")
SECTIONS = {
    "functions": "{watch: [z, take, give, work]}",
    "budget": "{overhead: 30%, agent: 50%}",
    "windows": "{calls: 300, length: 1s}",
    "experiments": "{enabled: false}",
}


class Absent(Exception):
    """The process that was to be struck is not at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One signal to one process, and what came of it."""

    victim: str
    signal: str
    probes: int
    """In the programs' text, just before."""
    clean_s: float | None
    """None where the process holds no probe, or there was none."""
    again_s: float
    stored: int
    """Observations in the store after a daemon's end."""
    wrong: str = ""

    @property
    def late(self) -> str:
        """Which promise was broken, '' if none."""
        limit_s = CLEAN_STOPPED_HOLDER_S if (self.victim, self.signal) == ("holder", "SIGSTOP") else CLEAN_S
        clean = "clean late" if self.clean_s is not None and self.clean_s > limit_s else ""
        return " ".join(filter(None, (clean, "watched late" if self.again_s > AGAIN_S else "", self.wrong)))


class Round:
    """One daemon with a fresh store over programs that run on; it is ended and started by the events."""

    def __init__(self, one: Daemon, programs: list[int], redeployed: Path, chance: random.Random) -> None:
        self.one, self.programs, self.redeployed, self.chance = one, programs, redeployed, chance
        self.builds = 0
        self.known: dict[str, int] = {}

    # what is seen

    def helper(self, name: str) -> int:
        """Return the pid of a helper that lives, 0 if there is none."""
        assert self.one.process is not None
        for pid in family(self.one.process.pid)[1:]:
            try:
                if WORDS[name].encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
            except OSError:
                continue
        return 0

    def text(self) -> Text:
        """Return the text of all programs."""
        return Text([pid for program in self.programs for pid in family(program)])

    def probed(self) -> bool:
        """Tell whether a probe is in the programs' text."""
        with self.text() as text:
            return bool(text.changed())

    def await_probes(self) -> None:
        """Wait until the programs are watched."""
        wait_until(self.probed, "a probe", LIMIT_S)

    # one event each

    def strike(self, victim: str, number: signal.Signals) -> Event:
        """Send the signal and wait until all is well again."""
        match victim:
            case "daemon":
                return self._daemon(number)
            case "compiler":
                return self._compiler(number)
            case "reader":
                return self._reader(number)
            case _:
                return self._helper(victim, number)

    def _daemon(self, number: signal.Signals) -> Event:
        process = self.one.process
        assert process is not None
        self.await_probes()
        time.sleep(self.chance.uniform(0, 1.5))
        helpers = family(process.pid)[1:]
        with self.text() as text:
            probes = len(text.changed())
            with busy():
                began = time.monotonic()
                process.send_signal(number)
                clean_s = clean(text, began)
            process.kill()
            process.wait()
        wait_until_gone(helpers)
        stored = observations_stored(self.one)
        wrong = self.damage(stored)
        began = time.monotonic()
        self.one.start(alone=True)
        self.await_probes()
        again_s = time.monotonic() - began
        return self.event("daemon", number, probes, clean_s if probes else None, again_s, wrong=wrong)

    def damage(self, stored: dict[str, int]) -> str:
        """Return what is wrong with the store: it may have merged observations, but forget no function."""
        lost = sorted(set(self.known) - set(stored))
        self.known = stored
        with open_store(self.one.store, read_only=True) as store:
            store.load()
        return f"forgot {lost}" if lost else ""

    def _compiler(self, number: signal.Signals) -> Event:
        process = self.one.process
        assert process is not None
        self.await_probes()  # what was compiled is in the cache from now on
        process.terminate()
        process.wait(LIMIT_S)
        self.one.start(alone=True)
        found: list[int] = []

        def struck() -> bool:
            pid = self.helper("compiler")
            if pid:
                time.sleep(self.chance.uniform(0, 0.3))
                found.append(pid)
                os.kill(pid, number)
            return bool(found)

        wait_until(struck, "the compiling child", LIMIT_S, step_s=0.003)
        began = time.monotonic()
        self.await_probes()
        return self.event("compiler", number, 0, None, time.monotonic() - began)

    def _reader(self, number: signal.Signals) -> Event:
        self.await_probes()
        time.sleep(self.chance.uniform(0, 0.5))
        wait_until(lambda: self.helper("reader"), "the reader", LIMIT_S)
        os.kill(self.helper("reader"), number)
        self.builds += 1
        fresh = self.redeployed.with_suffix(".new")
        made = built(self.redeployed.parent / "made", PROGRAMS[2], f"-Wl,--build-id=0x{self.builds:040x}")
        made.rename(fresh)
        fresh.rename(self.redeployed)
        with running(self.redeployed, self.redeployed.parent / "calls") as child:
            began = time.monotonic()

            def watched() -> bool:
                with Text([child.pid]) as text:
                    return bool(text.changed())

            wait_until(watched, "a probe in the new build", LIMIT_S)
            again_s = time.monotonic() - began
            wrong = "" if child.poll() is None else f"the new build ended with {child.returncode}"
        return self.event("reader", number, 0, None, again_s, wrong=wrong)

    def _helper(self, victim: str, number: signal.Signals) -> Event:
        self.await_probes()
        until_s = time.monotonic() + LIMIT_S
        while not self.helper(victim):
            if time.monotonic() > until_s:
                raise Absent(f"no {victim} was at work in {LIMIT_S:.0f} s")
            time.sleep(0.01)
        if victim == "holder":
            time.sleep(self.chance.uniform(0, 1.5))
            self.await_probes()
        pid = self.helper(victim)
        with self.text() as text:
            probes = len(text.changed())
            began = time.monotonic()
            os.kill(pid, number)
            clean_s = clean(text, began) if victim == "holder" and probes else None

        def replaced() -> bool:
            return self.helper(victim) not in (0, pid) and (victim != "holder" or self.probed())

        wait_until(replaced, f"another {victim}", LIMIT_S)
        return self.event(victim, number, probes, clean_s, time.monotonic() - began)

    def event(
        self,
        victim: str,
        number: signal.Signals,
        probes: int,
        clean_s: float | None,
        again_s: float,
        *,
        wrong: str = "",
    ) -> Event:
        """Return the event, with what else is wrong."""
        ended = [pid for pid in self.programs if not Path(f"/proc/{pid}/stat").exists()]
        process = self.one.process
        assert process is not None
        dead = f"the daemon ended with {process.returncode}" if process.poll() is not None else ""
        log = self.one.log.read_text()
        traceback = f"in the log: {log[log.index('Traceback') :]}" if "Traceback" in log else ""
        return Event(
            victim=victim,
            signal=number.name,
            probes=probes,
            clean_s=clean_s,
            again_s=again_s,
            stored=sum(self.known.values()),
            wrong="; ".join(filter(None, (wrong, dead, traceback, f"programs ended: {ended}" if ended else ""))),
        )


def clean(text: Text, began_s: float) -> float:
    """Return after how many seconds no probe was left."""
    wait_until(lambda: not text.changed(), "the end of all probes", LIMIT_S, step_s=0.002)
    return time.monotonic() - began_s


@contextmanager
def new_round(folder: Path, chance: random.Random) -> Iterator[Round]:
    """Start programs and a daemon; at the end all have ended well, and nothing is left."""
    folder.mkdir()
    paths = [built(folder, source) for source in PROGRAMS]
    (folder / "made").mkdir()
    (folder / "private").mkdir()
    with ExitStack() as stack:
        arguments = (("3600",), ("3600", "16", "2000"))
        programs = [stack.enter_context(running(paths[n], *more)) for n, more in enumerate(arguments)]
        chosen = ", ".join(f"{{exe: {path}}}" for path in paths)
        one = stack.enter_context(daemon(folder / "private", programs=f"[{chosen}]", **SECTIONS))
        one.start(alone=True)
        yield Round(one, [each.pid for each in programs], paths[2], chance)
        process = one.process
        assert process is not None
        left = family(process.pid)
        one.end()
        wait_until_gone(left)
        for each in programs:
            os.killpg(each.pid, signal.SIGTERM)
            out, _ = each.communicate(timeout=LIMIT_S)
            if each.returncode or "{" not in out:
                raise SystemExit(f"{each.args!r} ended with {each.returncode}: {out}")


def plan(kills: int, stops: int, chance: random.Random) -> list[tuple[str, signal.Signals]]:
    """Return victims and signals in the order of rounds: the worker lives only while a function is learned."""
    victims = ["compiler", "holder", "worker", "reader", "daemon", "holder", "daemon", "reader", "daemon", "holder"]
    share = stops / max(1, kills + stops)
    found: list[tuple[str, signal.Signals]] = []
    while kills + stops:
        stopped = stops and (not kills or chance.random() < share)
        kills, stops = (kills, stops - 1) if stopped else (kills - 1, stops)
        found.append((victims[len(found) % len(victims)], signal.SIGSTOP if stopped else signal.SIGKILL))
    return found


def report(events: list[Event], planned: int) -> int:
    """Print the table; 0 if every promise held every time."""
    rows: list[list[object]] = []
    for key in sorted({(each.victim, each.signal) for each in events}):
        own = [each for each in events if (each.victim, each.signal) == key]
        cleans = [each.clean_s for each in own if each.clean_s is not None]
        rows.append([*key, len(own), spread(cleans), spread([e.again_s for e in own]), sum(bool(e.late) for e in own)])
    table(("process", "signal", "times", "clean after, s", "watched again after, s", "promises broken"), rows)
    for number, each in enumerate(events):
        if each.late:
            print(f"{number + 1}: {each.victim} {each.signal}: {each.late}: {asdict(each)}")
    print(f"{len(events)} of {planned} signals were sent")
    return 1 if any(each.late for each in events) else 0


def spread(seconds: list[float]) -> str:
    """Return median and largest."""
    return f"{statistics.median(seconds):.2f} (at most {max(seconds):.2f})" if seconds else "-"


def main() -> int:
    """Strike, and print what came of it."""
    parser = argparse.ArgumentParser(description="What killed and stopped processes of specmine leave behind.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.resilience.kills: needs root", file=sys.stderr)
        return 4
    planned = plan(options.kills, options.stops, random.Random(options.seed))
    events: list[Event] = []
    if options.results and options.results.exists():
        events = [Event(**json.loads(line)) for line in options.results.read_text().splitlines()]
    end_s = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        os.environ["CACHE_DIRECTORY"] = f"{folder}/cache"

        def over() -> bool:
            return len(events) == len(planned) or time.monotonic() > end_s

        for number in itertools.count():
            if over():
                break
            strike_round(Path(folder) / str(number), planned, events, options.results, over)
    return report(events, len(planned))


def strike_round(
    folder: Path,
    planned: list[tuple[str, signal.Signals]],
    events: list[Event],
    results: Path | None,
    over: Callable[[], bool],
) -> None:
    """Strike ten times at most; a round whose daemon has no work for a helper is given up for another."""
    with new_round(folder, random.Random(len(events))) as one:
        for victim, number in planned[len(events) : len(events) // 10 * 10 + 10]:
            try:
                events.append(one.strike(victim, number))
            except Absent as error:
                print(error, file=sys.stderr, flush=True)
                return
            line = json.dumps(asdict(events[-1]))
            print(line, flush=True)
            if results:
                with results.open("a") as file:
                    file.write(line + "\n")
            if over():
                return


if __name__ == "__main__":
    raise SystemExit(main())
