"""The client of a running daemon: one JSON object a line in each direction, over a unix socket."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from specmine.model.errors import HostError, InputError, NoData, SpecmineError

DEFAULT_SOCKET = "/run/specmine/specmined.sock"
PATIENCE_S = 30.0
"""So long people wait for an answer: where all CPUs are busy the daemon, which yields to all others, takes its time."""
_LARGEST_ANSWER = 256 << 20
_AGAIN_S = 0.02
_ERRORS: dict[int, type[SpecmineError]] = {2: InputError, 3: NoData, 4: HostError}


class NoDaemon(InputError):
    """Nothing answers at the socket."""


class NoAnswer(NoDaemon):
    """A daemon is there, but does not answer in time."""


class DaemonConnection:
    """A connection to the daemon. What was granted to it, such as a lease of the budget, ends with it."""

    def __init__(
        self,
        path: str | Path = DEFAULT_SOCKET,
        *,
        timeout_s: float = 5.0,
        loads: Callable[[bytes], Any] = json.loads,
    ) -> None:
        """Connect; ``loads`` reads the JSON of answers.

        Raises
        ------
        NoDaemon
            If nothing answers there.
        InputError
            If this user may not ask.
        """
        self.path = str(path)
        self._loads = loads
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._socket.settimeout(timeout_s)
        self._lines = self._socket.makefile("rb")
        try:
            self._connect(time.monotonic() + timeout_s)
        except BlockingIOError as error:
            self.close()
            raise NoAnswer(f"the daemon at {self.path} is busy with other clients", remedy="try again") from error
        except PermissionError as error:
            self.close()
            raise InputError(f"no right to ask the daemon at {self.path}", remedy="run as root") from error
        except OSError as error:
            self.close()
            raise NoDaemon(
                f"no daemon answers at {self.path} ({error.strerror or error})",
                remedy="start specmined, or read a store with --store FILE",
            ) from error

    def _connect(self, until_s: float) -> None:
        """Connect; wait while more clients than the daemon accepts at once try the same (BlockingIOError)."""
        while True:
            try:
                self._socket.connect(self.path)
                return
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    raise
                time.sleep(_AGAIN_S)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, ``{"command": ...}``, and return its result.

        Raises
        ------
        SpecmineError
            What the daemon answered instead of a result, with its exit code.
        NoDaemon
            If the daemon went away.
        NoAnswer
            If it does not answer in time.
        """
        try:
            with contextlib.suppress(
                BrokenPipeError
            ):  # a daemon that has no place says so before it ends the connection
                self._socket.sendall(json.dumps(request).encode("utf-8") + b"\n")
            line = self._lines.readline(_LARGEST_ANSWER)
        except TimeoutError as error:
            raise NoAnswer(f"the daemon at {self.path} does not answer ({error})", remedy="look at its log") from error
        except OSError as error:
            raise NoDaemon(
                f"the daemon at {self.path} does not answer ({error.strerror or error})",
                remedy="look at its log",
            ) from error
        if not line.endswith(b"\n"):
            raise NoDaemon(f"the daemon at {self.path} ended the connection", remedy="look at its log")
        return _result(line, self.path, self._loads)

    def close(self) -> None:
        """End the connection."""
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the connection."""
        self.close()


def ask(path: str | Path, request: Mapping[str, Any], *, timeout_s: float = 5.0) -> dict[str, Any]:
    """Send one request to the daemon and return its result; errors as of ``DaemonConnection``."""
    with DaemonConnection(path, timeout_s=timeout_s) as connection:
        return connection.ask(request)


def _result(line: bytes, path: str, loads: Callable[[bytes], Any]) -> dict[str, Any]:
    try:
        answer = loads(line)
        if answer["ok"]:
            return dict(answer["result"])
        code, message, remedy = answer["exit_code"], str(answer["error"]), str(answer.get("remedy", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"what answers at {path} is no specmine daemon") from error
    raise _ERRORS.get(code, InputError)(message, remedy=remedy)
