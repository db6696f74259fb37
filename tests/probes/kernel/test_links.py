"""Every kind of link times calls on this kernel, and no way of ending the daemon leaves a probe behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specmine.model.buckets import BUCKETS
from specmine.model.observation import Kind
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import LINK_KINDS, load
from specmine.probes.kernel.maps import map_array
from specmine.probes.kernel.structs import COUNTERS, SLOT
from tests.support.kernel_target import Target, compile_target, start_target
from tests.support.paths import ROOT
from tests.support.patience import patient
from tests.support.source_driver import not_applicable

pytestmark = pytest.mark.kernel

HOLDING = """
import os, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from specmine.model.buckets import BUCKETS
from specmine.model.observation import Kind
from specmine.probes.kernel.maps import map_array
from specmine.probes.kernel.structs import SLOT
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import load
how = {"memory_bytes": 16 << 20, "buckets": BUCKETS, "cache": Path(sys.argv[5]), "sampling": False}
loaded = load(interpreter="/usr/bin/python3", **how)
map_array(loaded.maps["slots"], 256, SLOT, writable=True)["limit"][0] = 1 << 62
links = Links(loaded)
file = os.open(sys.argv[1], os.O_RDONLY)
links.attach(file, [int(sys.argv[2])], [0], Kind.TIME, int(sys.argv[3]))
print([n.what for n in links.news(60)], flush=True)
while True:
    links.news(0.05)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled target."""
    return compile_target(tmp_path_factory.mktemp("target"))


@pytest.fixture
def target(program: Path) -> Iterator[Target]:
    """A running target."""
    running = start_target(program)
    yield running
    running.process.kill()
    running.process.communicate()


def wait_until(done: Callable[[], object], limit_s: float = 60.0) -> None:
    """Wait until ``done()`` is true; fail after the limit."""
    limit = time.monotonic() + patient(limit_s)
    while not done():
        assert time.monotonic() < limit, f"not within {limit_s} s"
        time.sleep(0.002)


@pytest.mark.every_kernel
@pytest.mark.parametrize("kind", LINK_KINDS)
def test_each_kind_of_link_times_every_call(kind: str, target: Target, cache: Path) -> None:
    """All calls made while the link is on are counted and timed, none after it is off."""
    if why := not_applicable((kind,)):
        pytest.skip(why)
    loaded = load(
        interpreter="/usr/bin/python3",
        memory_bytes=16 << 20,
        buckets=BUCKETS,
        modes=(kind,),
        cache=cache,
        sampling=False,
    )
    counters = map_array(loaded.maps["counters"], 256, COUNTERS)
    map_array(loaded.maps["slots"], 256, SLOT, writable=True)["limit"][3] = 1 << 62
    histogram = map_array(loaded.maps["histogram"], loaded.entries["histogram"], "<u8").reshape(256, BUCKETS)
    links = Links(loaded)
    try:
        file = os.open(target.path, os.O_RDONLY)
        number = links.attach(file, [target.offset], [3], Kind.TIME, target.process.pid)
        os.close(file)
        assert [n.what for n in links.news(patient(60))] == ["made"]
        assert target.first_byte() == 0xCC
        wait_until(lambda: counters[3]["timed"] > 2000)
        links.close(number)
        assert [n.what for n in links.news(patient(60))] == ["closed"]
        assert target.first_byte() != 0xCC
    finally:
        links.shut()
        loaded.close()
    calls = target.finish()
    counted = counters[3]
    assert counted["calls"] - counted["timed"] in (0, 1)  # one may have been open at the end
    assert histogram[3].sum() == counted["timed"]
    assert counted["timed"] <= calls
    assert counted["lost"] == counted["inner"] == counted["bystander_hits"] == 0


def test_companions_end_with_the_bucket_of_a_link(target: Target, cache: Path) -> None:
    """Probes that are on for the sake of others are taken off with these, before the daemon learns of it."""
    if why := not_applicable(LINK_KINDS[:2]):
        pytest.skip(why)
    loaded = load(
        interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache, sampling=False
    )  # fmt: skip
    counters = map_array(loaded.maps["counters"], 256, COUNTERS)
    limits = map_array(loaded.maps["slots"], 256, SLOT, writable=True)["limit"]
    limits[3], limits[4] = 200, 1 << 62
    links = Links(loaded)
    try:
        with target.path.open("rb") as file:
            for_it = links.attach(file.fileno(), [target.offset], [4], Kind.COUNT, target.process.pid)
            number = links.attach(
                file.fileno(), [target.offset], [3], Kind.TIME, target.process.pid, companions=[for_it]
            )  # fmt: skip
        told: list[tuple[int, str]] = []
        limit = time.monotonic() + patient(60)
        while {(for_it, "closed"), (number, "closed")} - set(told):
            assert time.monotonic() < limit, told
            told += [(each.id, each.what) for each in links.news(0.1)]
        assert told.index((number, "alarm")) < told.index((for_it, "ended"))
        assert target.first_byte() != 0xCC
        assert 0 < counters[4]["calls"] < 10_000
    finally:
        links.shut()
        loaded.close()


def holding(target: Target, cache: Path) -> subprocess.Popen[str]:
    """Start a process that watches z and does nothing else."""
    source = str(ROOT / "src")
    where = (target.path, target.offset, target.process.pid, source, cache)
    argv = [sys.executable, "-c", HOLDING, *map(str, where)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "['made']\n"
    assert target.first_byte() == 0xCC
    return child


def test_a_killed_daemon_leaves_no_probe(target: Target, cache: Path) -> None:
    """After SIGKILL the breakpoint goes from the program's text, and the program runs on."""
    child = holding(target, cache)
    child.kill()
    wait_until(lambda: target.first_byte() != 0xCC)
    child.communicate()
    assert target.finish() > 0


def test_a_stopped_daemon_frees_the_program(target: Target, cache: Path) -> None:
    """After SIGSTOP the breakpoint goes; the holder does not wait for the daemon."""
    child = holding(target, cache)
    child.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: target.first_byte() != 0xCC)
    finally:
        child.kill()
        child.communicate()
    assert target.finish() > 0
