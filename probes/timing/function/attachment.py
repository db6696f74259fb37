"""The probes of one function while they are attached: links, cookies, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Attachment:
    """The links of one function, and how long they were on in all."""

    cookies: tuple[int, ...] = ()
    """Of this attachment and the one before: slot and generation, without the flags of a link."""
    links: dict[int, int] = field(default_factory=dict)
    """Link number of an entry probe -> pid, 0 for all."""
    site_links: set[int] = field(default_factory=set)
    """Link numbers of return-site probes."""
    on_ns: int = 0
    """Since when the probes are on, 0 while they are off."""
    off_at_ns: int = 0
    """When the on-phase ends, 0 if it does not."""
    watched_ns: int = 0
    """How long the probes were on before ``on_ns``."""
    missed: bool = False
    """True if calls may have gone uncounted since this was last reported."""
    part: float = 1.0
    """Share of the processes with the function that the probes are in."""

    @property
    def pids(self) -> set[int]:
        """The processes that the entry is linked for; {0}: all."""
        return set(self.links.values())

    def begin(self, cookie: int) -> None:
        """Begin an attachment under a new cookie; that of the last one stays known."""
        self.cookies = (cookie, *self.cookies[:1])
        self.missed = self.missed or self.watched_ns > 0

    def miss(self) -> None:
        """Note that calls may go uncounted in some process."""
        self.missed = True

    def reach(self, chosen: int, processes: int) -> None:
        """Note in how many of the processes with the function the probes will be."""
        self.part = chosen / processes
        self.missed = self.missed or chosen < processes

    def take_missed(self) -> bool:
        """Return whether calls may have gone uncounted since the last call."""
        missed, self.missed = self.missed, False
        return missed

    def add_entry(self, link: int, pid: int) -> None:
        """Take in the link of an entry probe."""
        self.links[link] = pid

    def add_sites(self, links: Iterable[int]) -> None:
        """Take in the links of return-site probes."""
        self.site_links.update(links)

    def remove(self, link: int) -> int:
        """Forget one link; return its pid."""
        self.site_links.discard(link)
        return self.links.pop(link, 0)

    def clear(self, now_ns: int) -> None:
        """Forget all links: the probes are off."""
        self.links, self.site_links = {}, set()
        self.switch_off(now_ns)

    def switch_on(self, at_ns: int, on_ns: int) -> None:
        """Note that the probes are on, for so long; 0: without an end."""
        self.on_ns = at_ns
        self.end_after(at_ns, on_ns)

    def end_after(self, now_ns: int, on_ns: int) -> None:
        """End the on-phase so long from now; 0: never."""
        self.off_at_ns = now_ns + on_ns if on_ns else 0

    def switch_off(self, now_ns: int) -> None:
        """Note that the probes are off."""
        self.watched_ns = self.watched_until(now_ns)
        self.on_ns = 0

    def watched_until(self, now_ns: int) -> int:
        """Return how long the probes were on in all, ns."""
        return self.watched_ns + (now_ns - self.on_ns if self.on_ns else 0)
