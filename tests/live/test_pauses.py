"""The host stands still for a while, or its clock is set: watching goes on, nothing is reported that did not happen."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.store import Host, open_store
from tests.support import product
from tests.support.breakpoints import family
from tests.support.paths import ROOT
from tests.support.product import Daemon, daemon, running, wait_for_probes, wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

Programs = Callable[..., Path]
STILL_S = 4.0
"""Longer than the heartbeat, than the holder may be silent, and than a window lasts."""
YEAR_S = 365 * 86_400
SECTIONS = {
    "functions": "{watch: [a, b, c, z]}",
    "windows": "{length: 1s}",
    "budget": "{overhead: 30%, agent: 50%}",
    "metrics": "{listen: '127.0.0.1:0'}",
}
WITH_SET_CLOCK = """#!{python}
import sys, time
sys.path.insert(0, {source!r})
from pathlib import Path
read, ahead = time.time_ns, Path({ahead!r})
time.time_ns = lambda: read() + int(ahead.read_text() or 0) * 10**9
from specmine.daemon.main import main
sys.exit(main())
"""
"""The daemon with a wall clock that is set by a file; all of its other clocks are the host's."""


def counted(one: Daemon) -> int:
    """Return the calls that were counted so far."""
    return sum(each["calls_counted"] for each in (one.ask("functions") or {}).get("functions", []))


def counts_on(one: Daemon, calls: int = 200) -> None:
    """Wait until further calls were counted."""
    before = counted(one)
    wait_until(lambda: counted(one) >= before + calls, "further calls")


def test_all_stands_still_for_a_while(program: Programs, tmp_path: Path) -> None:
    """A virtual machine is paused, a control group is frozen: then the same daemon counts on, and says nothing."""
    path = program("paths")
    with running(path, 300) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]", **SECTIONS) as one:
        process = one.start()
        wait_for_probes(child.pid, one)
        counts_on(one)
        everybody = [*family(process.pid), *family(child.pid)]
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(STILL_S)
        for pid in everybody:
            os.kill(pid, signal.SIGCONT)
        counts_on(one)
        assert process.poll() is None and child.poll() is None
        assert (one.ask("violations") or {})["violations"] == []
        assert "Traceback" not in one.log.read_text()


def test_the_clock_is_set(program: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year ahead and a year back: windows go on, and what is written is dated by the clock as it is now."""
    path, ahead, script = program("paths"), tmp_path / "ahead", tmp_path / "specmined"
    ahead.write_text("0")
    script.write_text(
        WITH_SET_CLOCK.format(python=sys.executable, source=str(ROOT / "src"), ahead=str(ahead)), encoding="utf-8"
    )
    script.chmod(0o755)
    monkeypatch.setattr(product, "SPECMINED", str(script))
    with running(path, 300) as child, daemon(tmp_path, programs=f"[{{exe: {path}}}]", **SECTIONS) as one:
        process = one.start()
        wait_for_probes(child.pid, one)
        for seconds in (YEAR_S, -YEAR_S):
            ahead.with_suffix(".new").write_text(str(seconds))
            ahead.with_suffix(".new").rename(ahead)
            wanted_ns = time.time_ns() - time.monotonic_ns() + seconds * 10**9
            wait_until(lambda wanted_ns=wanted_ns: abs(offset_ns(one) - wanted_ns) < 10**9, "dates by that clock")  # type: ignore[misc]
            counts_on(one)
        assert process.poll() is None and child.poll() is None
        assert (one.ask("violations") or {})["violations"] == []
        assert "Traceback" not in one.log.read_text()


def offset_ns(one: Daemon) -> int:
    """Return where UTC lies on the monotonic clock, as the store has it; 0 while nothing was written yet."""
    with open_store(one.store, read_only=True) as store:
        return next((host.utc_offset_ns for host in store.read(Host)), 0)
