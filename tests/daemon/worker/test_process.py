"""The mining process: started on demand, its crash is one failed job, ended when idle."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from specmine.daemon.worker.jobs import Job, run_job
from specmine.daemon.worker.process import IDLE_NS, JOB_NS, Done, ProcessWorker
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from tests.support.planted import FAST, Way, path_of

BORDER = 700


def job() -> Job:
    """Return a job with two paths, one of them slow."""
    random = np.random.default_rng(5)
    observations = []
    for number in range(6):
        paths = tuple(
            PathHistogram(path=path_of(Way(callers=callers, weight=1.0, classes=(FAST,)), "f"), histogram=counts)
            for callers, counts in (
                ("main;quick", Histogram.from_durations(random.lognormal(np.log(2e4), 0.1, 400).astype(np.int64))),
                ("main;slow", Histogram.from_durations(random.lognormal(np.log(2e9), 0.1, 400).astype(np.int64))),
            )
        )
        observations.append(
            Observation(
                function="k", lifetime="l", kind=Kind.PATH, start_ns=number, end_ns=number + 1,
                histogram=paths[0].histogram + paths[1].histogram, calls=800, watched_ns=1, bias_ns=300.0, paths=paths,
            )
        )  # fmt: skip
    return Job(
        function="k", observations=tuple(observations), borders=(BORDER,), program_modules=(), mining=MiningSettings()
    )


@pytest.fixture
def worker() -> Iterator[ProcessWorker]:
    """Return a worker that is ended after the test."""
    made = ProcessWorker()
    yield made
    made.close()


def waited(worker: ProcessWorker, seconds: float = 60.0) -> list[Done]:
    """Collect until something is done."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done = worker.collect(time.monotonic_ns())
        if done:
            return done
        time.sleep(0.01)
    pytest.fail("the worker did not answer")


def test_a_job_comes_back_as_if_done_here(worker: ProcessWorker) -> None:
    """The process gives the same result as a call, for several jobs in their order, and never blocks the caller."""
    assert 0 < BORDER < BUCKETS
    worker.submit(7, job())
    worker.submit(8, job())
    assert worker.collect(0) == []  # not waited for
    assert waited(worker) == [(7, run_job(job()), "")]
    assert waited(worker) == [(8, run_job(job()), "")]
    assert {each.expression for each in run_job(job()).behaviours} in (
        {"main->quick", "not main->quick"},
        {"quick->f", "not quick->f"},
        {"slow->f", "not slow->f"},
    )


def test_a_crash_fails_one_job(worker: ProcessWorker) -> None:
    """A killed process fails the job it had; the next job starts a new one."""
    worker.submit(1, job())
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    number, result, failure = waited(worker)[0]
    assert (number, result, failure) == (1, None, "the mining process ended with status -9")
    worker.submit(2, job())
    assert waited(worker)[0][1] == run_job(job())


def test_a_stopped_process_is_killed(worker: ProcessWorker) -> None:
    """Its job fails, the next one goes to another process; so does the one after a job that takes too long."""
    worker.submit(1, job())
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)
    assert [each[2] for each in waited(worker)] == ["the mining process ended with status -9"]
    worker.submit(2, job())
    assert waited(worker)[0][2] == ""
    worker.submit(3, job())
    now_ns = time.monotonic_ns()
    worker.collect(now_ns)
    worker.collect(now_ns + JOB_NS - 1)
    late = worker.collect(now_ns + 2 * JOB_NS)
    assert [each[2] for each in late] == ["the mining process ended with status -9"]
    assert worker.restarts == 2


def test_an_idle_process_is_ended(worker: ProcessWorker) -> None:
    """After 30 s without a job the memory is given back."""
    worker.submit(1, job())
    waited(worker)
    assert worker.pid is not None
    now = time.monotonic_ns()
    worker.collect(now)
    worker.collect(now + IDLE_NS)
    assert worker.pid is None


def test_a_bad_job_is_an_error_not_a_crash(worker: ProcessWorker) -> None:
    """What goes wrong in a job comes back as one sentence, and the process lives on."""
    worker.submit(1, Job(function="k", observations=(), borders=(), program_modules=(), mining=MiningSettings()))
    number, result, failure = waited(worker)[0]
    assert (number, result) == (1, None) and "Error" in failure
    assert worker.pid is not None


@pytest.mark.parametrize("sent", [1.0, 0.5, 0.001, 0.0])
def test_a_worker_whose_daemon_was_killed_ends_quietly(sent: float) -> None:
    """Whether that was before, within or after the sending of a job."""
    data = pickle.dumps((1, job()))
    data = len(data).to_bytes(8, "little") + data
    command = [sys.executable, "-P", "-m", "specmine.daemon.worker.process"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    child.stdin.write(data[: round(sent * len(data))])
    child.stdin.close()
    with child.stderr:
        assert child.stderr.read() == b""
    assert child.wait() == 0


def test_no_interpreter_is_a_failed_job() -> None:
    """If the process cannot be started the job fails; the daemon does not."""
    worker = ProcessWorker("/nowhere/python")
    worker.submit(1, job())
    assert worker.collect(0) == [(1, None, "the mining process cannot be started")]


def test_the_daemons_core_stays_light() -> None:
    """Loop and controller pull in none of the libraries that only the worker needs."""
    program = (
        "import sys, specmine.daemon.loop, specmine.daemon.documents.specification, specmine.daemon.replay;"
        "print([n for n in ('scipy', 'sklearn', 'capstone', 'elftools', 'rich', 'click') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
