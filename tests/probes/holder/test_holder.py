"""The holder follows the kill switch by itself: every link goes, none is made, until the file is gone."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ECANCELED
from pathlib import Path

import pytest

from specmine.model.buckets import BUCKETS
from specmine.model.observation import Kind
from specmine.probes.holder.holder import SWITCH_S, Holder
from specmine.probes.kernel.links import LinkNews, Links
from specmine.probes.kernel.loader import load
from tests.support.patience import patient
from tests.support.product import stop

pytestmark = pytest.mark.kernel

LINKS, EACH = 100, 10


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of 1,000 functions that waits for its stdin to close."""
    folder = tmp_path_factory.mktemp("switch")
    functions = "".join(f"__attribute__((noinline)) int f{n}(int x) {{ return x * {n} + 1; }}\n" for n in range(1000))
    table = ", ".join(f"f{n}" for n in range(1000))
    main = f"int (*table[])(int) = {{ {table} }};\nint main(void) {{ char c; return read(0, &c, 1) > 0; }}\n"
    (folder / "many.c").write_text(f"#include <unistd.h>\n{functions}{main}")
    flags = ["-O1", "-fno-omit-frame-pointer", "-no-pie"]  # so that each begins with push
    subprocess.run(["cc", *flags, "-o", folder / "many", folder / "many.c"], check=True)
    return folder / "many"


def offsets(path: Path) -> list[int]:
    """Return the file offsets of the functions."""
    shown = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    return [int(at, 16) - 0x400000 for at in re.findall(r"^([0-9a-f]+) T f\d+$", shown, re.MULTILINE)]


@contextmanager
def linked(path: Path, switch: Path, cache: Path) -> Iterator[tuple[Links, list[int], int]]:
    """Give links to the program, not made yet, with a kill switch; also where its functions are in a running one."""
    loaded = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache, sampling=False)
    links = Links(loaded)
    child = subprocess.Popen([path], stdin=subprocess.PIPE)
    try:
        links.switch(str(switch))
        yield links, offsets(path), child.pid
    finally:
        links.shut()
        loaded.close()
        child.communicate(timeout=patient(60))


