"""How soon are all probes detached, whatever ends them?

    .venv/bin/python -m bench.overhead.detaching [--times 10] [--busy]

A daemon watches a program. Then its kill switch is set (by file, by SIGUSR1, by `specmine off`), or it is ended
(SIGTERM), stopped (SIGSTOP), or a debugger seizes the program. For each way: the time until the program's executable
pages are again what the files say. The promises are those of docs/safety.md. The tests only ask that all probes go,
because a neighbour can delay them. SIGKILL is measured by bench.overhead.killed_daemon.

The load average before is stated: figures beside others' load are not specmine's alone. `--busy` keeps every CPU busy
twice over. Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.support.breakpoints import Text, family
from tests.support.paths import TESTS
from tests.support.product import Daemon, busy, daemon, running, seconds_until_clean, specmine, stop, wait_for_probes

PROMISED_S = {"file": 1.0, "signal": 1.0, "command": 4.0, "end": 1.0, "stop": 1.5, "debugger": 1.0}
"""The command waits for the daemon's answer; a stopped daemon has a second until its next heartbeat."""
_SEIZE, _DETACH, _INTERRUPT = 0x4206, 17, 0x4207


def main() -> int:
    """Measure each way; 0 if every promise was kept every time."""
    parser = argparse.ArgumentParser(description="How soon all probes are detached.")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--busy", action="store_true", help="beside two busy loops a CPU")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.detaching: needs root", file=sys.stderr)
        return 4
    print(f"load average before: {os.getloadavg()[0]:.2f}")
    late = 0
    print("way         median   longest  promised  late")
    for way, promised_s in PROMISED_S.items():
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
            found = measured(Path(folder), way, options.times, beside=options.busy)
        over = sum(each > promised_s for each in found)
        print(
            f"{way:9} {statistics.median(found) * 1e3:6.0f} ms {max(found) * 1e3:6.0f} ms {promised_s:7.1f} s {over:5}",
            flush=True,
        )
        late += over
    return 1 if late else 0


def measured(folder: Path, way: str, times: int, *, beside: bool) -> list[float]:
    """Return the seconds until no probe was left, for each time."""
    program, found = built(folder), []
    with (
        running(program, 3600) as child,
        daemon(folder, programs=f"[{{exe: {program}}}]", kill_switch=f"{folder}/off") as one,
    ):
        for _ in range(times):
            if one.process is None or one.process.poll() is not None:
                one.start()
            wait_for_probes(child.pid, one)
            act, undo = ways(folder, one, child.pid)[way]
            with Text(family(child.pid)) as text, ExitStack() as stack:
                if beside:
                    stack.enter_context(busy())
                began = time.monotonic()
                act()
                seconds_until_clean(text)
                found.append(time.monotonic() - began)
            undo()
    return found


def ways(folder: Path, one: Daemon, pid: int) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return what detaches the probes, and what lets them come back."""
    process = one.process
    assert process is not None
    return {
        "file": ((folder / "off").touch, (folder / "off").unlink),
        "signal": (lambda: process.send_signal(signal.SIGUSR1), lambda: process.send_signal(signal.SIGUSR2)),
        "command": (
            lambda: specmine("off", "--socket", one.socket),
            lambda: specmine("on", "--socket", one.socket),
        ),
        "end": (process.terminate, process.wait),
        "stop": (lambda: stop(process), lambda: process.send_signal(signal.SIGCONT)),
        "debugger": (lambda: trace(_SEIZE, pid), lambda: leave(pid)),
    }


def trace(request: int, pid: int) -> None:
    """Make a request of ptrace. Raises OSError if it is refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(request, pid, None, None):
        raise OSError(ctypes.get_errno(), "ptrace")


def leave(pid: int) -> None:
    """Stop the seized program and let it go."""
    trace(_INTERRUPT, pid)
    os.waitpid(pid, os.WUNTRACED)
    trace(_DETACH, pid)


def built(folder: Path) -> Path:
    """Compile the program that is watched."""
    source = TESTS / "programs" / "paths.c"
    subprocess.run(["gcc", "-O2", "-fno-omit-frame-pointer", "-o", folder / "paths", source, "-lm"], check=True)
    return folder / "paths"


if __name__ == "__main__":
    raise SystemExit(main())
