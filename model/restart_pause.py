"""How long to wait before a process that broke is started anew: not at all, then longer each time.

One that has run well for a while begins from the start.
"""

from __future__ import annotations

FIRST_NS, LONGEST_NS = 250_000_000, 60_000_000_000
FORGIVEN_NS = 60_000_000_000
"""After so long without another end the next pause is the first again."""


class RestartPause:
    """The pauses of one process."""

    def __init__(self, first_ns: int = FIRST_NS, longest_ns: int = LONGEST_NS) -> None:
        """Nothing has ended yet."""
        self._first_ns, self._longest_ns = first_ns, longest_ns
        self._pause_ns = self._ended_ns = 0
        self.ends = 0
        """How often it has ended."""

    def ended(self, now_ns: int) -> int:
        """Note an end; return when to start it again, ns."""
        again = self.ends and now_ns - self._ended_ns < FORGIVEN_NS + self._pause_ns
        self._pause_ns = min(self._longest_ns, max(self._first_ns, 2 * self._pause_ns)) if again else 0
        self._ended_ns = now_ns
        self.ends += 1
        return now_ns + self._pause_ns
