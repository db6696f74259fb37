"""The load task in Python, for hosts without a compiler: the same arguments and answers as ``native/worker.c``.

A script of its own (``python -I -S fallback.py KEY=VALUE...``), standard library only. In the sampling loops it makes
no system call either: ``time.monotonic_ns`` reads the vDSO clock.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import random
import resource
import signal
import statistics
import struct
import sys
import time
from array import array
from collections.abc import Callable

PR_SET_PDEATHSIG, PR_SET_TIMERSLACK, SYS_SCHED_SETATTR = 1, 29, 314
BLOCK, FILE_BLOCKS, SORTED = 1 << 20, 32, 256
now = time.monotonic_ns
libc = ctypes.CDLL(None, use_errno=True)

DEFAULTS: dict[str, int | str] = {
    "sensor": "none", "group": "", "folder": "/tmp", "cpu": -1, "nice": 0, "policy": 0, "window": 8, "final": 0,
    "forks": 0, "seconds_ns": 1_000_000_000, "delay_ns": 0, "slice_ns": 0, "slack_ns": 0, "threshold_ns": 300_000,
    "iterations": 0, "capacity": 65536, "fork_units": 0, "changed": 0, "partner": -1, "seed": 1, "go": 0,
    "page": 0, "ready": 0,
}  # fmt: skip


def integer(units: int) -> None:
    a, b = 0, 1
    for _ in range(units):
        a, b = b, (a + b) & 0xFFFFFFFF


def floating(units: int) -> None:
    x = y = 0.0
    for _ in range(units):
        x, y = x * x - y * y - 0.1, 2 * x * y + 0.1


def sort(units: int) -> None:
    for _ in range(units):
        seed, items = 2463534242, []
        for _ in range(SORTED):
            seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
            items.append(seed)
        items.sort()


def repeat(call: Callable[[], int], times: int) -> None:
    for _ in range(times):
        call()


class Disk:
    """A nameless file read and written past the page cache."""

    def __init__(self, folder: str) -> None:
        self.fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600)
        self.block = mmap.mmap(-1, BLOCK)
        for at in range(FILE_BLOCKS):
            os.pwritev(self.fd, [self.block], at * BLOCK)
        os.fsync(self.fd)

    def transfer(self, amount: int, writing: bool) -> None:
        move: Callable[..., int] = os.pwritev if writing else os.preadv
        for _ in range(-(-amount // BLOCK)):
            move(self.fd, [self.block], random.randrange(FILE_BLOCKS) * BLOCK)


def action(kind: str, folder: str) -> Callable[[int], None]:
    if kind in ("read", "write"):
        disk = Disk(folder)
        return lambda amount: disk.transfer(amount, kind == "write")
    table: dict[str, Callable[[int], None]] = {
        "integer": integer,
        "float": floating,
        "sort": sort,
        "sleep": lambda amount: time.sleep(amount / 1e9),
        "syscall": lambda amount: repeat(os.getppid, amount),
        "clock": lambda amount: repeat(now, amount),
    }
    if kind not in table:
        sys.exit(f"{kind}: only native load tasks can do that")
    return table[kind]


class Task:
    """One task: its settings, its body, its samples."""

    def __init__(self, arguments: list[str]) -> None:
        self.settings = dict(DEFAULTS)
        steps = []
        for argument in arguments:
            name, _, value = argument.partition("=")
            if name == "step":
                steps.append(value.split(":"))
            elif name in self.settings:
                self.settings[name] = type(self.settings[name])(value)
            else:
                sys.exit(f"{argument}: unknown setting")
        random.seed(self.number("seed"))
        self.settle()
        self.page = mmap.mmap(self.number("page"), 4096, mmap.MAP_SHARED, mmap.PROT_READ)
        self.samples = array("q")
        self.births = mmap.mmap(-1, 65536)
        self.n_births = self.child = self.lost = 0
        self.kinds = [step[0] for step in steps]
        self.body = [
            (action(step[0], self.text("folder")), int(step[1]), step[2] if step[2:] else "") for step in steps
        ]

    def number(self, name: str) -> int:
        value = self.settings[name]
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        return str(self.settings[name])

    def settle(self) -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if self.text("group"):
            with open(self.text("group"), "w", encoding="ascii") as file:  # noqa: PTH123  no pathlib: starts faster
                file.write("0")
        if self.number("cpu") >= 0:
            os.sched_setaffinity(0, {self.number("cpu")})
        policy, fair = self.number("policy"), self.number("policy") in (0, 3)
        real_time = int(policy in (1, 2))
        slice_ns = self.number("slice_ns") if fair else 0
        wanted = struct.pack("IIQiIQQQ", 48, policy, 0, self.number("nice"), real_time, slice_ns, 0, 0)
        # also without a wish: whoever started us may have stepped back
        if libc.syscall(SYS_SCHED_SETATTR, 0, wanted, 0) and (policy or self.number("nice") or slice_ns):
            sys.exit(f"cannot set the scheduling policy: {os.strerror(ctypes.get_errno())}")
        if self.number("slack_ns"):
            libc.prctl(PR_SET_TIMERSLACK, self.number("slack_ns"), 0, 0, 0)

    def record(self, start: int, end: int) -> None:
        if len(self.samples) >= 3 * self.number("capacity"):
            self.lost += 1
        else:
            self.samples.extend((start, end, libc.sched_getcpu()))

    def watch_gaps(self, deadline: int) -> None:
        threshold, page, clock = self.number("threshold_ns"), self.page, now
        last = clock()
        while last < deadline and not page[0]:
            t = clock()
            if t - last > threshold:
                self.record(last, t)
            last = t

    def do_body(self) -> None:
        for act, amount, how in self.body:
            act(amount if not how else round(
                random.expovariate(1 / amount) if how == "exponential" else random.uniform(0, amount)))  # fmt: skip

    def time_body(self, deadline: int) -> None:
        left, done, most = -1, 0, self.number("iterations")
        while not most or done < most:
            start = now()
            if start >= deadline or self.page[0] or left == 0:
                break
            if self.number("forks"):
                self.maybe_fork()
            self.do_body()
            self.record(start, now())
            done += 1
            if left > 0:
                left -= 1
            elif self.number("changed") and self.has_changed():
                left = self.number("final")
        if self.child:
            os.waitpid(self.child, 0)

    def has_changed(self) -> bool:
        window = self.number("window")
        times = [self.samples[at + 1] - self.samples[at] for at in range(0, len(self.samples), 3)][-window - 3 :]
        if len(times) < window + 3:
            return False
        middle = statistics.median_high(times[:window])
        allowed = max(4 * statistics.median_high(abs(each - middle) for each in times[:window]), middle * 15 // 100)
        return all(abs(each - middle) > allowed for each in times[window:])

    def maybe_fork(self) -> None:
        if self.child and os.waitpid(self.child, os.WNOHANG)[0] == 0:
            return
        self.child = 0
        if self.n_births == self.number("forks"):
            return
        at, self.n_births = 24 * self.n_births, self.n_births + 1
        self.child = os.fork()
        if self.child == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            cpu, start = libc.sched_getcpu(), now()
            integer(self.number("fork_units"))
            self.births[at : at + 24] = struct.pack("3q", start, now(), cpu)
            os._exit(0)

    def only_load(self, deadline: int) -> None:
        done, most = 0, self.number("iterations")
        while now() < deadline and not self.page[0] and (not most or done < most):
            self.do_body()
            done += 1

    def calibrate(self, deadline: int) -> None:
        (act, wanted, _), units = self.body[0], 16

        def taken(times: int) -> int:
            used = []
            for _ in range(times):
                start = time.process_time_ns()
                act(units)
                used.append(time.process_time_ns() - start)
            return int(statistics.median(used))

        while taken(3) < wanted // 4 and now() < deadline:
            units *= 2
        for _ in range(6):
            used = taken(9)
            self.record(units, used)
            factor = wanted / max(used, 1)
            units = max(1, round(units * factor))
            if math.isclose(factor, 1, abs_tol=0.002) or now() >= deadline:
                break
        self.record(units, taken(9))

    def run(self) -> None:
        os.write(self.number("ready"), b"r")
        os.read(self.number("go"), 1)
        time.sleep(self.number("delay_ns") / 1e9)
        before, waited = resource.getrusage(resource.RUSAGE_SELF), run_delay()
        cpu, start = time.process_time_ns(), now()
        deadline = start + self.number("seconds_ns")
        ways = {"gaps": self.watch_gaps, "times": self.time_body, "calibrate": self.calibrate}
        ways.get(self.text("sensor"), self.only_load)(deadline)
        end, used = now(), time.process_time_ns() - cpu
        after, waited_after = resource.getrusage(resource.RUSAGE_SELF), run_delay()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.samples.frombytes(self.births[: 24 * self.n_births])
        head = {
            "start_ns": start,
            "end_ns": end,
            "cpu_ns": used + int((children.ru_utime + children.ru_stime) * 1e9),
            "voluntary": after.ru_nvcsw - before.ru_nvcsw,
            "involuntary": after.ru_nivcsw - before.ru_nivcsw,
            "waited_ns": -1 if waited < 0 else waited_after - waited,
            "samples": len(self.samples) // 3,
            "births": self.n_births,
            "lost": self.lost,
        }
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + self.samples.tobytes())
        sys.stdout.flush()


def run_delay() -> int:
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return -1


if __name__ == "__main__":
    Task(sys.argv[1:]).run()
