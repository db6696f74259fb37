"""Notifications for systemd (sd_notify(3)), in a few lines instead of a library."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping


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
