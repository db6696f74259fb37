"""Names come from separate debug files wherever distributions and debuginfod put them, and from no false one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.probes.elf.client import Reader
from specmine.probes.elf.debug_files import debuginfod_folders, open_debug_file
from tests.support.binary_samples import C_SOURCE, changed, compiled


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Start a reader, end it."""
    with Reader(niceness=0) as one:
        yield one


def stripped(folder: Path, *flags: str) -> tuple[Path, Path]:
    """Compile; return the program without symbols, linked to its debug file beside it, and that file."""
    path = compiled(folder, "prog", C_SOURCE, "-O2", *flags)
    debug = changed(path, folder / "prog.debug", "--only-keep-debug")
    bare = changed(path, folder / "bare", "--strip-all", f"--add-gnu-debuglink={debug}")
    return bare, debug


def hidden_name(reader: Reader, path: Path, folders: list[Path], system: Path) -> list[str]:
    """Return the names under which the static function of the program is found."""
    with path.open("rb") as file:
        facts = reader.facts(file.fileno())
        debug = open_debug_file(facts, str(path), folders, system=system)
        if debug >= 0:
            reader.accompany(file.fileno(), debug)
        found = reader.find(file.fileno(), ["hidden*", "visible"], path.name)
        reader.accompany(file.fileno(), -1)
        if debug >= 0:
            os.close(debug)
    return sorted(each.name for each in found)


@pytest.mark.parametrize("flags", [("-Wl,--build-id",), ("-Wl,--build-id=none",)], ids=["build-id", "checksum"])
@pytest.mark.parametrize("place", ["{own}/prog.debug", "{own}/.debug/prog.debug", "{system}{own}/prog.debug"])
def test_debug_links_are_followed(reader: Reader, tmp_path: Path, place: str, flags: tuple[str, ...]) -> None:
    """The file that .gnu_debuglink names is found beside the program, in .debug, and under /usr/lib/debug."""
    bare, debug = stripped(tmp_path, *flags)
    system = tmp_path / "system"
    assert hidden_name(reader, bare, [], system) == ["hidden", "visible"]
    target = Path(place.format(own=tmp_path, system=system))
    content = debug.read_bytes()
    debug.unlink()
    assert open_debug_file_of(reader, bare, system) == -1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    again = tmp_path / "again"  # another file, of which the reader knows nothing yet
    again.write_bytes(bare.read_bytes())
    assert hidden_name(reader, again, [], system) == ["hidden", "visible"]


def open_debug_file_of(reader: Reader, path: Path, system: Path) -> int:
    """Return what ``open_debug_file`` does for a program."""
    with path.open("rb") as file:
        return open_debug_file(reader.facts(file.fileno()), str(path), [], system=system)


def test_a_cache_of_debuginfod_is_used(reader: Reader, tmp_path: Path) -> None:
    """What debuginfod's clients fetched gives names, though only its owner may look into the folder."""
    bare, debug = stripped(tmp_path, "-Wl,--build-id")
    with bare.open("rb") as file:
        build = reader.facts(file.fileno()).build_id
    folders = debuginfod_folders({"HOME": str(tmp_path)})
    place = folders[0] / build / "debuginfo"
    place.parent.mkdir(parents=True)
    folders[0].chmod(0o700)
    debug.rename(place)
    assert hidden_name(reader, bare, folders, tmp_path / "system") == ["hidden", "visible"]


def test_folders_of_debuginfod() -> None:
    """The variable of its clients goes before the folder of the desktop's standard, and that before the home's."""
    home = {"HOME": "/home/somebody"}
    assert debuginfod_folders(home)[0] == Path("/home/somebody/.cache/debuginfod_client")
    assert debuginfod_folders(home | {"XDG_CACHE_HOME": "/c"})[0] == Path("/c/debuginfod_client")
    assert debuginfod_folders(home | {"XDG_CACHE_HOME": "/c", "DEBUGINFOD_CACHE_PATH": "/d"}) == [Path("/d")]
    assert debuginfod_folders({}) == []


def test_false_debug_files_are_not_believed(reader: Reader, tmp_path: Path) -> None:
    """A file of another build, a file with another checksum and no ELF file at all give no names."""
    (tmp_path / "other").mkdir()
    for flags in (("-Wl,--build-id",), ("-Wl,--build-id=none",)):
        bare, debug = stripped(tmp_path, *flags)
        _, false = stripped(tmp_path / "other", "-O1", "-DOTHER", *flags)
        for content in (false.read_bytes() + b"x", b"no ELF file", b""):
            debug.write_bytes(content)
            again = tmp_path / f"again{len(content)}{len(flags[0])}"
            again.write_bytes(bare.read_bytes())
            assert hidden_name(reader, again, [], tmp_path / "system") == []


def test_odd_links_lead_nowhere(reader: Reader, tmp_path: Path) -> None:
    """A link to itself, to a folder, to a pipe or to what is a link itself opens nothing and does not wait."""
    bare, debug = stripped(tmp_path)
    debug.unlink()
    os.mkfifo(debug)
    assert open_debug_file_of(reader, bare, tmp_path / "system") == -1
    debug.unlink()
    secret = tmp_path / "secret"
    secret.write_bytes(b"x")
    debug.symlink_to(secret)
    assert open_debug_file_of(reader, bare, tmp_path / "system") == -1
    debug.unlink()
    debug.mkdir()
    assert open_debug_file_of(reader, bare, tmp_path / "system") == -1
