"""A log that cannot be written costs lines of the log, nothing else."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.daemon.system.logging import set_up

LOG = logging.getLogger("specmine.test")


class Disk(io.StringIO):
    """A file on a disk that may be full."""

    full = False

    def write(self, text: str) -> int:
        """Take a text, or not."""
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Log to such a file."""
    root = logging.getLogger("specmine")
    before = root.handlers[:], root.propagate, root.level
    found = Disk()
    set_up(level="info", form="logfmt", stream=found)
    yield found
    root.handlers[:], root.propagate = before[0], before[1]
    root.setLevel(before[2])


def test_lost_lines_are_counted_once_there_is_room(disk: Disk, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed elsewhere meanwhile; the first line that fits is told how many are missing before it."""
    LOG.info("one")
    disk.full = True
    for number in range(3):
        LOG.info("lost %d", number)
    disk.full = False
    LOG.info("two")
    LOG.info("three")
    messages = [line.partition("message=")[2] for line in disk.getvalue().splitlines()]
    assert messages == ["one", '"3 lines could not be written to the log"', "two", "three"]
    assert capsys.readouterr() == ("", "")


def test_a_full_disk_does_not_change_the_exit_code(tmp_path: Path) -> None:
    """A wrong configuration is exit code 2, also where the sentence about it can be written nowhere."""
    wrong = tmp_path / "specmined.yaml"
    wrong.write_text("nonsense: 1\n")
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "specmine.daemon.main", "--config", wrong, "--check-config"],
            stderr=full,
            check=False,
        )
    assert ended.returncode == 2
