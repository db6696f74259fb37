"""``--check-config`` says which processes would be watched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from specmine.daemon.config.loader import parse_config
from specmine.daemon.preview import preview


def shown(programs: str) -> list[str]:
    """Return the lines about some programs."""
    return list(preview(parse_config(f"programs: {programs}")))


def test_processes_that_run_now_are_counted() -> None:
    """By executable, also those of the same file under another path; of one user; by pid."""
    program = Path("/usr/bin/sleep").resolve()
    with subprocess.Popen([program, "60"]) as one, subprocess.Popen([program, "60"]) as two:
        try:
            (line,) = shown(f"[{{exe: {program}, name: sleeper}}]")
            assert line.startswith("sleeper: ")
            assert int(line.split()[1]) >= 2
            own = int(shown(f"[{{exe: {program}, user: {os.getuid()}}}]")[0].split()[1])
            assert 2 <= own <= int(line.split()[1])
            assert "no process now" in shown(f"[{{exe: {program}, user: 64209}}]")[0]
            assert shown(f"[{{pid: {one.pid}}}]") == [
                f"pid {one.pid}: 1 process now ({one.pid}), and those that start later"
            ]
        finally:
            one.kill()
            two.kill()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """Nothing chosen, a file that may come, one that is no program, a process that is gone."""
    assert "no program is named" in shown("[]")[0]
    assert shown(f"[{{exe: {tmp_path / 'later'}}}]")[0].endswith("is not there yet: it is waited for")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert "cannot be watched" in shown(f"[{{exe: {script}}}]")[0]
    with subprocess.Popen(["/usr/bin/true"]) as ended:
        ended.wait()
    assert "there is no process" in shown(f"[{{pid: {ended.pid}}}]")[0]
    assert "no process now" in shown(f"[{{unit: specmine-none-{os.getpid()}.service}}]")[0]
