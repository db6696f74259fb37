"""How others have experiments run: a child process that answers one request, under systemd a unit of its own.

Closing the child's standard input ends it: it takes its load and its control group away first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmine.model.errors import HostError, InputError

SLICE = "specmineexperiments.slice"
"""At the top level of contention: a dash in its name would put it into another slice."""
_SYSTEMD = Path("/run/systemd/system")
_LONGEST_S = 3600


class Running:
    """A request that is being answered."""

    def __init__(self, request: Mapping[str, Any], *, systemd: bool | None = None) -> None:
        """Start.

        Parameters
        ----------
        request : mapping
            What ``runner.server.serve`` takes.
        systemd : bool, optional
            Whether systemd starts it; by default if it runs here and this is root.

        Raises
        ------
        HostError
            If it cannot be started.
        """
        in_unit = managed() and _to_hold_down(request) if systemd is None else systemd
        command = [sys.executable, "-m", "specmine.experiments"]
        if in_unit:
            command = [*unit_command(os.environ), *command]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise HostError(f"the process of the experiments cannot be started: {error}") from error
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**request, "in_unit": in_unit}).encode() + b"\n")
        self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def ended(self) -> bool:
        """Tell whether the answer is there; does not wait."""
        return self._process.poll() is not None

    def answer(self) -> list[dict[str, Any]]:
        """Wait for the results and return them.

        Raises
        ------
        SpecmineError
            If there are none.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        data, said = process.stdout.read(), process.stderr.read()
        self.close()
        try:
            answer = json.loads(data)
        except ValueError:
            last = (said.decode("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
            raise HostError(f"the process of the experiments ended with {process.returncode} ({last})") from None
        if "error" in answer:
            error = answer["error"]
            kind = InputError if error["exit_code"] == InputError.exit_code else HostError
            raise kind(error["message"], remedy=error["remedy"])
        results: list[dict[str, Any]] = answer["results"]
        return results

    def stop(self) -> None:
        """Let it end soon, after it has cleaned up; does not wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self) -> None:
        """End it if it still runs, and wait until it has cleaned up."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def managed() -> bool:
    """Tell whether units are started by systemd here, and this user may."""
    return _SYSTEMD.is_dir() and os.geteuid() == 0 and shutil.which("systemd-run") is not None


def _to_hold_down(request: Mapping[str, Any]) -> bool:
    """Tell whether an experiment among those asked for runs at the lowest weight."""
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415  1 MB, for those who run them

    return any(EXPERIMENTS[name].weight == "lowest" for name in request["names"])


def unit_command(environment: Mapping[str, str]) -> list[str]:
    """Return what starts a command as a unit of its own in the slice of lowest weight, its standard streams ours."""
    properties = (
        "Delegate=yes",
        "CPUAccounting=yes",
        f"RuntimeMaxSec={_LONGEST_S}",
        "MemoryMax=1G",
        "TasksMax=1024",
        "OOMScoreAdjust=500",
        "KillMode=control-group",
    )
    kept = [name for name in ("PYTHONPATH", "STATE_DIRECTORY", "CACHE_DIRECTORY") if name in environment]
    # the child reads back what the slice became; idle: systemd 252
    weights = " || ".join(f"systemctl set-property --runtime {SLICE} CPUWeight={each}" for each in ("idle", "1"))
    return [
        "/bin/sh",
        "-c",
        f'{{ {weights}; }} </dev/null >/dev/null 2>&1; exec "$@"',
        "sh",
        "systemd-run",
        "--quiet",
        "--pipe",
        "--wait",
        "--collect",
        f"--slice={SLICE}",
        *(f"--property={each}" for each in properties),
        *(f"--setenv={name}={environment[name]}" for name in kept),
    ]
