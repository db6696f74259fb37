"""What is known of a thread is its own: whoever has its number, or its place, later or at the same time."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from specmine.probes.kernel.maps import HashMap, bpf
from specmine.probes.kernel.structs import GENERATION_SHIFT
from tests.support.bare_kernel import SOURCE, TRACEPOINT_OPEN, Bare, Target
from tests.support.paths import ROOT
from tests.support.patience import patient

pytestmark = pytest.mark.kernel
SLOT, COOKIE = 7, 7 | 3 << GENERATION_SHIFT
THREAD_CELLS = int(re.findall(r"#define THREAD_CELLS (\d+)", (ROOT / "probes" / "bpf" / "layout.h").read_text())[0])
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
THREAD = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__asm__(".text\n.globl z\n.type z, @function\nz: push %rbp\nmov %rsp, %rbp\npop %rbp\nret\n");
void z(void);
static void *begin(void *nothing)
{
	printf("%d\n", gettid());
	fflush(stdout);
	getchar();
	z();
	puts("called");
	fflush(stdout);
	getchar();
	execl("/bin/cat", "cat", NULL);
	return nothing;
}
int main(void)
{
	pthread_t one;

	setvbuf(stdin, NULL, _IONBF, 0);
	pthread_create(&one, NULL, begin, NULL);
	pause();
}
"""


@pytest.fixture(scope="module")
def bare(cache: Path) -> Iterator[Bare]:
    """Programs and maps for all tests here."""
    one = Bare(cache)
    yield one
    one.loaded.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that calls z when it is told."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "two.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", folder / "two", folder / "two.c"], check=True)
    return folder / "two"


def owners(bare: Bare) -> dict[int, int]:
    """Return who has which place."""
    keys, values = HashMap(bare.loaded.maps["cell_owners"], "<u4", "<u4").entries()
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


@contextmanager
def ends_seen(bare: Bare, *which: str) -> Iterator[None]:
    """Have the programs on that see threads end or execute."""
    fds = []
    try:
        for what in which:
            name, program = (
                ctypes.create_string_buffer(f"sched_process_{what}".encode()),
                bare.loaded.programs[f"on_{what}"],
            )
            fds.append(bpf(TRACEPOINT_OPEN, struct.pack("<QI4xQ", ctypes.addressof(name), program, 0)))
        yield
    finally:
        for fd in fds:
            os.close(fd)


def with_number(program: Path, number: int) -> Target:
    """Start the program as the process of this number; skips the test if others are always faster."""
    for _ in range(50):
        try:
            LAST_PID.write_text(str(number - 1))
        except OSError as error:
            pytest.skip(f"numbers of processes cannot be chosen here: {error.strerror}")
        one = Target(program)
        if one.pid == number:
            return one
        one.end()
    pytest.skip("the number is not to be had")


def timed(bare: Bare, target: Target, calls: int) -> int:
    """Have z called and return how many calls were timed; all are counted."""
    before = bare.counted(COOKIE)
    target.call("a" * calls)
    after = bare.counted(COOKIE)
    assert after["calls"] - before["calls"] == calls and after["lost"] == before["lost"]
    return after["timed"] - before["timed"]


def test_two_threads_of_one_place_are_timed_each_by_itself(bare: Bare, program: Path) -> None:
    """The second one's number differs by the number of places: it finds its place taken, and is kept elsewhere."""
    with Target(program) as first, with_number(program, first.pid + THREAD_CELLS) as second:
        bare.slots[SLOT]["generation"] = 3
        with bare.linked(program, {first.offsets["z"]: "call_time_session"}, COOKIE):
            for one in (first, second):
                bare.watch(one.pid)
            assert [timed(bare, one, 5) for one in (first, second, first, second)] == [5, 5, 5, 5]
            assert owners(bare)[first.pid % THREAD_CELLS] == first.pid
        first.end()
        second.end()


@pytest.mark.parametrize("seen", [True, False])
def test_nothing_is_left_to_the_next_thread_of_a_number(bare: Bare, program: Path, seen: bool) -> None:
    """A call that was open when a thread ended makes no recursion of the next one's, nor if its end went unseen."""
    bare.slots[SLOT]["generation"] = 3
    with ExitStack() as stack:
        first = stack.enter_context(Target(program))
        if seen:
            stack.enter_context(ends_seen(bare, "exit"))
        stack.enter_context(bare.linked(program, {first.offsets["leaper"]: "call_time_session"}, COOKIE))
        bare.watch(first.pid)
        begun = bare.counted(COOKIE)
        with suppress(AssertionError):
            first.execute(Path("/bin/true"))
        first.end()
        assert bare.counted(COOKIE)["calls"] == begun["calls"] + 1
        assert (first.pid % THREAD_CELLS in owners(bare)) is not seen
        second = stack.enter_context(with_number(program, first.pid))
        second.execute(program)
        second.end()
        after = bare.counted(COOKIE)
        assert (after["calls"], after["inner"]) == (begun["calls"] + 2, begun["inner"])


def test_a_thread_that_executes_gives_back_its_own_place(bare: Bare, tmp_path: Path) -> None:
    """It goes on under the number of its process's first thread."""
    (tmp_path / "leaps.c").write_text(THREAD)
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "leaps", tmp_path / "leaps.c", "-lpthread"], check=True)
    told = subprocess.run(["nm", tmp_path / "leaps"], check=True, capture_output=True, text=True).stdout
    z = next(int(line.split()[0], 16) for line in told.splitlines() if line.endswith(" z"))
    child = subprocess.Popen([tmp_path / "leaps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert child.stdin is not None and child.stdout is not None
    number = int(child.stdout.readline())
    bare.slots[SLOT]["generation"] = 3
    with ends_seen(bare, "exec"), bare.linked(tmp_path / "leaps", {z: "call_count"}, COOKIE):
        bare.watch(child.pid)
        child.stdin.write("a")
        child.stdin.flush()
        assert child.stdout.readline() == "called\n"
        assert owners(bare)[number % THREAD_CELLS] == number
        child.stdin.write("a\n")
        child.stdin.flush()
        assert child.stdout.readline()  # said by the new image
        assert number % THREAD_CELLS not in owners(bare)
    child.communicate(timeout=patient(60))
