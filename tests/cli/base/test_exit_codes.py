"""Every exit code, and the one line that comes with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from specmine import __version__
from specmine.cli.base.exit_codes import exit_code
from specmine.model.errors import HostError, InputError, NoData


def _raising(error: BaseException) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("no process 7", remedy="look at ps"), 2, "specmine: no process 7; look at ps"),
        (NoData("nothing is stable"), 3, "specmine: nothing is stable"),
        (HostError("no BPF"), 4, "specmine: no BPF"),
        (MemoryError(), 4, "specmine: out of memory: raise the limit (ulimit -v), or free some"),
        (KeyboardInterrupt(), 130, "specmine: interrupted"),
        (click.Abort(), 130, "specmine: interrupted"),
        (click.UsageError("No such option: --x."), 2, "specmine: no such option: --x"),
        (
            ZeroDivisionError("division\nby zero"),
            2,
            "specmine: internal error: ZeroDivisionError: division\\x0aby zero; "
            "run `specmine --debug ...` for the traceback",
        ),
        (click.UsageError("NAME is a text"), 2, "specmine: NAME is a text"),
        (InputError("\x1b[2Jgone"), 2, "specmine: \\x1b[2Jgone"),
    ],
)
def test_errors_end_as_one_line(error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An error is its exit code and one harmless line on standard error."""
    assert exit_code(_raising(error), debug=False) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", line + "\n")


def test_a_reader_that_went_away_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A broken pipe says nothing and is fine."""
    assert exit_code(_raising(BrokenPipeError()), debug=False) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("result", "code"), [(None, 0), (3, 3), (True, 0)])
def test_results_are_exit_codes(result: object, code: int) -> None:
    """What a command returns is its exit code; anything but a number is fine."""
    assert exit_code(lambda: result, debug=False) == code


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """With --debug the traceback comes first, the line still ends it."""
    assert exit_code(_raising(InputError("no")), debug=True) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("specmine: no\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["mine", "--nonsense"],
        ["nonsense"],
        ["--nonsense"],
        ["show"],
        ["functions", "--format", "yaml"],
        ["functions", "--state", "happy"],
        ["mine", "-p", "0"],
        ["label", "abc", "two\nlines"],
        ["doctor", "-p", "x"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], outcome: Callable[..., tuple[int, str, str]]) -> None:
    """Wrong usage is code 2 with one line that names the help."""
    code, out, err = outcome(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("specmine: ")
    assert err.count("\n") == 1
    assert "--help" in err


def test_no_command_shows_help_and_is_2(outcome: Callable[..., tuple[int, str, str]]) -> None:
    """Without a command the help goes to standard error."""
    code, out, err = outcome()
    assert (code, out) == (2, "")
    assert "Commands:" in err


def test_version_and_help(outcome: Callable[..., tuple[int, str, str]]) -> None:
    """Version and help are data, and fine."""
    assert outcome("--version") == (0, f"specmine {__version__}\n", "")
    code, out, _ = outcome("-h")
    assert code == 0
    assert "assertions" in out


def test_help_is_a_command_as_well(outcome: Callable[..., tuple[int, str, str]]) -> None:
    """``help`` and ``help COMMAND`` say what ``--help`` says there; -V is the version."""
    for words in ([], ["mine"], ["fleet"]):
        assert outcome("help", *words) == outcome(*words, "--help")
        assert outcome("help", *words)[0] == 0
    assert outcome("-V") == outcome("--version")
    code, _, err = outcome("help", "functionz")
    assert (code, "did you mean functions" in err) == (2, True)


def test_debug_before_the_command(tmp_path: Path, outcome: Callable[..., tuple[int, str, str]]) -> None:
    """--debug works before a command; in its arguments it is not ours."""
    code, _, err = outcome("--debug", "status", "--socket", tmp_path / "none")
    assert code == 2
    assert "Traceback" in err
    code, _, err = outcome("status", "--socket", tmp_path / "--debug")
    assert "Traceback" not in err


def test_the_module_runs_too_and_help_is_light() -> None:
    """`python -m specmine.cli --help` works and imports nothing heavy."""
    script = (
        "import sys, runpy; sys.argv = ['specmine', '--help']\n"
        "try: runpy.run_module('specmine.cli', run_name='__main__')\n"
        "except SystemExit as end: print('code', end.code)\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'rich', 'yaml', 'sqlite3', 'elftools', 'capstone'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("code 0\n[]\n")
    assert done.stderr == ""
