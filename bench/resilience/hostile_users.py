"""What can a local user without rights make the daemon spend, and how much does he keep it from seeing?

    .venv/bin/python -m bench.resilience.hostile_users [--seconds 8] [--only REGEX] [--user]

A daemon watches a service that writes down its own number of calls. Each attack of ``tests/support/attacks.py`` is
repeated for some seconds as a user without rights, after as many seconds of quiet. *Seen* is calls counted to the
service's own, and how many times as much that is as in the quiet before. *CPU* is what all processes of the daemon use,
in percent of one CPU. *Answer* is how long root waits for ``status``. Two rows are no attacks: nothing at all, which
shows how far the figures vary by themselves, and two processes that only compute, which any user may run. ``--user``
watches processes of root only, so that copies of the service that he runs do not count. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path

from bench.lib.deployments import Deployment
from bench.lib.driver import table
from tests.support.attacks import ATTACKS, LASTS_S, USER, Aim, run_together
from tests.support.breakpoints import family
from tests.support.product import Daemon, daemon, wait_until

SECTIONS = {
    "functions": "{watch: [work]}",
    "budget": "{overhead: 50%, agent: 50%}",
    "experiments": "{enabled: false}",
    "metrics": "{listen: '127.0.0.1:0'}",
}
Attack = Callable[[Aim], None]


def nothing(aim: Aim) -> None:
    """Do nothing."""
    time.sleep(LASTS_S)


def in_his_folder(attack: Attack, aim: Aim) -> None:
    """Attack where the copies of the service that the user runs can write down their calls."""
    os.chdir(aim.folder)
    attack(aim)


def two_busy_processes(aim: Aim) -> None:
    """Compute on both CPUs."""
    os.fork()
    end_s = time.monotonic() + LASTS_S
    while time.monotonic() < end_s:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What the daemon did in some seconds."""

    seen: float
    """Calls counted to the service's own."""
    cpu: float
    """CPU seconds a second, of all its processes."""
    answer_s: float
    """Until root had an answer, the median."""


class Host:
    """The daemon, the service and the places where a user may write."""

    def __init__(self, one: Daemon, deployment: Deployment, there: Path, *, only_root: bool) -> None:
        """Remember them."""
        self.one, self.deployment, self.there, self.only_root = one, deployment, there, only_root
        status = one.first_answer("status")
        assert one.process is not None
        self.pid, self.metrics, self.begun = one.process.pid, status["metrics"], 0

    def during(self, act: Callable[[], None], seconds: float) -> Span:
        """Repeat something, and return what the daemon did meanwhile."""
        answers: list[float] = []
        asked_s = -LASTS_S
        counted, own, cpu_s, since_s = self._counted(), self._own(), cpu_seconds(self.pid), time.monotonic()
        while time.monotonic() < since_s + seconds:
            act()
            if time.monotonic() < asked_s + LASTS_S:
                continue  # what is asked costs the daemon CPU time too
            asked_s = time.monotonic()
            self.one.ask()
            answers.append(time.monotonic() - asked_s)
        took_s, own = time.monotonic() - since_s, self._own() - own
        return Span(
            seen=(self._counted() - counted) / own if own else math.nan,
            cpu=(cpu_seconds(self.pid) - cpu_s) / took_s,
            answer_s=statistics.median(answers),
        )

    def attacked(self, attack: Attack) -> None:
        """Run an attack once, in a folder of its own."""
        self.begun += 1
        folder = self.there / f"{attack.__name__}-{self.begun}"
        folder.mkdir()
        os.chown(folder, USER, USER)
        run_together(
            [wraps(attack)(partial(in_his_folder, attack))],
            [
                Aim(
                    folder=folder,
                    program=self.deployment.path,
                    home=self.one.folder,
                    metrics=self.metrics,
                    pids=tuple(family(self.pid)),
                )
            ],
        )

    def _own(self) -> int:
        """Return how many calls the service made, with the copies of it that he ran and that are watched."""
        copies = () if self.only_root else self.there.glob("*/60")
        return self.deployment.calls + sum(int.from_bytes(each.read_bytes(), "little") for each in copies)

    def _counted(self) -> int:
        """Return how many calls of the service were counted."""
        functions = self.one.first_answer("functions")["functions"]
        return sum(each["calls_counted"] for each in functions if each["function"] == "work")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time in seconds of a process and all below it, with what its ended children used."""
    ticks = 0
    for each in family(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11 : 15 if each == pid else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(host: Host, attack: Attack, seconds: float) -> list[object]:
    """Return the row of one attack."""
    quiet = host.during(lambda: time.sleep(LASTS_S), seconds)
    under = host.during(lambda: host.attacked(attack), seconds)
    return [
        attack.__name__.replace("_", " "),
        f"{under.seen:.2f} ({under.seen / quiet.seen:.2f})",
        f"{100 * quiet.cpu:.1f} to {100 * under.cpu:.1f}",
        f"{1000 * quiet.answer_s:.0f} to {1000 * under.answer_s:.0f}",
    ]


def main() -> int:
    """Attack in every way and print a table."""
    parser = argparse.ArgumentParser(description="What a user without rights makes the daemon spend.")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", default="", help="attacks whose name matches this")
    parser.add_argument("--user", action="store_true", help="watch processes of root only")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.resilience.hostile_users: needs root", file=sys.stderr)
        return 4
    rows = []
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        there = Path(name)
        home = there / "home"
        home.mkdir()
        for each in (there, home):
            each.chmod(0o755)
        os.environ["CACHE_DIRECTORY"] = f"{name}/cache"
        deployment = Deployment(there)
        switch = {"kill_switch": str(home / "off")}
        try:
            with daemon(
                home, programs=f"[{{exe: {deployment.path}{', user: root' * options.user}}}]", **SECTIONS, **switch
            ) as one:
                deployment.begin()
                one.start(alone=True)
                host = Host(one, deployment, there, only_root=options.user)
                wait_until(lambda: host._counted() > 20, "the first calls")
                for attack in (nothing, two_busy_processes, *ATTACKS):
                    if re.search(options.only, attack.__name__):
                        rows.append(measured(host, attack, options.seconds))
                        print(rows[-1], flush=True)
        finally:
            deployment.end()
    table(("attack", "seen (to the quiet before)", "CPU, %", "answer, ms"), rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
