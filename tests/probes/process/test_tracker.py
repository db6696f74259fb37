"""Watched processes and their lifetimes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import cast

from specmine.probes.kernel.maps import CachedMap
from specmine.probes.process.selection import Selection
from specmine.probes.process.tracker import ProcessTracker
from tests.support.source_driver import running


class NoKernel:
    """A map of processes that nobody reads."""

    def put(self, key: bytes, value: bytes) -> None:
        """Forget it."""


def test_an_executable_of_any_name_can_be_stored(tmp_path: Path) -> None:
    """Bytes that are no text are written by their codes: what a lifetime says can be encoded."""
    path = shutil.copy("/bin/sleep", tmp_path / "a\udcff\x0cb")
    with running(path, 600) as child:
        tracker = ProcessTracker([Selection(pid=child.pid)], cast(CachedMap, NoKernel()))
        tracker.begin(0)
        status = os.stat(path)
        (lifetime,) = tracker.lifetimes({(status.st_dev, status.st_ino): "build"})
    assert lifetime.executable == f"{tmp_path}/a\\xff\x0cb"
    assert lifetime.executable.encode() and lifetime.program.encode()


def test_a_program_has_the_name_that_people_gave_it(tmp_path: Path) -> None:
    """The name of the selection, else that of the link that was executed, not of the link's target."""
    target = shutil.copy("/bin/sleep", tmp_path / "check-rdb")
    link = tmp_path / "server"
    link.symlink_to("check-rdb")
    named = {}
    with running(link, 600) as child:
        for name in ("", "cache"):
            tracker = ProcessTracker([Selection(pid=child.pid, name=name)], cast(CachedMap, NoKernel()))
            tracker.begin(0)
            status = os.stat(target)
            (lifetime,) = tracker.lifetimes({(status.st_dev, status.st_ino): "build"})
            named[name] = lifetime.program
            assert lifetime.executable == str(target)
    assert named == {"": "server", "cache": "cache"}
