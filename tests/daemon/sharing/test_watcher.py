"""The file with what the fleet said: read when it changed, if it is a small ordinary file of this boot."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from specmine.daemon.controller.events import Assigned, Stated
from specmine.daemon.sharing.document import MOST_BYTES, Received, received_text
from specmine.daemon.sharing.watcher import CHECK_EVERY_NS, FleetWatcher
from specmine.mining.borders.inference import Inference
from specmine.mining.fleet.statement import InheritedStatement

_STATED = InheritedStatement(
    function="ab+0x10", build_id="ab", learned=Inference(stable=True), hosts=8, median_ns=5e4
)  # fmt: skip
_RECEIVED = Received(boot_id="boot", told_ns=7, left=("ab+0x20",), statements=(_STATED,))


def test_news_come_once(tmp_path: Path) -> None:
    """Duties at each change, a statement when it is new; nothing while the file stays as it is."""
    path, told = tmp_path / "received.json", list[str]()
    watcher = FleetWatcher(path, "boot", told.append)
    assert watcher.turn(10) == ()
    path.write_text(received_text(_RECEIVED), encoding="ascii")
    assert watcher.turn(11) == ()  # not looked at so soon
    stated, assigned = watcher.turn(10 + CHECK_EVERY_NS)
    assert isinstance(stated, Stated)
    assert isinstance(assigned, Assigned)
    assert (assigned.told_ns, assigned.left) == (7, ("ab+0x20",))
    assert watcher.turn(10 + 2 * CHECK_EVERY_NS) == ()
    new = tmp_path / "new"
    new.write_text(received_text(replace(_RECEIVED, told_ns=9)), encoding="ascii")
    new.replace(path)
    assert [type(each) for each in watcher.turn(10 + 3 * CHECK_EVERY_NS)] == [Assigned]
    assert told == []


def test_duties_of_another_boot_or_of_the_future_do_not_count(tmp_path: Path) -> None:
    """Statements do: what is true of a function does not depend on a boot."""
    for number, (boot, at) in enumerate((("other", 7), ("boot", 1 << 50))):
        path = tmp_path / str(number)
        path.write_text(received_text(replace(_RECEIVED, boot_id=boot, told_ns=at)), encoding="ascii")
        assert [type(each) for each in FleetWatcher(path, "boot", print).turn(10)] == [Stated]


def test_what_is_no_such_file_is_said_and_left(tmp_path: Path) -> None:
    """Damaged, too large, a link, a pipe: one line, and the daemon goes on; without a fleet nothing is read."""
    damaged, large, link, pipe = (tmp_path / name for name in ("damaged", "large", "link", "pipe"))
    damaged.write_text("{", encoding="ascii")
    large.write_bytes(b" " * (MOST_BYTES + 1))
    link.symlink_to(damaged)
    os.mkfifo(pipe)
    for path in (damaged, large, link, pipe):
        told: list[str] = []
        watcher = FleetWatcher(path, "boot", told.append)
        assert watcher.turn(10) == ()
        assert watcher.turn(10 + 2 * CHECK_EVERY_NS) == ()
        assert len(told) == 1
    assert FleetWatcher(None, "boot", print).turn(10) == ()
