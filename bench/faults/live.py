"""Are slowdowns of real programs reported: after how long, which function, which cause, how large?

    .venv/bin/python -m bench.faults.live [PROGRAM...] [--learn 300] [--fault 180] [--rest 120]
        [--join 45] [--rounds 1] [--quiet 0] [--varying] [--only REGEX] [--watch GLOB]... [--overhead 1%] [--agent 1%]
        [--keep FILE] [--folder DIR] [--log]

A daemon of its own watches each program under a bounded load. After it has learned, each fault is injected and undone
in turn. A fault is *opened* when a violation that is slower stands in what the daemon answers; *first* is what it names
first, in its own order (bench/faults/tries/outcome.py). The *true* factor is what was injected, or by the program's own
account of means, where it has one; it is that of the function that the fault slows. The *measured* one is that of the
violated function, as bpftrace times its calls for some seconds during the fault and after it.
``--watch`` names functions instead of having them found. ``--quiet`` adds a phase without a fault before the first, in
which nothing may be opened. ``--varying`` lets the load vary from the start until that phase ends. ``--folder`` keeps
the store: the daemon of a later run knows what this one learned, as one that runs for days does. Needs root, g++ and
the packages bpftrace, redis-server, nginx, postgresql, apache2-bin, mariadb-server, mariadb-client.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.faults.programs import apache, mariadb, nginx, postgres, redis, shop
from bench.faults.programs.fault import VARYING, Account, Fault, Service
from bench.faults.tries.daemon import Daemon
from bench.faults.tries.outcome import Outcome, is_slowed, outcome_of
from bench.faults.tries.true_factor import Timed, durations, factor_between, place_of
from bench.faults.tries.turns import lane, turn
from bench.lib.child_processes import in_order
from bench.lib.driver import table

PROGRAMS: dict[str, Callable[[Path], AbstractContextManager[Service]]] = {
    "shop": shop.served,
    "redis": redis.served,
    "nginx": nginx.served,
    "postgres": postgres.served,
    "apache": apache.served,
    "mariadb": mariadb.served,
}
POLL_S, QUIET_POLL_S = 2.0, 10.0
CALM_S = 60.0
"""What the fault of another program left behind may stand for so long before the next try begins nevertheless."""
USUAL_S = 10.0
"""What is usual by the accounts is taken over so long before a fault."""
PAGE_FACTOR, PAGE_SHARE = 1.5, 0.05
"""What the alerts that ship with specmine call a page."""


def tried(daemon: Daemon, service: Service, fault: Fault, options: argparse.Namespace) -> Outcome:
    """Inject a fault, wait for a violation and a while longer, undo it, wait until nothing stands."""
    with turn(options.turns, alone=fault.alone):
        _is_calm_after(daemon, CALM_S)
        outcome, timed = _injected(daemon, service, fault, options)
    closed_s = _is_calm_after(daemon, options.rest)
    if closed_s is None:
        daemon.acknowledge()
    return replace(
        outcome,
        closed_s=closed_s if outcome.opened_s is not None else None,
        measured_factor=None if timed is None else factor_between(durations(timed.place), timed.took, timed.quantile),
    )


def _is_calm_after(daemon: Daemon, seconds: float) -> float | None:
    """Return after how long nothing stands; None: not within so many seconds."""
    began = time.monotonic()
    while daemon.slower() != []:  # a daemon that does not answer has told nothing
        if time.monotonic() - began > seconds:
            return None
        time.sleep(POLL_S)
    return time.monotonic() - began


def _injected(
    daemon: Daemon, service: Service, fault: Fault, options: argparse.Namespace
) -> tuple[Outcome, Timed | None]:
    """Return what was opened while a fault lasted, what the accounts say of it, and how long calls then took."""
    accounts = fault.account, service.clients
    before = list(map(_read, accounts))
    time.sleep(USUAL_S if any(accounts) else 0)
    usual = list(map(_mean, accounts, before))
    known = _known(daemon, fault)
    stand = {each["id"] for each in daemon.slower() or ()}
    began_ns = time.time_ns()
    fault.inject()
    began, at_fault = time.monotonic(), list(map(_read, accounts))
    opened_s, short_s, found = None, None, list[dict[str, Any]]()
    by_host = fault.causes == ("host",)
    try:
        while time.monotonic() - began < options.fault:
            time.sleep(POLL_S)
            found = [each for each in daemon.slower() or () if each["id"] not in stand] or found
            if found and opened_s is None:
                opened_s = time.monotonic() - began
            if by_host and short_s is None and daemon.short_of_cpu():
                short_s = time.monotonic() - began
            if opened_s is not None and not fault.harmless and time.monotonic() - began > opened_s + options.join:
                break  # callers and callees were given time to join
        unusual = list(map(_mean, accounts, at_fault))
        timed = _timed(found[0], service) if found else None
    finally:
        fault.undo()
    factor, felt = (now / then if then and now else None for then, now in zip(usual, unusual, strict=True))
    outcome = replace(
        outcome_of(service, fault, opened_s, found),
        true_factor=fault.factor or factor,
        felt=felt,
        short_s=short_s,
        known=known,
        began_ns=began_ns,
        undone_ns=time.time_ns(),
        load=os.getloadavg()[0],
    )
    return outcome, timed


def _timed(violation: dict[str, Any], service: Service) -> Timed | None:
    """Return how long calls of the violated function take now, as bpftrace times them; None: it cannot."""
    place = place_of(violation, service)
    return None if place is None else Timed(place, violation["quantile"], durations(place))


def _known(daemon: Daemon, fault: Fault) -> str:
    """Return the functions that a fault slows by itself, of those that are known."""
    names = [each["function"] for each in daemon.functions() if each["state"] in KNOWN]
    return ", ".join(name for name in names if is_slowed(name, fault))


def _read(account: Account | None) -> tuple[float, float] | None:
    return account() if account else None


def _mean(account: Account | None, since: tuple[float, float] | None) -> float | None:
    if account is None or since is None:
        return None
    calls, seconds = account()
    return (seconds - since[1]) / (calls - since[0]) if calls > since[0] else None


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
            chosen = [fault for fault in service.faults if re.search(options.only, fault.name)]
            order = in_rounds(chosen, options.rounds, f"{name} {options.seed}")
            print(f"tries: {len(order)}", flush=True)
            with lane(options.lane):
                for fault in order:
                    outcomes.append(tried(daemon, service, fault, options))
                    print(f"{name}: {outcomes[-1]}", flush=True)
                    if options.keep:
                        with options.keep.open("a") as file:
                            file.write(json.dumps(asdict(outcomes[-1])) + "\n")
            if options.log:
                print((folder / "daemon" / "log").read_text())
            return outcomes


def in_rounds(faults: Sequence[Fault], rounds: int, seed: str) -> list[Fault]:
    """Return the faults: once, in their order, or some rounds of them, each in an order by lot."""
    chance = random.Random(seed)
    return list(faults) if rounds == 1 else [one for _ in range(rounds) for one in chance.sample(faults, len(faults))]


KNOWN = ("single", "explaining", "explained", "unexplained")


def _undisturbed(daemon: Daemon, service: Service, quiet_s: float) -> Outcome:
    """Wait; nothing may be opened. What is goes on a line of its own, as page or ticket; the first is the outcome."""
    began, seen, outcome = time.monotonic(), set[str](), None
    nothing = Fault(name=f"none, {quiet_s:.0f} s", inject=lambda: None, undo=lambda: None, harmless=True)
    while time.monotonic() - began < quiet_s:
        time.sleep(QUIET_POLL_S)
        after_s, found = time.monotonic() - began, daemon.slower() or []
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
            outcome = outcome_of(service, nothing, after_s, found)
    return outcome or outcome_of(service, nothing, None, [])


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
    parser.add_argument("--join", type=float, default=45, help="seconds that callers and callees are given to join")
    parser.add_argument("--rounds", type=int, default=1, help="try each fault so often, in an order by lot")
    parser.add_argument("--seed", type=int, default=1, help="of that lot")
    parser.add_argument(
        "--turns", type=Path, help="folder that runs side by side share: faults that all feel come alone"
    )
    parser.add_argument("--lane", type=Path, help="file that runs share of which only one may inject faults at a time")
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
            "measured",
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
                _shown(outcome.measured_factor, "{:.2g}"),
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
