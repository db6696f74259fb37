"""The daemon's priority is that of all its threads but the heartbeat."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOWERED = """
import os, threading
from specmine.daemon.system.priority import lower_priority

ready, end, found = threading.Barrier(3), threading.Event(), {}

def run(name, niceness):
    if niceness:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
    found[name] = threading.get_native_id()
    ready.wait()
    end.wait()

for name, niceness in (("scrapes", 0), ("heartbeat", -15)):
    threading.Thread(target=run, args=(name, niceness), daemon=True).start()
ready.wait()
lower_priority()
found["main"] = threading.get_native_id()
print({name: os.getpriority(os.PRIO_PROCESS, thread) for name, thread in sorted(found.items())})
end.set()
"""


@pytest.mark.kernel
def test_all_threads_but_the_heartbeat_yield() -> None:
    """Scrapes and the store do not compete with the programs; what keeps the probes on does not wait for them."""
    done = subprocess.run([sys.executable, "-c", LOWERED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'heartbeat': -15, 'main': 19, 'scrapes': 19}"
