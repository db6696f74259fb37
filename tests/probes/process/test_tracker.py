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
    assert lifetime.executable.encode()