def probes(pid: int, places: list[int]) -> int:
    """Count the functions whose first byte is a breakpoint in a process."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        first, last = min(places), max(places)
        memory.seek(0x400000 + first)
        text = memory.read(last - first + 1)
    return sum(text[at - first] == 0xCC for at in places)


def wait_until_off(pid: int, places: list[int]) -> None:
    """Wait until none of the functions is probed."""
    limit = time.monotonic() + patient(60)
    while left := probes(pid, places):
        assert time.monotonic() < limit, f"{left} functions are still probed"
        time.sleep(0.002)


def gather(links: Links, done: int, limit_s: float = 60.0) -> list[LinkNews]:
    """Return what is told until so much of it has come."""
    told: list[LinkNews] = []
    end = time.monotonic() + patient(limit_s)
    while len(told) < done and time.monotonic() < end:
        told += links.news(0.1)
    return told


def test_the_switch_takes_a_hundred_links_off(program: Path, cache: Path, tmp_path: Path) -> None:
    """1,000 functions on 100 links: gone once the file is there; what is asked then is refused; all comes back."""
    switch = tmp_path / "off"
    with linked(program, switch, cache) as (links, places, pid):
        assert len(places) == LINKS * EACH
        file = os.open(program, os.O_RDONLY)
        for number in range(LINKS):
            links.attach(file, places[number::LINKS], list(range(EACH)), Kind.COUNT, pid)
        assert {each.what for each in gather(links, LINKS + 1)} == {"on", "made"}
        assert probes(pid, places) == LINKS * EACH
        switch.touch()
        wait_until_off(pid, places)
        told = [each.what for each in gather(links, LINKS + 1)]
        assert told.count("closed") == LINKS
        assert told[-1] == "off"
        links.attach(file, places[:1], [0], Kind.COUNT, pid)
        (refused,) = gather(links, 1)
        assert (refused.what, refused.errno) == ("failed", ECANCELED)
        switch.unlink()
        assert [each.what for each in gather(links, 1)] == ["on"]
        links.attach(file, places[:1], [0], Kind.COUNT, pid)
        assert [each.what for each in gather(links, 1)] == ["made"]
        assert probes(pid, places) == 1
        os.close(file)


def test_a_killed_holder_takes_a_hundred_links_along(program: Path, cache: Path, tmp_path: Path) -> None:
    """SIGKILL of the process that holds them: 1,000 functions on 100 links are gone."""
    with linked(program, tmp_path / "off", cache) as (links, places, pid):
        with program.open("rb") as file:
            for number in range(LINKS):
                links.attach(file.fileno(), places[number::LINKS], list(range(EACH)), Kind.COUNT, pid)
        assert {each.what for each in gather(links, LINKS + 1)} == {"on", "made"}
        assert probes(pid, places) == LINKS * EACH
        os.kill(links.pid, signal.SIGKILL)
        wait_until_off(pid, places)
        assert [each.what for each in gather(links, 1)] == ["dead"]


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_holder_that_does_not_answer_is_replaced(
    program: Path, cache: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Stopped or killed, it holds nothing any more; another makes links again, under the same kill switch."""
    switch = tmp_path / "off"
    with linked(program, switch, cache) as (links, places, pid):
        with program.open("rb") as file:
            links.attach(file.fileno(), places[:1], [0], Kind.COUNT, pid)
            assert {each.what for each in gather(links, 2)} == {"on", "made"}
            os.kill(links.pid, number)
            wait_until_off(pid, places)
            assert [each.what for each in gather(links, 1)] == ["dead"]
            assert links.why_dead
            links.attach(file.fileno(), places[:1], [0], Kind.COUNT, pid)
            links.restart()
            links.attach(file.fileno(), places[1:2], [0], Kind.COUNT, pid)
            assert {each.what for each in gather(links, 2)} == {"on", "made"}
        assert probes(pid, places) == 1
        switch.touch()
        wait_until_off(pid, places)


def test_the_holder_keeps_what_links_take(program: Path, cache: Path, tmp_path: Path) -> None:
    """It makes links with two capabilities and no others."""
    with linked(program, tmp_path / "off", cache) as (links, places, pid), program.open("rb") as file:
        links.attach(file.fileno(), places[:1], [0], Kind.COUNT, pid)
        assert {each.what for each in gather(links, 2)} == {"on", "made"}
        if links.mode == "perf":
            pytest.skip("uprobes on perf events take one more")
        status = dict(re.findall(r"^(Cap\w+):\s+(\w+)$", Path(f"/proc/{links.pid}/status").read_text(), re.MULTILINE))
        wanted = 1 << 38 | 1 << 39
        assert {name: int(bits, 16) for name, bits in status.items()} == {
            "CapInh": 0, "CapPrm": wanted, "CapEff": wanted, "CapBnd": wanted, "CapAmb": 0
        }  # fmt: skip


def test_a_switch_that_is_on_at_the_start_lets_nothing_on(program: Path, cache: Path, tmp_path: Path) -> None:
    """The file is looked for before the first link is made."""
    switch = tmp_path / "off"
    switch.touch()
    with linked(program, switch, cache) as (links, places, pid):
        with program.open("rb") as file:
            links.attach(file.fileno(), places[:1], [0], Kind.COUNT, pid)
        assert sorted(each.what for each in gather(links, 2)) == ["failed", "off"]
        assert probes(pid, places) == 0


def test_a_stopped_daemon_is_late_before_its_second_is_over() -> None:
    """A heartbeat that is a little old is late if the daemon is stopped, and only then."""
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen(["sleep", "60"]) as daemon:
        holder = Holder(ours, theirs)
        holder.daemon = daemon.pid
        holder.last_beat_s = time.monotonic() - SWITCH_S
        assert not holder.is_late()
        stop(daemon)
        holder.last_beat_s = time.monotonic() - SWITCH_S
        assert holder.is_late()
        holder.last_beat_s = time.monotonic() + 60
        assert not holder.is_late()
        daemon.kill()
