"""Files are whole or untouched; pipes may break; JSON is one object with a newline."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from specmine.cli.base.output import OutputFile, check_writable, destination
from specmine.cli.main import run
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import InputError

SPECMINE = [sys.executable, "-m", "specmine.cli"]


def test_a_file_appears_whole_at_the_end(tmp_path: Path) -> None:
    """Until it is written the old content stays, after it nothing else is left."""
    target = tmp_path / "spec.json"
    target.write_text("old")
    target.chmod(0o640)
    with OutputFile(target) as file:
        assert target.read_text() == "old"
        file.write("new\n")
    assert target.read_text() == "new\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["spec.json"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    """If the work fails the old content stays and no temporary file."""
    target = tmp_path / "spec.json"
    with pytest.raises(ZeroDivisionError), OutputFile(target):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_new_files_obey_the_mask(tmp_path: Path) -> None:
    """A new file has the mode that open() would give it."""
    before = os.umask(0o027)
    try:
        with OutputFile(tmp_path / "f") as file:
            file.write("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """What a link points to is replaced, not the link."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with OutputFile(tmp_path / "link") as file:
        file.write("x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_a_device_is_written_not_replaced() -> None:
    """/dev/null stays a device, even for root."""
    with OutputFile("/dev/null") as file:
        file.write("x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_full_device_is_an_input_error() -> None:
    """A disk that is full is one line."""
    with pytest.raises(InputError, match="No space left"), OutputFile("/dev/full") as file:
        file.write("x")


def test_a_result_that_nobody_can_get_again_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """A disk that is full at the end: the result goes to standard output, and the error says so."""
    with (
        pytest.raises(InputError, match="cannot write /dev/full: No space left on device: the result is on standard"),
        destination(Path("/dev/full"), never_lost=True) as write,
    ):
        write("result\n")
    assert capsys.readouterr().out == "result\n"


@pytest.mark.parametrize("option", ["--exe", "--config", "--store"])
def test_an_empty_path_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not the working folder."""
    assert run(["mine", option, "", "-p", "1"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert f"invalid value for '{option}': The value is empty" in err


@pytest.mark.parametrize("where", [".", "missing/spec.json"])
def test_what_cannot_be_written_is_found_at_once(tmp_path: Path, where: str) -> None:
    """A folder, or a file in a folder that is not there, is refused before the work."""
    with pytest.raises(InputError, match="cannot write"):
        OutputFile(tmp_path / where)
    with pytest.raises(InputError, match="cannot write the store"):
        check_writable(tmp_path / where, "the store")


def test_a_read_only_place_is_found_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place without the right to write, or on a read-only disk, is refused before the work."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="no right to write there"):
        check_writable(tmp_path / "s.db", "the store")
    (tmp_path / "f").touch()
    with pytest.raises(InputError, match=os.strerror(errno.EACCES)):
        OutputFile(tmp_path / "f")


def test_json_is_one_object_and_a_newline() -> None:
    """Names stay UTF-8 and there is no NaN."""
    assert json_text({"name": "größe"}) == '{\n "name": "größe"\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"x": float("nan")})


@pytest.mark.parametrize(
    "arguments", [["functions"], ["assertions", "--format", "json"], ["export", "--format", "csv"]]
)
def test_a_broken_pipe_is_quiet(store: Path, arguments: list[str]) -> None:
    """A reader that is gone before the first line costs neither a message nor the exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*SPECMINE, *arguments, "--store", store],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_standard_output_is_one_line(store: Path) -> None:
    """Output that gets lost is an error."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*SPECMINE, "functions", "--store", store],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "specmine: cannot write to standard output: No space left on device\n"


def test_an_ascii_world_still_reads(store: Path) -> None:
    """Where only ASCII is spoken, bars and lines are ASCII."""
    done = subprocess.run(
        [*SPECMINE, "show", "z", "--store", store],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert done.stdout.isascii()
    assert b"####" in done.stdout


@pytest.mark.parametrize("closed", [0, 1, 2])
@pytest.mark.parametrize(
    ("arguments", "code"), [(["functions", "--store", "STORE"], 0), (["analyze", "-"], 3), (["nonsense"], 2)]
)
def test_a_closed_standard_descriptor_is_no_crash(store: Path, arguments: list[str], code: int, closed: int) -> None:
    """Data that nobody can get are an error; a complaint that nobody can get does not end among the data."""
    given = [str(store) if each == "STORE" else each for each in arguments]
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}{"<" if closed == 0 else ">"}&-', "sh", *SPECMINE, *given],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if closed == 1 and code != 2:
        assert (done.returncode, done.stderr) == (2, "specmine: cannot write to standard output: it is closed\n")
    else:
        assert done.returncode == code
        assert (done.stdout == "") == (code == 2)
        assert done.stderr.count("\n") == (1 if code == 2 and closed != 2 else 0)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["mine", "--help"]])
def test_help_that_gets_lost_is_one_line(arguments: list[str]) -> None:
    """A full disk under the help text is not called a mistake of specmine."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*SPECMINE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "specmine: cannot read or write: No space left on device\n")
