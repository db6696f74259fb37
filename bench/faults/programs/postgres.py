"""A stock PostgreSQL under a bounded load, with faults of its plan, of a lock and of the disk."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.fault import VARYING, Fault, Service, Wandering
from bench.faults.programs.host import competing_writes
from bench.faults.programs.stripped_names import with_stripped
from bench.lib.child_processes import running, started
from bench.lib.debian_programs import POSTGRES, QUIET, as_postgres, postgres
from bench.lib.peers import stopped

RATE = 400
_LOAD = """\\set aid random(1, 20000)
\\set bid random(1, 10)
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE filler2 = :aid;
UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = :bid;
END;
"""
_HELD = """BEGIN;
SELECT 1 FROM pgbench_branches FOR UPDATE;
SELECT pg_sleep(0.1);
END;
SELECT pg_sleep(0.2);
"""
_PROGRESS = re.compile(r"^progress: [\d.]+ s, ([\d.]+) tps, lat ([\d.]+) ms", re.MULTILINE)


def transactions(progress: str) -> tuple[float, float]:
    """Return the transactions that pgbench's lines of each second are about, and the seconds that they took."""
    each = [(float(rate), float(ms)) for rate, ms in _PROGRESS.findall(progress)]
    return sum(rate for rate, _ in each), sum(rate * ms * 1e-3 for rate, ms in each)


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server and its load."""
    with ExitStack() as stack:
        folder.chmod(0o755)
        command = postgres(autovacuum="off", shared_buffers="64MB")(folder)
        log = stack.enter_context((folder / "log").open("wb"))
        server = started(command, cwd=folder, start_new_session=True, **{**QUIET, "stdout": log, "stderr": log})
        stack.callback(stopped, server)
        while not (folder / ".s.PGSQL.5432").exists():
            time.sleep(0.1)
        bench: list[str | Path] = [POSTGRES[-1] / "pgbench", "-h", folder]
        time.sleep(1)
        subprocess.run(as_postgres([*bench, "-i", "-s", "10", "-q", "postgres"]), check=True, cwd=folder, **QUIET)

        def ask(text: str) -> None:
            psql = as_postgres([POSTGRES[-1] / "psql", "-h", folder, "-q", "-c", text, "postgres"])
            done = subprocess.run(psql, check=False, cwd=folder, **{**QUIET, "stderr": subprocess.PIPE}, text=True)
            if done.returncode:
                raise SystemExit(f"{text}: psql ended with {done.returncode}: {done.stderr}")

        ask("DELETE FROM pgbench_accounts WHERE aid > 20000")
        ask("ALTER TABLE pgbench_accounts ADD COLUMN filler2 int; UPDATE pgbench_accounts SET filler2 = aid")
        ask("CREATE INDEX looked_up ON pgbench_accounts (filler2)")
        ask("VACUUM FULL ANALYZE")
        (folder / "load.sql").write_text(_LOAD)
        (folder / "held.sql").write_text(_HELD)
        load = [
            *bench,
            "-n",
            "-c",
            "4",
            "-R",
            str(RATE),
            "-T",
            "86400",
            "-P",
            "1",
            "-f",
            folder / "load.sql",
            "postgres",
        ]
        asking = stack.enter_context(ExitStack())
        account = stack.enter_context((folder / "account").open("ab"))
        told = {**QUIET, "stderr": account}
        asking.enter_context(running(as_postgres(load), cwd=folder, **told))
        opened: list[ExitStack] = []

        def double() -> None:
            opened.append(ExitStack())
            opened[-1].enter_context(running(as_postgres(load), cwd=folder, **QUIET))

        def ask_at(rate: float) -> None:
            """Let new sessions, as many, ask for so much."""
            asking.close()
            other = [str(rate) if each == str(RATE) else each for each in load]
            asking.enter_context(running(as_postgres(other), cwd=folder, **told))

        def visit(factor: float) -> None:
            """Let four more sessions come for five seconds, which ask for up to as much as the others."""
            visitors = [*load[: load.index("-R")], "-R", str(RATE * factor / 2), "-T", "5", *load[load.index("-f") :]]
            subprocess.run(as_postgres(visitors), check=False, cwd=folder, **QUIET)

        wandering = Wandering(visit)
        stack.callback(wandering.stop)

        def hold() -> None:
            held = [*bench, "-n", "-c", "1", "-T", "86400", "-f", folder / "held.sql", "postgres"]
            opened.append(ExitStack())
            opened[-1].enter_context(running(as_postgres(held), cwd=folder, **QUIET))

        exe = str(POSTGRES[-1] / "postgres")

        def named(*globs: str) -> tuple[str, ...]:
            return with_stripped(globs, exe)

        yield Service(
            name="postgres",
            exe=exe,
            pid=server.pid,
            clients=lambda: transactions((folder / "account").read_text()),
            faults=(
                Fault(
                    name="an index is dropped",
                    inject=lambda: ask("DROP INDEX looked_up"),
                    undo=lambda: ask("CREATE INDEX looked_up ON pgbench_accounts (filler2)"),
                    functions=named("*Exec*", "heap*", "*Portal*", "exec_*", "*_query*", "SeqNext", "*scan*"),
                    causes=("load", "unknown", "callee"),
                    alone=True,
                ),
                Fault(
                    name="a session holds row locks for 100 ms of 300",
                    inject=hold,
                    undo=lambda: opened.pop().close(),
                    functions=named(
                        "*Lock*", "ProcSleep", "*heap_update*", "WaitLatch*", "WaitEventSet*", "epoll_wait"
                    ),
                    causes=("wait", "callee"),
                ),
                Fault(
                    name="another process writes and syncs",
                    inject=lambda: opened.append(competing_writes(folder)),
                    undo=lambda: opened.pop().close(),
                    functions=named("fdatasync", "*XLog*", "issue_xlog_fsync", "*Commit*"),
                    causes=("wait", "host", "callee"),
                    alone=True,
                ),
                Fault(
                    name="harmless: twice the rate",
                    inject=double,
                    undo=lambda: opened.pop().close(),
                    harmless=True,
                ),
                Fault(
                    name="harmless: a fifth of the rate",
                    inject=lambda: ask_at(RATE / 5),
                    undo=lambda: ask_at(RATE),
                    harmless=True,
                ),
                Fault(name=VARYING, inject=wandering.start, undo=wandering.stop, harmless=True),
            ),
        )
