"""The gate on real processes: who must not be probed is not, and goes on as if nobody had looked."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specmine.model.batch import Watch
from specmine.model.observation import Kind
from specmine.probes.timing.function.timed_function import TimedFunction
from tests.support.binary_samples import compiled
from tests.support.patience import patient
from tests.support.source_driver import Driver, driven, running

pytestmark = pytest.mark.kernel

Programs = Callable[..., Path]
SEIZE, INTERRUPT, ATTACH, DETACH = 0x4206, 0x4207, 16, 17

# work() in a loop until its stdin ends; what PREPARE and CHECK are tells the programs apart
SOURCE = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) int work(int n) { for (int i = 0; i < 500; i++) sink += n; return n; }
__attribute__((noinline)) int caller(int n) { int r = work(n); __asm__ volatile("" : "+r"(r)); return r + 1; }
PREPARE
int main(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	long calls = 0;
	prepare();
	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, 1) == 0)
		for (int i = 0; i < 20; i++, calls++) {
			caller(i);
			check();
		}
	printf("%ld\n", calls);
	return 0;
}
"""
PLAIN = "static void prepare(void) {} static void check(void) {}"
SELF_CHECKING = r"""
unsigned long BORINGSSL_bcm_text_hash;
static unsigned long sum(void)
{
	unsigned long s = 0;
	for (unsigned char *p = (unsigned char *)work; p < (unsigned char *)work + 64; p++) s = s * 31 + *p;
	return s;
}
static void prepare(void) { BORINGSSL_bcm_text_hash = sum(); }
static void check(void) { if (sum() != BORINGSSL_bcm_text_hash) abort(); }
"""
WRITABLE = r"""
static void prepare(void)
{
	uintptr_t page = (uintptr_t)work & ~4095ul;
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) abort();
}
static void check(void) {}
"""
FILTERED = r"""
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static void prepare(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_poll), ALLOW(SYS_write), ALLOW(SYS_read), ALLOW(SYS_exit_group), ALLOW(SYS_newfstatat),
		ALLOW(SYS_brk), ALLOW(SYS_getrandom), ALLOW(SYS_mmap), ALLOW(SYS_lseek),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog p = { .len = sizeof f / sizeof *f, .filter = f };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) abort();
}
static void check(void) {}
"""
SWITCHING = r"""
void onto(void *stack, void (*f)(int));
__asm__(".globl onto\n.type onto,@function\nonto:\n.cfi_startproc\npush %rbx\nmov %rsp, %rbx\nmov %rdi, %rsp\n"
	"call *%rsi\nmov %rbx, %rsp\npop %rbx\nret\n.cfi_endproc\n.size onto,.-onto\n");
static char stack[65536] __attribute__((aligned(16)));
static void there(int n) { caller(n); }
static void prepare(void) {}
static void check(void) { onto(stack + sizeof stack, there); }
"""
PATCHED = r"""
static void prepare(void)
{
	uintptr_t page = (uintptr_t)work & ~4095ul;
	unsigned char *p = (unsigned char *)work;
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) abort();
	p[0] = 0x8d, p[1] = 0x47, p[2] = 0x05, p[3] = 0xc3; /* lea 5(%rdi), %eax; ret */
	if (mprotect((void *)page, 8192, PROT_READ | PROT_EXEC)) abort();
}
static void check(void) { if (work(3) != 8) abort(); }
"""
FLAGS = ("-O1", "-fno-omit-frame-pointer", "-Wno-unused-function")


