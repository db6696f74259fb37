"""The child process that runs experiments for its caller; under systemd a unit of its own.

It ends when its standard input is closed, after it has removed its load and its control group.
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
"""It is at the top level: a dash in its name would put it into another slice."""
_SYSTEMD = Path("/run/systemd/system")
_LONGEST_S = 3600


class ExperimentProcess:
    """A child process that answers one request."""

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
        in_unit = systemd_available() and _needs_confinement(request) if systemd is None else systemd
        command = [sys.executable, "-P", "-m", "specmine.experiments"]
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
        try:
            self._process.stdin.write(json.dumps({**request, "in_unit": in_unit}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            self._process.kill()
            raise HostError(f"the process of the experiments ended before it was asked: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def ended(self) -> bool:
        """Return True if the answer is there; do not wait."""
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
        data, errors = process.stdout.read(), process.stderr.read()
        self.close()
        try:
            answer = json.loads(data)
        except ValueError:
            last = (errors.decode("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
            raise HostError(f"the process of the experiments ended with {process.returncode} ({last})") from None
        if "error" in answer:
            error = answer["error"]
            kind = InputError if error["exit_code"] == InputError.exit_code else HostError
            raise kind(error["message"], remedy=error["remedy"])
        results: list[dict[str, Any]] = answer["results"]
        return results

    def stop(self) -> None:
        """Let it clean up and end soon; do not wait."""
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


def systemd_available() -> bool:
    """Return True if systemd runs here and this user may start units."""
    return _SYSTEMD.is_dir() and os.geteuid() == 0 and shutil.which("systemd-run") is not None


def _needs_confinement(request: Mapping[str, Any]) -> bool:
    """Return True if one of the requested experiments runs at the lowest weight."""
    from specmine.experiments.library import EXPERIMENTS  # noqa: PLC0415  1 MB, for those who run them

    return any(EXPERIMENTS[name].weight == "lowest" for name in request["names"])


def unit_command(environment: Mapping[str, str]) -> list[str]:
    """Return the command that starts another as a unit in the slice of lowest weight, with our standard streams."""
    properties = (
        "Delegate=yes",
        "CPUAccounting=yes",
        f"RuntimeMaxSec={_LONGEST_S}",
        "MemoryMax=1G",
        "TasksMax=1024",
        "OOMScoreAdjust=500",
        "KillMode=control-group",
    )
    passed = [name for name in ("PYTHONPATH", "STATE_DIRECTORY", "CACHE_DIRECTORY") if name in environment]
    # the child reads back the weight of the slice; systemd knows "idle" from 252 on
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
        *(f"--setenv={name}={environment[name]}" for name in passed),
    ]
