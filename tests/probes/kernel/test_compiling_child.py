"""A compiling child is given up for what it does, not for what others on the host do."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from specmine.model.errors import HelperError
from specmine.probes.kernel import compiling_child
from specmine.probes.kernel.compiling_child import answer
from tests.support.patience import patient

SLOW = f"""#!{sys.executable}
import json, socket, sys, time
channel = socket.socket(fileno=int(sys.argv[4]))
channel.recv(1 << 16)
until = time.process_time() + CPU_SECONDS
while time.process_time() < until:
    pass
time.sleep(WAITS)
told = {{"ok": True, "maps": [], "programs": [], "mode": "", "notes": [], "waiting": False, "fields": False}}
channel.send(json.dumps({{**told, "seconds": 0, "cpu_seconds": 0}}).encode())
"""


def interpreter(folder: Path, *, cpu_s: float = 0.0, waits_s: float = 0.0) -> str:
    """Return a program that answers as the compiling child does, after so much work and waiting."""
    path = folder / "slow"
    path.write_text(SLOW.replace("CPU_SECONDS", str(cpu_s)).replace("WAITS", str(waits_s)))
    path.chmod(0o755)
    return str(path)


def test_a_child_that_waits_for_a_cpu_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than it may work, and answers."""
    monkeypatch.setattr(compiling_child, "MOST_CPU_S", patient(0.5))
    assert answer(interpreter(tmp_path, waits_s=patient(1.0)), {}).maps == {}


@pytest.mark.parametrize(("limit", "cpu_s", "waits_s"), [("MOST_CPU_S", 600.0, 0.0), ("LONGEST_S", 0.0, 600.0)])
def test_a_child_that_does_not_end_is_killed(
    limit: str, cpu_s: float, waits_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times; then something broke, and a service is started anew."""
    monkeypatch.setattr(compiling_child, limit, 0.3)
    monkeypatch.setattr(compiling_child, "PAUSES_S", (0.01, 0.01))
    began = time.monotonic()
    with pytest.raises(HelperError, match="it takes too long"):
        answer(interpreter(tmp_path, cpu_s=cpu_s, waits_s=waits_s), {})
    assert time.monotonic() - began < patient(60)


def test_a_child_is_killed_where_a_signal_ends_the_wait(tmp_path: Path) -> None:
    """SIGTERM and SIGINT raise here; before, the wait for the child began again and lasted as long as the child."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            answer(interpreter(tmp_path, waits_s=600.0), {})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < patient(60)