@contextmanager
def target(folder: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Compile and start a target, which has prepared itself; it has ended at the end."""
    path = compiled(folder, "target", SOURCE.replace("PREPARE", how), *FLAGS)
    child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def finish(child: subprocess.Popen[str]) -> int:
    """End it and return how often it called; it must end as it does by itself."""
    out, _ = child.communicate("\n", timeout=patient(60))
    assert child.returncode == 0
    return int(out.split()[-1])


@pytest.mark.parametrize(
    ("how", "code"),
    [(SELF_CHECKING, "self-checking"), (WRITABLE, "writable-text"), (PATCHED, "changed-text")],
    ids=["self-checking", "writable", "patched"],
)
def test_code_that_must_not_change_is_not_probed(tmp_path: Path, how: str, code: str) -> None:
    """No probe of any kind goes in: the program, which checks itself or may write there, ends as ever."""
    with target(tmp_path, how) as child:
        with driven(child.pid, "work") as driver:
            driver.watch("work", Kind.COUNT)
            driver.poll(lambda: driver.refusals)
            assert [(each.kind, each.reason.code) for each in driver.refusals] == [(Kind.COUNT, code)]
            assert driver.refusals[0].reason.remedy
        assert finish(child) > 0


@contextmanager
def timed(folder: Path, how: str) -> Iterator[tuple[subprocess.Popen[str], Driver, TimedFunction]]:
    """Have ``work`` timed in a target, which ends well afterwards."""
    with target(folder, how) as child:
        with driven(child.pid, "work") as driver:
            key = driver.watch("work", Kind.TIME, window_calls=200)
            driver.poll(lambda: driver.observations)
            yield child, driver, driver.source.parts.registry.by_function[key]
        assert finish(child) > 0


@pytest.mark.parametrize("how", [FILTERED, SWITCHING], ids=["seccomp", "switches"])
def test_return_addresses_stay_where_they_must(tmp_path: Path, how: str) -> None:
    """A program under a strict filter, or that switches stacks by its own assembler, is timed at return sites."""
    with timed(tmp_path, how) as (_, driver, w):
        driver.poll(lambda: len(driver.observations) >= 2)
        assert w.by_site
        assert not driver.refusals


def test_a_plain_program_is_timed_by_sessions(tmp_path: Path) -> None:
    """Nothing speaks against replacing return addresses in the same program without any of that."""
    with timed(tmp_path, PLAIN) as (_, driver, w):
        if driver.source.parts.loaded.mode != "session":
            pytest.skip("this kernel has no session links")
        assert not w.by_site


def test_a_debugger_ends_watching_until_it_is_gone(tmp_path: Path) -> None:
    """When it comes the probes go; the function is refused while it is there, and watched again after."""
    libc = ctypes.CDLL(None, use_errno=True)
    with timed(tmp_path, PLAIN) as (child, driver, w):
        key = w.function.key
        assert libc.ptrace(SEIZE, child.pid, None, None) == 0
        driver.poll(lambda: not w.attachment.links)
        driver.poll(lambda: driver.refusals)
        assert (driver.refusals[0].kind, driver.refusals[0].reason.code) == (Kind.COUNT, "debugger")
        assert str(os.getpid()) in driver.refusals[0].reason.text
        before = len(driver.observations)
        driver.source.apply(Watch(function=key, kind=Kind.TIME))
        driver.poll(lambda: len(driver.refusals) > 1)
        assert len(driver.observations) == before
        assert libc.ptrace(INTERRUPT, child.pid, None, None) == 0
        os.waitpid(child.pid, os.WUNTRACED)
        assert libc.ptrace(DETACH, child.pid, None, None) == 0

        def watched_again() -> bool:
            if key not in driver.source.parts.registry.by_function:
                driver.watch("work", Kind.TIME, window_calls=200)
            return len(driver.observations) > before

        driver.poll(watched_again)


def test_a_debugger_that_stops_the_program_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stops a program to attach to it leads to a look at it; no other look is due in this test."""
    monkeypatch.setattr("specmine.probes.safety.gate.FRESH_NS", 10**15)
    monkeypatch.setattr("specmine.probes.process.status.FRESH_NS", 10**15)
    libc = ctypes.CDLL(None, use_errno=True)
    with timed(tmp_path, PLAIN) as (child, driver, w):
        os.kill(child.pid, signal.SIGSTOP)
        os.kill(child.pid, signal.SIGCONT)
        before = len(driver.observations)
        driver.poll(lambda: len(driver.observations) > before)  # nobody traces it
        assert libc.ptrace(ATTACH, child.pid, None, None) == 0
        os.waitpid(child.pid, os.WUNTRACED)
        driver.poll(lambda: not w.attachment.links and not driver.source.parts.registry._links.due_ns())
        assert libc.ptrace(DETACH, child.pid, None, None) == 0


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare (util-linux) is not there")
def test_a_container_is_watched_from_the_host(program: Programs) -> None:
    """A process in a pid namespace of its own is timed like any other, by the pid that the host sees."""
    with running("unshare", "--pid", "--fork", "--kill-child", program("paths"), 600) as shell:
        end = time.monotonic() + patient(60)
        while not (inner := Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()):
            assert time.monotonic() < end
            time.sleep(0.01)
        pid = int(inner[0])
        while "paths" not in os.readlink(f"/proc/{pid}/exe"):
            time.sleep(0.01)
        assert os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid")
        with driven(pid, "z") as driver:
            driver.watch("z", Kind.PATH)
            driver.poll(lambda: len(driver.observations) >= 2)
            whole = sum(p.histogram.total for p in driver.observations[-1].paths if p.path.complete)
            assert whole >= 0.99 * driver.observations[-1].timed
        os.kill(pid, signal.SIGKILL)
