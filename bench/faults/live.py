"""Are slowdowns of real programs reported: after how long, which function, which cause, how large?

    .venv/bin/python -m bench.faults.live [PROGRAM...] [--learn 300] [--fault 180] [--rest 120]
        [--quiet 0] [--varying] [--only REGEX] [--watch GLOB]... [--overhead 1%] [--agent 1%] [--keep FILE]
        [--folder DIR] [--log]

A daemon of its own watches each program under a bounded load. After it has learned, each fault is injected and undone
in turn. A fault is *opened* when a violation that is slower stands in what the daemon answers, *first* names what it
calls a cause itself and the largest factor among these. The true factor is what was injected, or by the program's own
account of means, where it has one.
``--watch`` names functions instead of having them found. ``--quiet`` adds a phase without a fault before the first, in
which nothing may be opened. ``--varying`` lets the load vary from the start until that phase ends. ``--folder`` keeps
the store: the daemon of a later run knows what this one learned, as one that runs for days does. Needs root, g++ and
the packages redis-server, nginx, postgresql, apache2-bin, mariadb-server, mariadb-client.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from bench.faults.programs import apache, mariadb, nginx, postgres, redis, shop
from bench.faults.programs.fault import VARYING, Fault, Service
from bench.lib.child_processes import in_order, running
from bench.lib.driver import table
from specmine.daemon.socket.client import PATIENCE_S, DaemonConnection, NoDaemon

PROGRAMS: dict[str, Callable[[Path], AbstractContextManager[Service]]] = {
    "shop": shop.served,
    "redis": redis.served,
    "nginx": nginx.served,
    "postgres": postgres.served,
    "apache": apache.served,
    "mariadb": mariadb.served,
}
RECOVER = "30s"
POLL_S, QUIET_POLL_S = 2.0, 10.0
PAGE_FACTOR, PAGE_SHARE = 1.5, 0.05
"""What the alerts that ship with specmine call a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the daemon made of one fault."""

    program: str
    fault: str
    opened_s: float | None
    """From the injection to the first violation; None: not within the time."""
    first: str = ""
    """The function that is named first."""
    right: bool = False
    factor: float | None = None
    true_factor: float | None = None
    cause: str = ""
    cause_right: bool = False
    cause_text: str = ""
    others: int = 0
    """Other functions that are called causes."""
    closed_s: float | None = None
    """From undoing to the moment when none stands."""
    harmless: bool = False
    known: str = ""
    """The functions that the fault slows by itself and that had been learned when it was injected."""
    title: str = ""
    """The summary of the page."""
    text: str = ""
    """Its description."""


class Daemon:
    """A daemon that watches one program, in a folder."""

    def __init__(self, folder: Path, budget: dict[str, str], watch: list[str]) -> None:
        """Remember where its socket is, what it may cost, and which functions it is told to watch."""
        self.folder, self.budget, self.watch = folder, budget, watch

    @contextmanager
    def watching(self, service: Service) -> Iterator[None]:
        """Run it."""
        configuration = {
            "programs": [{"name": service.name, **({"exe": service.exe} if service.by_exe else {"pid": service.pid})}],
            "budget": self.budget,
            "functions": {"watch": self.watch},
            "store": {"path": str(self.folder / "store.db")},
            "socket": {"path": str(self.folder / "socket")},
            "metrics": {"listen": "off"},
            "host_lock": str(self.folder / "lock"),
            "kill_switch": str(self.folder / "off"),
            "experiments": {"enabled": False},
            "violations": {"recover_after": RECOVER},
        }
        path = self.folder / "specmined.yaml"
        path.write_text(yaml.safe_dump(configuration))
        command = (Path(sys.executable).parent / "specmined", "--config", path)
        with (self.folder / "log").open("wb") as log, running(command, stderr=log) as daemon:
            while not (self.folder / "socket").exists():
                if daemon.poll() is not None:
                    raise SystemExit((self.folder / "log").read_text())
                time.sleep(0.1)
            yield

    def functions(self) -> list[dict[str, Any]]:
        """Return what it knows of each function."""
        command = (Path(sys.executable).parent / "specmine", "assertions", "--format", "json")
        asked = subprocess.run([*command, "--socket", self.folder / "socket"], capture_output=True, check=False)
        return list(json.loads(asked.stdout)["functions"]) if asked.stdout else []

    def slower(self) -> list[dict[str, Any]]:
        """Return open violations that are slower: causes first, the largest factor first.

        What is asked each two seconds must be cheap: the daemon answers within its own budget.
        """
        try:
            with closing(DaemonConnection(self.folder / "socket", timeout_s=PATIENCE_S)) as connection:
                listed = connection.ask({"command": "violations"})["violations"]
        except NoDaemon:  # or one that got no CPU time for so long
            return []
        found = [each for each in listed if each["state"] == "open" and each["direction"] == "slower"]
        return sorted(found, key=lambda each: (bool(each.get("because")), -(each["factor"] or 0)))

    def acknowledge(self) -> None:
        """Acknowledge all that stands."""
        command = Path(sys.executable).parent / "specmine"
        for name in {each["function"] for each in self.slower()}:
            subprocess.run([command, "acknowledge", name, "--socket", self.folder / "socket"], check=False)


def tried(daemon: Daemon, service: Service, fault: Fault, fault_s: float, rest_s: float) -> Outcome:
    """Inject a fault, wait for a violation and a while longer, undo it."""
    before = fault.account() if fault.account else None
    time.sleep(20 if before else 0)
    usual = _mean(fault, before)
    known = _known(daemon, fault)
    fault.inject()
    began, at_fault = time.monotonic(), fault.account() if fault.account else None
    opened_s, found = None, list[dict[str, Any]]()
    try:
        while time.monotonic() - began < fault_s:
            time.sleep(POLL_S)
            found = daemon.slower()
            if found and opened_s is None:
                opened_s = time.monotonic() - began
            if opened_s is not None and not fault.harmless and time.monotonic() - began > opened_s + 45:
                break  # callers and callees were given time to join
        unusual = _mean(fault, at_fault)
    finally:
        fault.undo()
    undone, closed_s = time.monotonic(), None
    while time.monotonic() - undone < rest_s and closed_s is None:
        time.sleep(POLL_S)
        if not daemon.slower():
            closed_s = time.monotonic() - undone
    if closed_s is None:
        daemon.acknowledge()
    true_factor = fault.factor or (unusual / usual if usual and unusual else None)
    return replace(_outcome(service, fault, opened_s, found, true_factor, closed_s), known=known)


def _known(daemon: Daemon, fault: Fault) -> str:
    """Return the functions that a fault slows by itself, of those that are known."""
    names = [each["function"] for each in daemon.functions() if each["state"] in KNOWN]
    return ", ".join(name for name in names if _is_slowed(name, fault))


def _is_slowed(name: str, fault: Fault) -> bool:
    return not fault.functions or any(fnmatchcase(name, glob) for glob in fault.functions)


def _mean(fault: Fault, since: tuple[float, float] | None) -> float | None:
    if fault.account is None or since is None:
        return None
    calls, seconds = fault.account()
    return (seconds - since[1]) / (calls - since[0]) if calls > since[0] else None


def _outcome(
    service: Service,
    fault: Fault,
    opened_s: float | None,
    found: list[dict[str, Any]],
    true_factor: float | None,
    closed_s: float | None,
) -> Outcome:
    if not found:
        quiet = fault.harmless and opened_s is None
        return Outcome(
            program=service.name, fault=fault.name, opened_s=opened_s, right=quiet, cause_right=quiet,
            closed_s=closed_s if opened_s is not None else None, true_factor=true_factor, harmless=fault.harmless,
        )  # fmt: skip
    violation = found[0]
    cause = violation["cause"]["kind"]
    return Outcome(
        program=service.name,
        fault=fault.name,
        opened_s=opened_s,
        first=violation["function"],
        right=_is_slowed(violation["function"], fault) and not fault.harmless,
        factor=violation["factor"],
        true_factor=true_factor,
        cause=cause,
        cause_right=cause in fault.causes,
        cause_text=f"{violation['cause']['text']} {json.dumps(violation['cause']['evidence'])}",
        harmless=fault.harmless,
        others=sum(not other.get("because") for other in found) - 1,
        closed_s=closed_s,
        title=violation.get("title") or "",
        text=violation.get("text") or "",
    )


@contextmanager
def folder_for(name: str, kept: Path | None) -> Iterator[Path]:
    """Give a folder for a program and its daemon: for once, or one that keeps what the daemon learned."""
    if kept is not None:
        (kept / name).mkdir(parents=True, exist_ok=True)
        yield kept / name
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as where:
        yield Path(where)


def run(name: str, options: argparse.Namespace) -> list[Outcome]:
    """Return the outcome of each fault of one program."""
    with folder_for(name, options.folder) as folder:
        folder.chmod(0o755)
        shutil.rmtree(folder / "program", ignore_errors=True)
        (folder / "program").mkdir()
        (folder / "daemon").mkdir(exist_ok=True)
        (folder / "daemon" / "socket").unlink(missing_ok=True)
        daemon = Daemon(folder / "daemon", {"overhead": options.overhead, "agent": options.agent}, options.watch)
        with PROGRAMS[name](folder / "program") as service, daemon.watching(service):
            harmless = {fault.name: fault for fault in service.faults if fault.harmless}
            if options.varying:
                harmless[VARYING].inject()
            time.sleep(options.learn)
            states = [function["state"] for function in daemon.functions()]
            print(f"{name}: {len(states)} functions, {sum(s in KNOWN for s in states)} known", flush=True)
            outcomes = [_undisturbed(daemon, service, options.quiet)] if options.quiet else []
            if options.varying:
                harmless[VARYING].undo()
            daemon.acknowledge()
            for fault in service.faults:
                if re.search(options.only, fault.name):
                    outcomes.append(tried(daemon, service, fault, options.fault, options.rest))
                    print(f"{name}: {outcomes[-1]}", flush=True)
                    if options.keep:
                        with options.keep.open("a") as file:
                            file.write(json.dumps(asdict(outcomes[-1])) + "\n")
            if options.log:
                print((folder / "daemon" / "log").read_text())
            return outcomes


KNOWN = ("single", "explaining", "explained", "unexplained")


def _undisturbed(daemon: Daemon, service: Service, quiet_s: float) -> Outcome:
    """Wait; nothing may be opened. What is goes on a line of its own, as page or ticket; the first is the outcome."""
    began, seen, outcome = time.monotonic(), set[str](), None
    nothing = Fault(name=f"none, {quiet_s:.0f} s", inject=lambda: None, undo=lambda: None, harmless=True)
    while time.monotonic() - began < quiet_s:
        time.sleep(QUIET_POLL_S)
        after_s, found = time.monotonic() - began, daemon.slower()
        for violation in found:
            if violation["id"] not in seen:
                seen.add(violation["id"])
                kind = "page" if _is_page(violation) else "ticket"
                share, cause = violation["time_share"], violation["cause"]
                print(
                    f"{service.name}: after {after_s:.0f} s a {kind}: {violation['function']}, factor "
                    f"{violation['factor']:.2f}, share of time {share:.2%}, cause {cause['kind']}: {cause['text']}",
                    flush=True,
                )
        if found and outcome is None:
            outcome = _outcome(service, nothing, after_s, found, None, None)
    return outcome or _outcome(service, nothing, None, [], None, None)


def _is_page(violation: dict[str, Any]) -> bool:
    return bool(violation["factor"] >= PAGE_FACTOR and violation["time_share"] >= PAGE_SHARE)


def main() -> int:
    """Run the faults of some programs; 0 if each was opened, and nothing else."""
    parser = argparse.ArgumentParser(description="Slowdowns of real programs.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}; all by default")
    parser.add_argument("--learn", type=float, default=300, help="seconds before the first fault")
    parser.add_argument("--fault", type=float, default=180, help="most seconds of a fault")
    parser.add_argument("--rest", type=float, default=120, help="most seconds after it")
    parser.add_argument("--quiet", type=float, default=0, help="seconds without a fault before the first")
    parser.add_argument("--varying", action="store_true", help="let the load vary until then")
    parser.add_argument("--only", default="", help="faults whose name matches this")
    parser.add_argument("--watch", action="append", default=[], help="functions.watch")
    parser.add_argument("--overhead", default="1%", help="budget.overhead")
    parser.add_argument("--agent", default="1%", help="budget.agent")
    parser.add_argument("--keep", type=Path, help="append each outcome to this file, a line of JSON each")
    parser.add_argument("--folder", type=Path, help="keep there what daemons learn, for later runs with it")
    parser.add_argument("--log", action="store_true", help="print the daemon's log")
    options = parser.parse_args()
    in_order()
    outcomes = [outcome for name in options.programs or PROGRAMS for outcome in run(name, options)]
    table(
        (
            "program",
            "fault",
            "known before",
            "opened after",
            "first",
            "right",
            "factor",
            "true",
            "cause",
            "right",
            "closed after",
        ),
        (
            (
                outcome.program,
                outcome.fault,
                _cut(outcome.known),
                _shown(outcome.opened_s, "{:.0f} s"),
                outcome.first,
                _yes(outcome.right),
                _shown(outcome.factor, "{:.2g}"),
                _shown(outcome.true_factor, "{:.2g}"),
                outcome.cause,
                _yes(outcome.cause_right),
                _shown(outcome.closed_s, "{:.0f} s"),
            )
            for outcome in outcomes
        ),
    )
    return 0 if all(outcome.harmless == (outcome.opened_s is None) for outcome in outcomes) else 1


def _shown(number: float | None, form: str) -> str:
    return "-" if number is None else form.format(number)


def _cut(names: str) -> str:
    first, *more = names.split(", ")
    return f"{first} and {len(more)} more" if more else first or "-"


def _yes(right: bool) -> str:
    return "yes" if right else "no"


if __name__ == "__main__":
    raise SystemExit(main())
