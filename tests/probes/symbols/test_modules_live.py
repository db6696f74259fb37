"""Paths where a path says little about a file: containers, deleted and replaced files, one library in two versions."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from specmine.model.batch import Unwatch, Watch
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.probes.process.mappings import executable_mappings
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from specmine.probes.timing.address_spaces import FORKED_NS
from tests.support.binary_samples import compiled
from tests.support.patience import patient
from tests.support.source_driver import Driver, running
from tests.support.yielding import yielding

pytestmark = pytest.mark.kernel

Programs = Callable[..., Path]
TAILS = {("b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")}
CONTAINER = """
set -e
mount -t tmpfs tmpfs "$1/layers"
mkdir "$1/layers/upper" "$1/layers/work"
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/layers/upper,workdir=$1/layers/work" "$1/merged"
exec chroot "$1/merged" /program 600
"""

MOVED = """
volatile int sink;
__attribute__((noinline)) int work(int n) { for (int i = 0; i < 300; i++) sink += n; return n; }
"""
# opens its library anew elsewhere when it is told to, leaves other bytes where it was, and forks
RELOADING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
static int (*work)(int);
static void *opened(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	if (!library || !(work = (int (*)(int))dlsym(library, "work"))) abort();
	return library;
}
static void calls(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	while (poll(&in, 1, 1) == 0)
		for (int i = 0; i < 20; i++) work(i);
}
int main(int argc, char **argv)
{
	void *library = opened(argv[1]);
	calls();
	uintptr_t page = (uintptr_t)work & ~4095ul;
	if (dlclose(library)) abort();
	int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	void *other = mmap((void *)page, 4096, PROT_READ | PROT_WRITE, how, -1, 0);
	if (other == MAP_FAILED) abort();
	memset(other, 0xaa, 4096);
	opened(argv[1]);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int ends[2];
		if (pipe(ends) || dup2(ends[0], 0) < 0) abort();
		printf("%d\n", (int)getpid());
		fflush(stdout);
		calls();
	}
	pause();
}
"""


@pytest.fixture
def started() -> Iterator[Callable[..., int]]:
    """Return a function that starts a program and returns its pid; all end with the test."""
    with ExitStack() as stack:

        def start(*argv: object, **more: object) -> int:
            with yielding():
                child = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL, **more)  # type: ignore[call-overload]
            stack.callback(child.wait)
            stack.callback(child.kill)
            return int(child.pid)

        yield start


def observed(cache: Path, *pids: int) -> dict[Function, set[tuple[str, ...]]]:
    """Time ``z`` in some processes; return the ends of the complete paths of each build's z, nearly all complete."""
    source = BpfSource(
        [Selection(pid=pid) for pid in pids], SourceSettings(watch=("z",), cache=str(cache), sampling=False)
    )
    functions: dict[str, Function] = {}
    tails: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    timed: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    try:
        source.start()
        end = time.monotonic() + patient(120)
        while time.monotonic() < end and (len(tails) < len(pids) or any(t < TAILS for t in tails.values())):
            batch = source.poll(time.monotonic_ns())
            for function in batch.functions:
                if function.name == "z" and function.key not in functions:
                    functions[function.key] = function
                    source.apply(Watch(function=function.key, kind=Kind.PATH, window_calls=300, minimum_calls=20))
            assert not batch.refusals, batch.refusals
            for each in batch.observations:
                for path in each.paths:
                    count = path.histogram.total
                    timed[each.function][path.path.complete] += count
                    if path.path.complete:
                        tails[each.function].add(tuple(f.name for f in path.path.frames[-3:]))
            time.sleep(0.02)
    finally:
        source.close()
    for broken, whole in timed.values():
        assert whole >= 0.99 * (whole + broken)
    return {functions[key]: found for key, found in tails.items()}


def libraries(program: Path) -> list[Path]:
    """Return the libraries that a program needs, the dynamic linker with them."""
    shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [Path(word) for line in shown.splitlines() for word in line.split() if word.startswith("/")]


def test_a_container(program: Programs, started: Callable[..., int], cache: Path, tmp_path: Path) -> None:
    """A program on overlayfs in a root and mount namespace of its own, whose files exist under no path of ours."""
    path = program("paths", "stock")
    lower = tmp_path / "lower"
    for file in libraries(path):
        target = lower / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    shutil.copy(path, lower / "program")
    for name in ("layers", "merged"):
        (tmp_path / name).mkdir()
    pid = started("unshare", "--mount", "--propagation", "private", "sh", "-c", CONTAINER, "sh", tmp_path)
    end = time.monotonic() + patient(60)
    while Path(f"/proc/{pid}/comm").read_text() != "program\n":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not (tmp_path / "merged" / "program").exists()
    ((function, tails),) = observed(cache, pid).items()
    assert tails == TAILS
    assert (function.module, function.in_program) == ("program", True)


def test_a_deleted_program(program: Programs, started: Callable[..., int], cache: Path, tmp_path: Path) -> None:
    """The file that runs is read and probed after its name is gone."""
    path = tmp_path / "short-lived"
    shutil.copy(program("paths", "stock"), path)
    pid = started(path, 600)
    time.sleep(0.2)
    path.unlink()
    ((function, tails),) = observed(cache, pid).items()
    assert tails == TAILS
    assert function.module == "short-lived"


