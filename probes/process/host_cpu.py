"""For how long the CPUs of the host were busy: with whom, it does not tell."""

from __future__ import annotations

import os
from pathlib import Path

UPTIME = Path("/proc/uptime")
LOOK_NS = 250_000_000
"""From look to look."""


class HostCpu:
    """The CPU time of all processes together, also of those that nobody watches, and what the hypervisor took."""

    def __init__(self, uptime: Path = UPTIME) -> None:
        """Read nothing yet."""
        self._uptime, self._cpus = uptime, os.sysconf("SC_NPROCESSORS_ONLN")
        self._busy_ns, self._looked_ns = 0, -LOOK_NS

    def busy_ns(self, now_ns: int) -> int:
        """Return the time since the boot in which CPUs were not idle, summed over them; 0 if it is not known.

        One short line, which takes no longer on a host of many CPUs; waiting for disks counts as busy there.
        """
        if now_ns - self._looked_ns >= LOOK_NS:
            self._looked_ns = now_ns
            try:
                up_s, idle_s = map(float, self._uptime.read_text(encoding="ascii").split())
                self._busy_ns = max(0, round((self._cpus * up_s - idle_s) * 1e9))
            except (OSError, ValueError):
                self._busy_ns = 0
        return self._busy_ns
