"""What ``specmine bench`` does."""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from specmine.analysis.report.document import document_of as report_document
from specmine.analysis.report.page import page
from specmine.cli.base.exit_codes import FINE, INTERRUPTED, NO_DATA, VIOLATED
from specmine.cli.base.output import destination, emit, width, write_stderr
from specmine.cli.runners.compare import exit_code
from specmine.cli.text.bench.planned import planned_text
from specmine.cli.text.bench.progress import status_text
from specmine.daemon.config.loader import load_config
from specmine.daemon.documents.json_text import json_text
from specmine.fleet.lab.benchmark import Benchmark, benchmark_from, read_benchmark
from specmine.fleet.lab.counts import Pilot, PilotRun, with_counts
from specmine.fleet.lab.embedded import StoreLedger
from specmine.fleet.lab.ledger import Ledger, Record
from specmine.fleet.lab.measuring import Bench, RunFailed
from specmine.fleet.lab.run_order import runs_in_order
from specmine.fleet.lab.runner import Runner
from specmine.fleet.lab.status import bench_document
from specmine.fleet.lab.verdict import NO_FILE, durations_csv, recorded
from specmine.fleet.place import need_psycopg
from specmine.model.clock import SystemClock
from specmine.model.errors import InputError, NoData
from specmine.model.text import escaped
from specmine.store.lock import FileLock

_MAKINGS = 3
"""How often the pilot makes a build, to see how much makings differ."""


def run_plan(
    file: Path | None, commands: Sequence[str], recipes: Sequence[str], told: Mapping[str, Any],
    labels: tuple[str, ...], folder: Path | None, store: Path | None, url: str | None, *, form: str,
) -> int:  # fmt: skip
    """Make a pilot if need be, plan, and write the plan down."""
    given = read_benchmark(file) if file is not None else {}
    given |= {key: value for key, value in told.items() if value is not None}
    builds = _builds(commands, recipes)
    if builds:
        given["builds"] = builds
    if labels:
        given["where"] = _labels(labels)
    if "folder" not in given:
        given["folder"] = str(Path.cwd())
    wanted = benchmark_from(given)
    hosts = wanted.hosts or _hosts(store, url, wanted.where)
    pilot = None
    if wanted.lifetimes is None or (wanted.calls is None and wanted.measure == "printed"):
        pilot = _pilot(wanted, folder)
    chosen, plan = with_counts(wanted, pilot, hosts)
    assert chosen.lifetimes is not None
    assert chosen.rebuilds is not None
    names = [each.label for each in chosen.builds]
    runs = runs_in_order(names, rebuilds=chosen.rebuilds, lifetimes=chosen.lifetimes, seed=chosen.seed)
    if store is not None:
        StoreLedger(path=store, host=socket.gethostname()).plan(chosen, plan, runs)
    else:
        assert url is not None
        from specmine.fleet.database.benchmarks import plan_benchmark  # noqa: PLC0415

        with _database(url) as db:
            plan_benchmark(db, chosen, plan, runs)
    document = {"schema": "specmine.bench_plan/1", "name": chosen.name, "runs": len(runs), "plan": plan,
                "benchmark": chosen.document()}  # fmt: skip
    emit(json_text(document) if form == "json" else planned_text(document, width()))
    return FINE


def run_run(
    name: str, store: Path | None, url: str | None, config: Path | None, host: str | None, folder: Path | None,
    report: Path | None, *, form: str,
) -> int:  # fmt: skip
    """Run until nothing is left, and show the verdict."""
    ended: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: ended.append(number))
    at = work_folder(folder)
    lock = FileLock(
        at / "runner.lock", what=f"the folder {at}", remedy="wait for that runner, or name another --folder"
    )
    try:
        with _ledger(store, url, config, host or socket.gethostname()) as ledger:
            runner = Runner(
                ledger=ledger, name=name, folder=at / name, clock=SystemClock(), stopped=lambda: bool(ended),
                tell=lambda line: write_stderr(f"specmine: {escaped(line)}"),
            )  # fmt: skip
            runner.work()
    finally:
        lock.release()
    if ended:
        write_stderr(f"specmine: stopped after {runner.done} runs; what is left can be run later")
        return INTERRUPTED
    if config is not None:
        write_stderr(f"specmine: all runs are done; see: specmine bench status {name} --fleet URL")
        return FINE
    return _shown(_record(name, store, url), report, form=form)


def run_status(
    name: str | None, store: Path | None, url: str | None, durations: Path | None, report: Path | None, *, form: str
) -> int:
    """Show how far a benchmark is, or which there are."""
    if name is None:
        names = _names(store, url)
        emit(json_text({"schema": "specmine.bench_names/1", "benchmarks": names}) if form == "json"
             else "".join(f"{escaped(each)}\n" for each in names) or "No benchmark.\n")  # fmt: skip
        return FINE
    record = _record(name, store, url)
    if durations is not None:
        with destination(durations) as write:
            write("".join(durations_csv(record)))
    return _shown(record, report, form=form)


def verdict_code(document: Mapping[str, Any]) -> int:
    """Return the exit code of a benchmark: 3 while runs are left, else the worst of its comparisons."""
    if not document["complete"]:
        return NO_DATA
    named = bool(document["benchmark"]["functions"])
    codes = [exit_code(each["functions"], named=named) for each in document["comparisons"]]
    return next((code for code in (VIOLATED, NO_DATA) if code in codes), FINE)


