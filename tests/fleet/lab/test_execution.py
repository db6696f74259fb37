"""A program is run to its end, or ended; nothing of it stays behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specmine.fleet.lab.execution import Ended, Place, command_line, execute
from specmine.model.clock import SystemClock
from specmine.model.errors import InputError
from tests.support.product import wait_until


def _run(tmp_path: Path, script: str, **more: object) -> Ended:
    place = Place(folder=tmp_path, stdout=tmp_path / "out", stderr=tmp_path / "err", environment={"X": "y"})
    return execute(["/bin/sh", "-c", script], place, SystemClock(), timeout_s=30, **more)  # type: ignore[arg-type]


def test_how_it_ended(tmp_path: Path) -> None:
    """Its status, its last words, where it ran and with which environment."""
    assert _run(tmp_path, 'echo "$X" "$PWD"').why == ""
    assert (tmp_path / "out").read_text() == f"y {tmp_path}\n"
    assert _run(tmp_path, "echo first >&2; echo last words >&2; exit 3").why == "exit status 3: last words"
    assert _run(tmp_path, "kill -SEGV $$").why == "killed by SIGSEGV"
    place = Place(folder=tmp_path, stdout=tmp_path / "out", stderr=tmp_path / "err")
    assert "no/such" in execute(["no/such"], place, SystemClock(), timeout_s=9).why
    with pytest.raises(InputError, match="no user"):
        execute(["true"], Place(folder=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e", user="nobody-there"),
                SystemClock(), timeout_s=9)  # fmt: skip


def test_one_that_does_not_end(tmp_path: Path) -> None:
    """It is killed with what it started in the background."""
    place = Place(folder=tmp_path, stdout=tmp_path / "out", stderr=tmp_path / "err")
    ended = execute(["/bin/sh", "-c", "sleep 99 & echo $! > pid; wait"], place, SystemClock(), timeout_s=0.2)
    assert (ended.status, ended.given_up) == (None, False)
    assert "did not end" in ended.why
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _alive(child), "the background process is gone")


def test_one_that_is_no_longer_ours(tmp_path: Path) -> None:
    """Signs of life are given while it runs; the first that is refused ends it."""
    signs = iter([True, True, False])
    ended = _run(tmp_path, "sleep 99", alive=lambda: next(signs), every_s=0.02)
    assert ended.given_up and ended.seconds < 20


def test_it_dies_with_its_runner(tmp_path: Path) -> None:
    """A runner that is killed leaves no program that would disturb the next run."""
    script = (
        "from pathlib import Path\n"
        "from specmine.fleet.lab.execution import Place, execute\n"
        "from specmine.model.clock import SystemClock\n"
        f"at = Path({str(tmp_path)!r})\n"
        "place = Place(folder=at, stdout=at / 'out', stderr=at / 'err')\n"
        "execute(['/bin/sh', '-c', 'echo $$ > pid; exec sleep 99'], place, SystemClock(), timeout_s=99)\n"
    )
    pid = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", script]) as runner:
        wait_until(lambda: pid.exists() and bool(pid.read_text().strip()), "the program runs")
        runner.send_signal(signal.SIGKILL)
    program = int(pid.read_text())
    wait_until(lambda: not _alive(program), "the program is gone")


def test_placeholders() -> None:
    """In any word; a shell is not asked."""
    assert command_line("./x --n={calls} '{output}' '$HOME'", 7, Path("/r/o")) == ["./x", "--n=7", "/r/o", "$HOME"]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
