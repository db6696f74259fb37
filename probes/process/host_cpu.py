"""For how long the CPUs of the host were busy: with whom, it does not tell."""

from __future__ import annotations

import os
from pathlib import Path

UPTIME = Path("/proc/uptime")


class HostCpu:
    """The CPU time of all processes together, also of those that nobody watches, and what the hypervisor took."""

    def __init__(self, uptime: Path = UPTIME) -> None:
        """Read nothing yet."""
        self._uptime, self._cpus = uptime, os.sysconf("SC_NPROCESSORS_ONLN")

    @property
    def busy_ns(self) -> int:
        """Return the time since the boot in which CPUs were not idle, summed over them; 0 if it is not known.

        One short line, which takes no longer on a host of many CPUs; waiting for disks counts as busy there.
        """
        try:
            up_s, idle_s = map(float, self._uptime.read_text(encoding="ascii").split())
        except (OSError, ValueError):
            return 0
        return max(0, round((self._cpus * up_s - idle_s) * 1e9))