def test_a_replaced_program(program: Programs, started: Callable[..., int], cache: Path, tmp_path: Path) -> None:
    """After an upgrade in place the old process has the old build's names, the new process the new one's."""
    path = tmp_path / "upgraded"
    shutil.copy(program("paths", "stock"), path)
    old = started(path, 600)
    time.sleep(0.2)
    shutil.copy(program("paths", "no-pie"), tmp_path / "next")
    (tmp_path / "next").rename(path)
    new = started(path, 600)
    found = observed(cache, old, new)
    assert [tails for tails in found.values()] == [TAILS, TAILS]
    assert len({function.build_id for function in found}) == 2
    assert {function.module for function in found} == {"upgraded"}


LIBRARY = """
#include <time.h>
%s
static void spin(long ns) {
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do clock_gettime(CLOCK_MONOTONIC, &b); while ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec < ns);
}
__attribute__((noinline)) void z(int n) { spin(20000 + n); __asm__ volatile(""); }
__attribute__((noinline)) void c(int n) { z(n); __asm__ volatile(""); }
__attribute__((noinline)) void b(int n) { if (n & 1) c(n); else z(n); __asm__ volatile(""); }
void a(int n) { if (n & 2) b(n); else c(n); __asm__ volatile(""); }
"""
USER = """
#include <unistd.h>
void a(int);
int main(void) { for (unsigned n = 0;; n++) { a(n & 3); usleep(200); } }
"""


def test_one_library_in_two_versions(started: Callable[..., int], cache: Path, tmp_path: Path) -> None:
    """Two processes map libraries of one name and different code: each path has the names of its own version."""
    pids = []
    for version, extra in (
        ("old", ""),
        ("new", "int more(int n) { return n * 3; } int other(int n) { return n + 7; }"),
    ):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "l.c").write_text(LIBRARY % extra)
        (folder / "m.c").write_text(USER)
        library = folder / "libchain.so"
        make = ["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id"]
        subprocess.run([*make, "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", library, folder / "l.c"], check=True)
        subprocess.run([*make, "-o", folder / "user", folder / "m.c", library], check=True)
        pids.append(started(folder / "user"))
    found = observed(cache, *pids)
    assert [tails for tails in found.values()] == [TAILS, TAILS]
    assert len({function.build_id for function in found}) == 2
    assert {function.module for function in found} == {"libchain.so"}
    assert len({function.offset for function in found}) == 2


def test_a_file_that_was_closed_is_timed_again(program: Programs, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process maps a program for a while, its file is closed; when it runs again, its calls are timed as before."""
    monkeypatch.setattr("specmine.probes.symbols.modules.MOST_FILES", 0)
    monkeypatch.setattr("specmine.probes.symbols.modules.REST_NS", 0)
    path = program("paths")
    settings = SourceSettings(watch=("z",), sampling=False, cache=str(cache))
    source = BpfSource([Selection(exe=str(path), may_come=True)], settings)
    source.start()
    try:
        driver = Driver(source)

        def timed() -> str:
            with running(path, 600):
                seen, key = len(driver.observations), driver.watch("z", Kind.TIME, window_calls=200)
                driver.poll(lambda: len(driver.observations) > seen)
            source.apply(Unwatch(function=key))
            driver.poll(lambda: len(source.parts.modules.by_file) <= 1)  # the kernel's own
            return key

        key = timed()
        assert key not in source.parts.symbolizer.functions
        assert timed() == key
    finally:
        source.close()


def test_children_of_a_server_that_opened_its_libraries_anew(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their library is found where it is now, though they have as much code as before, and is timed there."""
    monkeypatch.setattr("specmine.probes.timing.address_spaces.REMAP_NS", 3600 * 10**9)
    library = compiled(tmp_path, "libwork.so", MOVED, "-O1", "-shared", "-fPIC")
    path = compiled(tmp_path, "reloading", RELOADING, "-O1")
    server = subprocess.Popen([path, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    source = BpfSource([Selection(pid=server.pid)], SourceSettings(watch=("work",), sampling=False, cache=str(cache)))
    try:
        source.start()
        driver = Driver(source)
        driver.watch("work", Kind.TIME, window_calls=100, window_ns=2 * 10**8)
        driver.poll(lambda: driver.observations)
        began = time.monotonic()
        driver.poll(lambda: time.monotonic() - began > FORKED_NS / 1e9)  # what it maps was read so long ago
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("anew\n")
        server.stdin.flush()
        child = int(server.stdout.readline())

        def place() -> list[int]:
            member = source.parts.programs.members.get(child)
            layout = source.parts.modules.layouts.get(member.layout) if member is not None else None
            return [each.start for each in layout.mappings if each.path == str(library)] if layout is not None else []

        real = [each.start for each in executable_mappings(child) if each.path == str(library)]
        assert len(real) == 1
        driver.poll(lambda: place() == real)
        seen = len(driver.observations)
        driver.poll(lambda: len(driver.observations) > seen + 2)
        assert driver.refusals == []
    finally:
        source.close()
        server.kill()
        server.communicate()
