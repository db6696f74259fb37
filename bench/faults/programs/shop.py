"""A small C++ server of our own with faults that begin and end while it runs (bench/targets/shop.cpp)."""

from __future__ import annotations

import mmap
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.fault import Fault, Service
from bench.faults.programs.host import competing_writes, spinning_beside
from bench.lib.child_processes import running
from bench.lib.driver import TARGETS

RATE = 600
CONTROLS = {name: place for place, name in enumerate(("rate", "checksum", "render", "db", "lock", "read", "disk"))}
ACCOUNTS = {"checksum": 8, "render": 10, "load": 12, "update": 14, "read_block": 16, "flush": 18}


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


def built(folder: Path) -> Path:
    """Compile the server."""
    program = folder / "shop"
    flags = ("-O2", "-g", "-fno-omit-frame-pointer", "-rdynamic")
    subprocess.run(["g++", *flags, "-o", program, TARGETS / "shop.cpp", "-lpthread"], check=True)
    return program


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server."""
    with ExitStack() as stack:
        numbers = Numbers(folder / "numbers")
        program = built(folder)
        server = stack.enter_context(running((program, folder / "numbers"), cwd=folder))

        def control(name: str, value: int) -> Callable[[], None]:
            return lambda: numbers.put(name, value)

        def fault(
            name: str, put: tuple[str, int], function: str, causes: tuple[str, ...], factor: float | None = None
        ) -> Fault:
            return Fault(
                name=name,
                inject=control(*put),
                undo=control(put[0], RATE if put[0] == "rate" else 0),
                functions=(function,),
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
            )

        yield Service(
            name="shop",
            exe=str(program),
            pid=server.pid,
            faults=(
                fault("checksum computes twice as much", ("checksum", 100), "checksum", ("load", "unknown"), 2.0),
                fault("render computes half as much again", ("render", 50), "render", ("load", "unknown"), 1.5),
                fault("render computes three times as much", ("render", 200), "render", ("load", "unknown"), 3.0),
                fault("read_block sleeps 300 us", ("read", 300), "read_block", ("wait",)),
                fault("another thread holds the lock for 1 ms of 3", ("lock", 1000), "update", ("wait",)),
                fault(
                    "only load by db_get computes four times as much", ("db", 300), "load", ("load", "unknown"), 25 / 13
                ),
                Fault(
                    name="harmless: twice the requests",
                    inject=control("rate", 2 * RATE),
                    undo=control("rate", RATE),
                    harmless=True,
                ),
                under("four busy processes beside it", spinning_beside, (), "host"),
                under("another process writes and syncs", competing_writes, ("flush", "fdatasync"), "wait", "host"),
            ),
        )
