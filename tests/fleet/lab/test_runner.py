"""Runners in processes of their own: killed, two at once, stopped, and with programs that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from specmine.fleet.database.connecting import Connection
from specmine.fleet.lab.ledger import FAILED
from specmine.fleet.lab.runner import Runner
from specmine.fleet.lab.status import bench_document
from specmine.model.clock import SystemClock
from specmine.store import open_store
from tests.support.fleets import enrolled
from tests.support.labs import PRINTS, FleetLab, StoreLab, benchmark
from tests.support.postgres import Postgres
from tests.support.product import wait_until


def _runner(lab: FleetLab | StoreLab, folder: Path, said: list[str] | None = None) -> Runner:
    told = said if said is not None else []
    return Runner(ledger=lab.host("lab-1"), name="b", folder=folder, clock=SystemClock(), tell=told.append)


def _started(url: str, host: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "specmine.cli", "bench", "run", "b", "--fleet", url, "--host", host]
    command += ["--folder", str(folder), "--format", "json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_runners_one_of_them_killed(url: str, db: Connection, tmp_path: Path) -> None:
    """The other takes over what it left: every run has one result, and both print the verdict of all."""
    lab = FleetLab(url, db)
    lab.enroll()
    slowly = f"{PRINTS} {{factor}} {{calls}}".replace(' -S -c "', ' -S -c "import time; time.sleep(0.1); ')
    builds = {"v1": slowly.replace("{factor}", "1.0"), "v2": slowly.replace("{factor}", "1.2")}
    lab.plan(benchmark(builds=builds, lifetimes=6, lease=2.0, folder=str(tmp_path)))
    killed, other = (_started(url, host, tmp_path / host) for host in ("lab-1", "lab-2"))
    with killed, other:

        def both() -> bool:
            return {each.host for each in lab.record().runs if each.state == "done"} == {"lab-1", "lab-2"}

        wait_until(both, "both have run", step_s=0.05)
        os.kill(killed.pid, signal.SIGKILL)
        out, err = other.communicate()
    record = lab.record()
    assert other.returncode == 1, err.decode()
    assert b'"specmine.bench/1"' in out
    assert record.complete and len({each.run.number for each in record.runs if each.result}) == 12
    assert Counter(each.host for each in record.runs)["lab-1"] >= 1
    document = bench_document(record)
    entry = document["comparisons"][0]["functions"][0]
    assert (entry["verdict"], sum(entry["lifetimes"])) == ("worse", 12)
    assert all("not heard of" in each["reason"] for each in document["failures"])


def test_a_host_logs_in_with_its_certificate(
    postgres: Postgres, url: str, db: Connection, tmp_path: Path, outcome: Callable[..., tuple[int, str, str]]
) -> None:
    """As its forwarder does. It may not read what other hosts measured, so it prints no verdict."""
    host = enrolled(postgres, url, tmp_path, "h1")
    lab = FleetLab(url, db)
    lab.plan(benchmark(lifetimes=2, folder=str(tmp_path)), hosts=1)
    fleet, config = host.config.fleet, tmp_path / "c.yaml"
    keys = {"connect": fleet.connect, "role": fleet.role, "certificate": fleet.certificate,
            "private_key": fleet.private_key, "authority": fleet.authority}  # fmt: skip
    config.write_text("fleet:\n" + "".join(f"  {key}: {json.dumps(value)}\n" for key, value in keys.items()))
    code, out, err = outcome("bench", "run", "b", "--config", config, "--folder", tmp_path / "work")
    assert (code, out) == (0, ""), err
    assert "bench status b" in err
    record = lab.record()
    assert record.complete and {each.host for each in record.runs} == {"h1"}
    assert record.hosts[0].facts["schema"] == "specmine.environment/1"


def test_a_store_that_another_process_writes_to(tmp_path: Path, outcome: Callable[..., tuple[int, str, str]]) -> None:
    """One line says so at the start."""
    lab = StoreLab(tmp_path / "b.db")
    lab.plan(benchmark())
    with open_store(lab.path):
        code, out, err = outcome("bench", "run", "b", "--store", lab.path, "--folder", tmp_path / "work")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "in use" in err


def test_programs_that_fail_are_tried_again(tmp_path: Path) -> None:
    """One that fails now and then is run in the end; one that always fails is given up with its reason."""
    flaky = tmp_path / "flaky.sh"
    flaky.write_text(f"[ -e {tmp_path}/tried ] || {{ touch {tmp_path}/tried; exit 7; }}\necho duration_ns; echo 5\n")
    lab = StoreLab(tmp_path / "b.db")
    builds = {"v1": f"/bin/sh {flaky}", "v2": "/bin/sh -c 'echo out of luck >&2; exit 1'"}
    lab.plan(benchmark(builds=builds, lifetimes=2, retries=1, calls=1, folder=str(tmp_path)))
    said: list[str] = []
    runner = _runner(lab, tmp_path / "work", said)
    runner.work()
    record = lab.record()
    assert (runner.done, runner.failed) == (2, 5)
    assert [each.run.build for each in record.runs if each.state == FAILED] == ["v2", "v2"]
    assert Counter(each.reason for each in record.failures) == {"exit status 7": 1, "exit status 1: out of luck": 4}
    assert any("out of luck" in line for line in said)


def test_a_runner_that_is_stopped_gives_its_run_back(tmp_path: Path) -> None:
    """At once, and the attempt does not count."""
    lab = StoreLab(tmp_path / "b.db")
    lab.plan(benchmark(builds={"v1": "sleep 99", "v2": "sleep 99"}, lease=2.0, folder=str(tmp_path)))
    runner = _runner(lab, tmp_path / "work")
    began: list[bool] = []

    def stopped() -> bool:
        began.append(any(began) or lab.record().runs[0].state == "running")
        return began[-1]

    runner.stopped = stopped
    runner.work()
    record = lab.record()
    assert record.runs[0].state == "waiting" and record.runs[0].attempts == 0
    assert [each.reason for each in record.failures] == ["its runner was stopped"]
