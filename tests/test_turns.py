"""A test that must be alone waits for those that run, and lets no other begin before it has run."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import SimpleQueue

from tests.support.patience import patient
from tests.support.turns import turn

LIMIT_S = patient(30)


def test_who_is_alone_comes_before_who_comes_later(tmp_path: Path) -> None:
    """Two run beside each other; one that must be alone waits for both; a third that comes later waits for that one."""
    begun: SimpleQueue[str] = SimpleQueue()
    ends = {name: threading.Event() for name in ("first", "second", "alone", "third")}

    def run(name: str) -> None:
        with turn(tmp_path, alone=name == "alone"):
            begun.put(name)
            ends[name].wait(LIMIT_S)

    threads = {name: threading.Thread(target=run, args=(name,)) for name in ends}
    for name in ("first", "second"):
        threads[name].start()
    assert {begun.get(timeout=LIMIT_S) for _ in range(2)} == {"first", "second"}
    threads["alone"].start()
    while not _waits(tmp_path / "room"):
        assert threads["alone"].is_alive()
    threads["third"].start()
    ends["first"].set()
    threads["first"].join(LIMIT_S)
    assert begun.empty()
    ends["second"].set()
    assert begun.get(timeout=LIMIT_S) == "alone"
    assert begun.empty()
    ends["alone"].set()
    assert begun.get(timeout=LIMIT_S) == "third"
    ends["third"].set()
    for each in threads.values():
        each.join(LIMIT_S)


def _waits(path: Path) -> bool:
    """Tell whether somebody waits for the lock of a file, as the kernel shows it."""
    inode = f":{path.stat().st_ino} "
    return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())
