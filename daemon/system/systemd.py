"""Notifications for systemd (sd_notify(3)) and sockets from it (sd_listen_fds(3)), without a library."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, MutableMapping

from specmine.model.errors import InputError


class Notifier:
    """Sends messages to the service manager; without one it does nothing."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Take socket and watchdog from the environment."""
        self._address = environment.get("NOTIFY_SOCKET", "")
        self.watchdog_ns = _watchdog_ns(environment)
        """Longest time that the manager waits for a sign of life, ns; 0: it expects none."""

    def send(self, **fields: object) -> None:
        """Send ``KEY=value`` lines, such as ``send(READY=1, STATUS="watching")``.

        A manager that is not there or does not listen is no reason to fail.
        """
        if not self._address:
            return
        text = "\n".join(f"{key}={' '.join(str(value).split())}" for key, value in fields.items())
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            with contextlib.suppress(OSError):
                sender.sendto(text.encode("utf-8"), address)


def _watchdog_ns(environment: Mapping[str, str]) -> int:
    """Return the watchdog's interval if it is meant for this process."""
    microseconds, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not microseconds.isdigit() or (pid and pid != str(os.getpid())):
        return 0
    return int(microseconds) * 1000


_FIRST_PASSED = 3


def passed_socket(name: str, environment: MutableMapping[str, str] = os.environ) -> socket.socket | None:
    """Take the listening socket that the service manager passes under a name; None if it passes none.

    What tells of passed sockets is removed from the environment: it is not for children. Only the first socket of that
    name is taken.
    """
    pid = environment.pop("LISTEN_PID", "")
    count = environment.pop("LISTEN_FDS", "")
    names = environment.pop("LISTEN_FDNAMES", "").split(":")
    if pid != str(os.getpid()) or not count.isdigit():
        return None
    for number, each in zip(range(_FIRST_PASSED, _FIRST_PASSED + int(count)), names, strict=False):
        if each == name:
            os.set_inheritable(number, False)
            return socket.socket(fileno=number)
    return None


def metrics_socket(environment: MutableMapping[str, str] = os.environ) -> socket.socket | None:
    """Return the socket for metrics that was passed; None if the daemon has to open its own.

    Raises
    ------
    InputError
        The unit has no network and relies on a passed socket (SPECMINE_METRICS_SOCKET=passed), and there is none.
    """
    passed = passed_socket("metrics", environment)
    if passed is None and environment.get("SPECMINE_METRICS_SOCKET") == "passed":
        raise InputError(
            "systemd passed no socket for metrics",
            remedy="see systemctl status specmined.socket, or set metrics.listen to off",
        )
    return passed
