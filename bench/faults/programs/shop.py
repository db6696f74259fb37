"""A small C++ server of our own with faults that begin and end while it runs (bench/targets/shop.cpp)."""

from __future__ import annotations

import mmap
import secrets
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.fault import Fault, Service, wandering
from bench.faults.programs.host import competing_writes, spinning_beside
from bench.lib.child_processes import running
from bench.lib.driver import TARGETS

RATE = 4000
"""Requests a second: the program then uses a third of a CPU or so, and 1 % of that buys some windows."""
CONTROLS = {name: place for place, name in enumerate(("rate", "checksum", "render", "db", "lock", "read", "disk"))}
ACCOUNTS = {"checksum": 8, "render": 10, "load": 12, "update": 14, "read_block": 16, "flush": 18}
LOCK_WAITS = ("pthread_mutex_lock", "__lll_lock_wait")
"""Where calls wait for a lock: these take longer, too, as they do in the faults of other programs."""


class Numbers:
    """The file that the server shares with us."""

    def __init__(self, path: Path) -> None:
        """Create it: the usual rate, no fault, a flush now and then."""
        path.write_bytes(struct.pack("<64q", RATE, *[0] * 63))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self.put("disk", 1)

    def put(self, control: str, value: int) -> None:
        """Set a control."""
        struct.pack_into("<q", self._memory, 8 * CONTROLS[control], value)

    def account(self, function: str) -> tuple[float, float]:
        """Return calls of a function and seconds in them."""
        calls, ns = struct.unpack_from("<2q", self._memory, 8 * ACCOUNTS[function])
        return float(calls), ns * 1e-9


def built(folder: Path, name: str = "shop", *more: str) -> Path:
    """Compile the server."""
    program = folder / name
    flags = ("-O2", "-g", "-fno-omit-frame-pointer", "-rdynamic", *more)
    subprocess.run(["g++", *flags, "-o", program, TARGETS / "shop.cpp", "-lpthread"], check=True)
    return program


class Server:
    """The running server, which may be started anew, also as another file."""

    def __init__(self, folder: Path) -> None:
        """Build and start it."""
        self.program = built(folder)
        self._folder, self._stack = folder, ExitStack()
        self.pid = 0
        self.restart()

    def restart(self) -> None:
        """End it and start it anew."""
        self.stop()
        self.pid = self._stack.enter_context(running((self.program, self._folder / "numbers"), cwd=self._folder)).pid

    def reinstall(self) -> None:
        """Put a copy in its place, as installing the same package again does, and start that."""
        copy = self._folder / "copy"
        shutil.copy2(self.program, copy)
        copy.replace(self.program)
        self.restart()

    def rebuild(self) -> None:
        """Put another build of the same sources in its place, with a build-id of its own, and start that."""
        built(self._folder, "anew", f"-Wl,--build-id=0x{secrets.token_hex(20)}").replace(self.program)
        self.restart()

    def stop(self) -> None:
        """End it."""
        self._stack.close()


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server."""
    with ExitStack() as stack:
        numbers = Numbers(folder / "numbers")
        server = Server(folder)
        stack.callback(server.stop)
        harmless = stack.enter_context(wandering(lambda factor: numbers.put("rate", round(RATE * factor))))

        def anew(name: str, how: Callable[[], None]) -> Fault:
            return Fault(name=f"harmless: {name}", inject=how, undo=lambda: None, harmless=True)

        def control(name: str, value: int) -> Callable[[], None]:
            return lambda: numbers.put(name, value)

        def fault(
            name: str,
            put: tuple[str, int],
            function: str,
            causes: tuple[str, ...],
            factor: float | None = None,
            within: tuple[str, ...] = (),
        ) -> Fault:
            return Fault(
                name=name,
                inject=control(*put),
                undo=control(put[0], RATE if put[0] == "rate" else 0),
                functions=(function, *within),
                causes=causes,
                factor=factor,
                account=lambda: numbers.account(function),
            )

        def under(name: str, load: Callable[[Path], ExitStack], functions: tuple[str, ...], *causes: str) -> Fault:
            opened: list[ExitStack] = []
            return Fault(
                name=name,
                inject=lambda: opened.append(load(folder)),
                undo=lambda: opened.pop().close(),
                functions=functions,
                causes=causes,
                alone=True,
            )

        yield Service(
            name="shop",
            exe=str(server.program),
            pid=server.pid,
            by_exe=True,
            faults=(
                fault("checksum computes twice as much", ("checksum", 100), "checksum", ("load", "unknown"), 2.0),
                fault("render computes half as much again", ("render", 50), "render", ("load", "unknown"), 1.5),
                fault("render computes three times as much", ("render", 200), "render", ("load", "unknown"), 3.0),
                fault("read_block sleeps 300 us", ("read", 300), "read_block", ("wait",)),
                fault(
                    "another thread holds the lock for 1 ms of 3",
                    ("lock", 1000),
                    "update",
                    ("wait",),
                    within=LOCK_WAITS,
                ),
                fault(
                    "only load by db_get computes four times as much", ("db", 300), "load", ("load", "unknown"), 25 / 13
                ),
                *harmless,
                anew("a restart", server.restart),
                anew("reinstalled and restarted", server.reinstall),
                anew("rebuilt without a change and restarted", server.rebuild),
                under("four busy processes beside it", spinning_beside, (), "host"),
                under("another process writes and syncs", competing_writes, ("flush", "fdatasync"), "wait", "host"),
            ),
        )