def work_folder(folder: Path | None) -> Path:
    """Return the folder for builds and runs, made if it is missing. Raises InputError if it is another user's."""
    at = folder or Path(os.environ.get("TMPDIR", "/var/tmp")) / f"specmine-bench-{os.getuid()}"
    try:
        at.mkdir(mode=0o755, parents=folder is not None, exist_ok=True)
        if at.is_symlink() or at.stat().st_uid != os.getuid():
            raise InputError(f"{at} belongs to somebody else", remedy="name another --folder")
    except OSError as error:
        raise InputError(f"cannot use the folder {at}: {error.strerror}", remedy="name another --folder") from error
    return at.absolute()


def _shown(record: Record, report: Path | None, *, form: str) -> int:
    document = bench_document(record)
    if report is not None:
        known, rule = recorded(record), record.benchmark.rule
        with destination(report) as write:
            write(page(report_document(known, rule, NO_FILE), known, rule))
    emit(json_text(document) if form == "json" else status_text(document, width()))
    return verdict_code(document)


def _pilot(wanted: Benchmark, folder: Path | None) -> Pilot:
    """Run each build a few times here, in random order."""
    with tempfile.TemporaryDirectory(prefix="pilot-", dir=work_folder(folder)) as at:
        Path(at).chmod(0o755)
        bench = Bench(benchmark=wanted, folder=Path(at), clock=SystemClock())
        makes = all(each.recipe for each in wanted.builds) and wanted.rebuilds is None
        makings = range(_MAKINGS if makes else 1)
        digests: dict[str, set[str]] = {}
        order = [(each.label, making) for making in makings for each in wanted.builds]
        runs: list[PilotRun] = []
        try:
            for label, making in order:
                digests.setdefault(label, set()).add(bench.program_digest(label, making))
            differ = makes and any(len(each) > 1 or each == {""} for each in digests.values())
            turns = [one for at in range(wanted.pilot) for one in (order if differ else order[: len(wanted.builds)])]
            chance = random.Random(wanted.seed)
            chance.shuffle(turns)
            calls = wanted.calls or wanted.pilot_calls
            for number, (label, making) in enumerate(turns, start=1):
                measured = bench.run(label, making, calls + (wanted.warm_up or 0))
                write_stderr(f"specmine: pilot {number} of {len(turns)}: {escaped(label)}, {measured.seconds:.2f} s")
                runs.append(PilotRun(build=label, making=making, seconds=measured.seconds, found=measured.found))
        except RunFailed as error:
            raise NoData(f"the pilot failed: {error}", remedy="run the command by hand") from error
        took = sorted(bench.made.values())
        return Pilot(runs=runs, build_seconds=took[len(took) // 2] if took else 0.0, makings_differ=differ)


def _builds(commands: Sequence[str], recipes: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for texts, key in ((recipes, "recipe"), (commands, "command")):
        for text in texts:
            label, equals, value = text.partition("=")
            if not equals or not label or not value:
                raise click.BadParameter(f"{text!r} is not LABEL={'RECIPE' if key == 'recipe' else 'CMD'}")
            if key in found.setdefault(label, {}):
                raise click.BadParameter(f"{label} is named twice")
            found[label][key] = value
    return found


def _labels(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{text!r} is no label", remedy="write KEY=VALUE")
        found[key] = value
    return found


def _hosts(store: Path | None, url: str | None, labels: Mapping[str, str]) -> int:
    """Return how many hosts will share the runs. Raises NoData if there is none."""
    if store is not None:
        if labels:
            raise InputError("labels choose hosts of a --fleet", remedy="leave them out with --store")
        return 1
    assert url is not None
    need_psycopg()
    from specmine.fleet.database.benchmarks import hosts_for  # noqa: PLC0415

    with _database(url) as db:
        found = hosts_for(db, labels)
    if not found:
        raise NoData("the fleet has no active host with these labels", remedy="see: specmine fleet hosts")
    return len(found)


@contextmanager
def _ledger(store: Path | None, url: str | None, config: Path | None, host: str) -> Iterator[Ledger]:
    if store is not None:
        if not store.is_file():
            raise InputError(f"there is no store {store}", remedy="plan first: specmine bench plan")
        yield StoreLedger(path=store, host=host)
        return
    need_psycopg()
    from specmine.fleet.database.benchmarks import FleetLedger, HostLogin  # noqa: PLC0415
    from specmine.fleet.database.pushing import Credentials  # noqa: PLC0415

    login = HostLogin(url=url or "", host=host)
    if config is not None:
        fleet = load_config(config).fleet
        if fleet.connect is None:
            raise InputError(
                "fleet.connect is off", remedy="say where the fleet is, as specmine fleet enroll printed it"
            )
        files = Credentials(
            certificate=Path(fleet.certificate), key=Path(fleet.private_key), authority=Path(fleet.authority)
        )
        login = HostLogin(url=fleet.connect, role=fleet.role, credentials=files)
    ledger = FleetLedger(login)
    try:
        yield ledger
    finally:
        ledger.close()


def _record(name: str, store: Path | None, url: str | None) -> Record:
    if store is not None:
        return StoreLedger(path=store, host=socket.gethostname()).record(name)
    assert url is not None
    from specmine.fleet.database.benchmarks import benchmark_record  # noqa: PLC0415

    with _database(url) as db:
        return benchmark_record(db, name)


def _names(store: Path | None, url: str | None) -> list[str]:
    if store is not None:
        return StoreLedger(path=store, host=socket.gethostname()).names()
    assert url is not None
    from specmine.fleet.database.benchmarks import benchmark_names  # noqa: PLC0415

    with _database(url) as db:
        return benchmark_names(db)


@contextmanager
def _database(url: str) -> Iterator[Any]:
    need_psycopg()
    from specmine.fleet.database.connecting import connected, told  # noqa: PLC0415
    from specmine.fleet.database.schema import check_version  # noqa: PLC0415

    with told(url), connected(url, autocommit=True) as db:
        check_version(db)
        yield db
