"""Mappings of processes with hostile names, and files that must not be opened."""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from specmine.probes.process.mappings import (
    FileId,
    Mapping,
    executable_mappings,
    executed_files,
    mappings,
    open_mapped,
    parse_mapping,
)

CUTTERS = [b"\x0b", b"\x0c", b"\r", b"\x1c", b"\x1d", b"\x1e", "\x85".encode(), b"\x85", "\u2028".encode(), b"\xa0"]
"""What Python takes for an end of line or a blank, as it may stand in a file's name."""
FORGED = b"x%b7f0000000000-7f0000001000 rwxp 00000000 fe:00 42 "


@contextmanager
def mapped(path: Path) -> Iterator[Mapping]:
    """Map a file executable in this process; give the line that ``maps`` should show for it."""
    fd = os.open(path, os.O_RDONLY)
    try:
        status = os.fstat(fd)
        with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC):
            yield Mapping(start=0, end=0, offset=0, file=(status.st_dev, status.st_ino), path=str(path))
    finally:
        os.close(fd)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail what waits for longer."""

    def end(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it still waits after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused(path: Path, file: FileId | None = None) -> None:
    """Assert that a file is not opened, and that nothing is waited for."""
    status = path.lstat()
    mapping = Mapping(start=0, end=1, offset=0, file=file or (status.st_dev, status.st_ino), path=str(path))
    with within(20), pytest.raises(OSError):
        os.close(open_mapped(os.getpid(), mapping))


@pytest.mark.parametrize("cutter", CUTTERS)
def test_a_name_makes_up_no_mapping(tmp_path: Path, cutter: bytes) -> None:
    """Whatever a mapped file is called, its process has the mappings that it has, with their whole names."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + FORGED % cutter))
    folder.mkdir()
    path = folder / os.fsdecode(b"a" + cutter + b"b")
    path.write_bytes(b"x" * 4096)
    with mapped(path) as expected:
        found = [each for each in executable_mappings(os.getpid()) if each.file == expected.file]
        assert [each.path for each in found] == [str(path)]
        assert all(each.file != (os.makedev(0xFE, 0), 42) for each in executable_mappings(os.getpid()))
        fd = open_mapped(os.getpid(), found[0])
        assert os.pread(fd, 8, 0) == b"x" * 8
        os.close(fd)


def test_files_alone_are_those_of_the_mappings(tmp_path: Path) -> None:
    """What is read in haste is what is parsed, also where a name looks like a mapping, and nothing for the dead."""
    name = os.fsdecode(FORGED % b"\x0c" + b"\n7f0000000000-7f0000001000 r-xp 00000000 fe:00 43 y")[:200].replace(
        "/", "_"
    )
    path = tmp_path / name
    path.write_bytes(bytes(4096))
    with mapped(path) as mapping:
        files = executed_files(os.getpid())
        assert files == {each.file for each in executable_mappings(os.getpid())}
        assert mapping.file in files and not {inode for _, inode in files} & {42, 43}
    assert executed_files(1 << 30) == frozenset()


def test_a_line_that_is_no_mapping_costs_itself() -> None:
    """Neither an empty line nor one cut short is an error; rights are asked for by letter."""
    for line in (b"", b"b", b"x 1", b"7f00-7f01 r-xp", b"7f00-7f01 r-xp 0 fe:00 x /a"):
        assert parse_mapping(line) is None
    line = b"7f00-7f01 r-xp 00002000 fe:01 42          /a b"
    expected = Mapping(start=0x7F00, end=0x7F01, offset=0x2000, file=(os.makedev(0xFE, 1), 42), path="/a b")
    assert parse_mapping(line) == parse_mapping(line, b"xr") == (b"r-xp", expected)
    assert parse_mapping(line, b"wx") is None
    assert list(mappings(2**22 + 1)) == []


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    """A FIFO does not hold us up, and devices, folders and links stay unopened."""
    os.mkfifo(tmp_path / "fifo")
    refused(tmp_path / "fifo")
    refused(Path("/dev/zero"))
    refused(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    file = (tmp_path / "file").stat()
    refused(tmp_path / "link", (file.st_dev, file.st_ino))


def test_another_file_is_not_believed(tmp_path: Path) -> None:
    """The same inode on another device is another file, and so is an empty one."""
    for content in (b"x", b""):
        path = tmp_path / f"file{len(content)}"
        path.write_bytes(content)
        status = path.stat()
        refused(path, (status.st_dev + 1, status.st_ino))
        refused(path, (status.st_dev, status.st_ino + 1))


def test_devices_may_differ_between_stat_and_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On btrfs and overlayfs they do: there our own mapping of the file shows which file it is."""
    path = tmp_path / "file"
    path.write_bytes(b"x")
    true_stat = os.fstat

    def other_device(fd: int) -> os.stat_result:
        status = true_stat(fd)
        return os.stat_result((status.st_mode, status.st_ino, status.st_dev + 1, *tuple(status)[3:]))

    monkeypatch.setattr(os, "fstat", other_device)
    with mapped(path) as expected:
        found = [each for each in executable_mappings(os.getpid()) if each.path == str(path)]
        assert found[0].file != expected.file
        os.close(open_mapped(os.getpid(), found[0]))
        refused(path, (expected.file[0] + 1, expected.file[1]))


def test_a_leased_file_is_not_waited_for(tmp_path: Path, hear_nothing: None) -> None:
    """Whoever holds a lease on a file may keep those who open it waiting for 45 s; that is refused at once."""
    path = tmp_path / "leased"
    path.write_bytes(b"x")
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        pytest.skip(f"no leases here: {error.strerror}")
    try:
        refused(path)
    finally:
        os.close(fd)


@pytest.fixture
def hear_nothing() -> Iterator[None]:
    """Let the break of a lease pass: its signal would end the process."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)
