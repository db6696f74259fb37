"""The process: it serves a store, gives up root, and ends with the exit codes of every command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import patient


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command and give its process and the address that it tells."""
    command = [sys.executable, "-m", "specmine.cli", "web", "--listen", "127.0.0.1:0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "the page is at http://127.0.0.1:" in line, line
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def test_it_serves_a_store_as_nobody_until_interrupted(keep: Callable[..., Path], document: dict[str, Any]) -> None:
    store = keep(document)
    if os.geteuid() == 0:
        for folder in (store, *store.parents):
            if not folder.stat().st_mode & 0o005 and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o055)
    with serving("--store", store) as (process, address):
        with urllib.request.urlopen(f"{address}functions", timeout=patient(10)) as answer:
            assert answer.status == 200
            assert b"<h1>Functions</h1>" in answer.read()
        uid = Path(f"/proc/{process.pid}").stat().st_uid
        assert uid != 0 or os.geteuid() != 0
        process.send_signal(signal.SIGINT)
        assert process.wait(patient(10)) in (0, 130, -signal.SIGINT)


def test_what_cannot_be_served_is_one_line(outcome: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, error = outcome("web", "--listen", f"127.0.0.1:{port}")
        assert code == 2
        assert "cannot listen" in error
    for arguments in (["--listen", "nowhere"], ["--store", tmp_path / "no.db", "--socket", "x"]):
        assert outcome("web", *arguments)[0] == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives up root")
def test_an_unknown_user_is_refused(outcome: Callable[..., tuple[int, str, str]]) -> None:
    code, _, error = outcome("web", "--listen", "127.0.0.1:0", "--user", "no-such-user")
    assert code == 2
    assert "no-such-user" in error
