"""How much CPU time requests from outside may take: a share of a CPU, saved up for a while.

Beyond a third of the daemon's budget it comes on top of that, so it has bounds of its own.
"""

from __future__ import annotations

SHARE = 0.05
"""CPU seconds a second."""
MOST_S = 2.0
"""CPU seconds that one who asked nothing for long may take at once."""


class CpuAllowances:
    """What each client has left. Times are of any monotonic clock, in seconds; for one thread."""

    def __init__(self, share: float = SHARE, most_s: float = MOST_S) -> None:
        """Begin with all that can be saved up."""
        self._share, self._most_s = share, most_s
        self._full_at_s: dict[int, float] = {}
        """When the allowance of each client is whole again."""

    def spend(self, client: int, cpu_s: float, now_s: float) -> None:
        """Account what answering a client took; a request is answered whole, so this may be more than was left."""
        self._full_at_s = {each: full_s for each, full_s in self._full_at_s.items() if full_s > now_s}
        self._full_at_s[client] = max(self._full_at_s.get(client, now_s), now_s) + cpu_s / self._share

    def wait_s(self, client: int, now_s: float) -> float:
        """Return in how many seconds the next request of a client may be answered, 0 for now."""
        return max(0.0, self._full_at_s.get(client, now_s) - now_s - self._most_s / self._share)
