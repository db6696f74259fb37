"""A stopped process is told from others."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from specmine.probes.holder.process_state import cpu_seconds, is_stopped
from tests.support.patience import patient


def test_a_stopped_process_is_told() -> None:
    """Stopped, continued, ended."""
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            for number, stopped in ((signal.SIGSTOP, True), (signal.SIGCONT, False)):
                os.kill(child.pid, number)
                end = time.monotonic() + patient(30)
                while is_stopped(child.pid) != stopped:
                    assert time.monotonic() < end
                    time.sleep(0.01)
        finally:
            child.kill()
    assert not is_stopped(child.pid)


def test_its_cpu_time_is_told() -> None:
    """As the system says of this process; none of one that is gone."""
    while time.process_time() < 0.2:
        pass
    assert abs(cpu_seconds(os.getpid()) - time.process_time()) < 0.1
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert cpu_seconds(child.pid) == 0
