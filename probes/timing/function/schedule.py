"""When something is due at one function: the next on-phase, another choice of processes, checks."""

from __future__ import annotations

from dataclasses import dataclass

ROTATE_NS = 10_000_000_000
"""How often other processes get their turn where not all are probed."""
CHECK_NS = 1_000_000_000
"""How often the traps of a function that stays on are compared with its calls."""
COMPARE_NS = 10_000_000_000
"""How often the code that a probe goes into is compared with its file."""


@dataclass(slots=True, eq=False)
class Schedule:
    """The due times of one function, CLOCK_MONOTONIC ns."""

    next_on_ns: int = 0
    rotate_ns: int = 0
    check_ns: int = 0
    compare_ns: int = 0
    early_ns: int = 0
    """From then on the probes may be attached before their time, with those of a function around this one."""
    patient_ns: int = 0
    """Until then the return sites that were asked for are waited for."""
    gather_ns: int = 0
    """Until then callees that share the on-phase are waited for; 0: no on-phase is due."""

    def wait_until(self, when_ns: int) -> None:
        """Wait for answers, but not longer than until then."""
        self.patient_ns = when_ns

    def attach_at(self, when_ns: int) -> None:
        """Attach the probes at this time."""
        self.next_on_ns = when_ns

    def attach_by(self, when_ns: int) -> None:
        """Attach the probes at this time at the latest."""
        self.next_on_ns = min(self.next_on_ns, when_ns)

    def pause(self, now_ns: int, pause_ns: int, length: float) -> None:
        """Attach the probes after a pause of this mean and relative length, or after half of the mean if others are."""
        self.next_on_ns, self.early_ns = now_ns + int(pause_ns * length), now_ns + pause_ns // 2

    def join(self, now_ns: int) -> None:
        """Attach the probes now if enough of the pause has passed."""
        if self.early_ns and now_ns >= self.early_ns:
            self.next_on_ns = min(self.next_on_ns, now_ns)

    def gather(self, until_ns: int) -> int:
        """Wait for callees, if that has not begun; return until when."""
        self.gather_ns = self.gather_ns or until_ns
        return self.gather_ns

    def attached(self, now_ns: int) -> None:
        """Begin the periods of an attachment."""
        self.gather_ns = 0
        self.rotate_ns, self.check_ns = now_ns + ROTATE_NS, now_ns + CHECK_NS

    def checked(self, now_ns: int) -> None:
        """Note that the traps were compared with the calls."""
        self.check_ns = now_ns + CHECK_NS

    def rotated(self, now_ns: int) -> None:
        """Note that other processes had a chance."""
        self.rotate_ns = now_ns + ROTATE_NS

    def take_compare(self, now_ns: int) -> bool:
        """Tell whether the code is to be compared with its file now."""
        due = now_ns >= self.compare_ns
        if due:
            self.compare_ns = now_ns + COMPARE_NS
        return due
