"""Processes from what /proc says of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from specmine.probes.process.proc import executed_name, parse_process, process
from tests.support.source_driver import running

STAT = b"7 (%b) S 1 7 7 0 -1 4194560 120 0 0 0 3 2 0 0 20 0 1 0 4711 1000 10 " + b"0 " * 28


def test_any_name_is_read() -> None:
    """Names with parentheses, blanks, ends of line and bytes that are no text cost nothing."""
    for name in (b"shop", b"a) R 9 (b", b"a\x0cb\rc", b"\xff\n", b""):
        found = parse_process(7, STAT % name)
        assert found is not None
        assert (found.parent, found.start_ticks, found.zombie) == (1, 4711, False)
        assert found.name == name.decode(errors="replace")


def test_what_describes_no_process_is_none() -> None:
    """A text cut short, or of another form, is no process rather than an error."""
    for text in (b"", b"7 (a)", b"7 (a) S", STAT.replace(b"4711", b"x")):
        assert parse_process(7, text) is None
    own = process(os.getpid())
    assert own is not None and own.parent == os.getppid()


@pytest.mark.parametrize(
    ("kept", "told"),
    [("tool", "tool"), ("renamed itself", "sleep-like-a-long-name"), ("../../bin/sh", "sleep-like-a-long-name"),
     ("other", "sleep-like-a-long-name"), ("sleep-like-a-lo", "sleep-like-a-long-name")],
)  # fmt: skip
def test_what_was_executed_is_told_by_its_link(tmp_path: Path, kept: str, told: str) -> None:
    """A name that the kernel keeps counts if it leads to the file; what a process calls itself does not."""
    target = shutil.copy("/bin/sleep", tmp_path / "sleep-like-a-long-name")
    (tmp_path / "tool").symlink_to("sleep-like-a-long-name")
    shutil.copy("/bin/sleep", tmp_path / "other")
    with running(target, 600) as child:
        assert executed_name(child.pid, kept) == told
        Path(target).unlink()
        assert executed_name(child.pid, "sleep-like-a-lo") == "sleep-like-a-long-name"


def test_what_cannot_be_read_has_no_name() -> None:
    """Kernel threads and the dead."""
    assert executed_name(2, "kthreadd") == executed_name(1 << 30, "gone") == ""
