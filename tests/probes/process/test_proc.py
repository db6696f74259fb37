"""Processes from what /proc says of them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from specmine.probes.process.proc import (
    executable,
    executable_path,
    executed_name,
    parse_process,
    process,
    runs_deleted,
    user,
)
from specmine.probes.process.selection import Selection, belongs
from tests.support.product import wait_until
from tests.support.source_driver import running

OTHER = 64_208
"""A user of nobody else."""
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


def test_a_program_whose_file_was_replaced_is_known_by_its_path(tmp_path: Path) -> None:
    """A process that runs on after an upgrade of its file, and not a user's who mounts a file at that path."""
    path, other = Path(shutil.copy("/bin/sleep", tmp_path / "server")), tmp_path / "other"
    with running(path, 600) as child:
        wait_until(lambda: executable_path(child.pid) == str(path), "the program")
        assert not runs_deleted(child.pid, str(path))
        Path(shutil.copy("/bin/sleep", other)).rename(path)
        assert runs_deleted(child.pid, str(path))
        assert not runs_deleted(child.pid, str(other))
        assert belongs(Selection(exe=str(path)), child.pid, executable(os.getpid()))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to start processes of other users")
def test_processes_of_other_users_can_be_left_out() -> None:
    """Who started a process counts, not whose rights it has: setuid programs change only the latter."""
    file = (Path("/bin/sleep").stat().st_dev, Path("/bin/sleep").stat().st_ino)
    become = "import os; os.setresuid({}, {}, -1); os.execv('/bin/sleep', ['sleep', '600'])"
    with (
        running("/bin/sleep", 600) as of_root,
        running(sys.executable, "-c", become.format(OTHER, OTHER)) as of_other,
        running(sys.executable, "-c", become.format(OTHER, 0)) as setuid,
    ):
        pids = [of_root.pid, of_other.pid, setuid.pid]
        wait_until(lambda: all(executable(pid) == file for pid in pids), "the programs")
        assert [user(pid) for pid in pids] == [0, OTHER, OTHER]
        for users, chosen in (((), pids), ((0,), pids[:1]), ((OTHER,), pids[1:]), ((0, OTHER), pids), ((1,), [])):
            one = Selection(exe="/bin/sleep", users=users)
            assert [pid for pid in pids if belongs(one, pid, file)] == chosen
    assert user(1 << 30) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be sure of user namespaces")
def test_a_path_that_a_user_mounted_is_not_believed(tmp_path: Path) -> None:
    """In a user namespace of its own a process runs a deleted file that seems to have lain at a system path."""
    path = Path(shutil.copy("/bin/sleep", tmp_path / "server"))
    inside = f"mount -t tmpfs none {tmp_path} && cp /bin/sleep {path} && {{ (sleep 0.1; rm {path}) & exec {path} 60; }}"
    with running("/usr/bin/unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", inside) as child:
        wait_until(lambda: executable_path(child.pid) == f"{path} (deleted)", "the deleted file")
        assert not runs_deleted(child.pid, str(path))
