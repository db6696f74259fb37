"""The links of all timed functions: attach and detach them, process by process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specmine.probes.kernel.links import LinkNews, Links
from specmine.probes.kernel.structs import COOKIE_PATH, COOKIE_SHARED, GENERATION_SHIFT

from .function.timed_function import TimedFunction
from .return_probes import ReturnProbes

MAX_PIDS = 8
"""Processes probed at once through a file that others map too."""
DRAIN_NS = 200_000_000
"""How long return sites stay for calls that are open when the entry's probe is detached."""
RARE_CALLS = 50
"""Calls within DRAIN_NS up to which open calls are waited for."""


class LinkTable:
    """The links, and which function each belongs to."""

    def __init__(self, links: Links, returns: ReturnProbes, leaving: Callable[[TimedFunction, int], None]) -> None:
        """Hold no link; ``leaving`` is called before the probes of a function are detached."""
        self._leaving = leaving
        self._links, self._returns = links, returns
        self.owner: dict[int, TimedFunction] = {}
        """Link number -> function, for entries and return sites."""
        self._cleaning: set[int] = set()
        self._draining: list[tuple[int, int]] = []
        """(when, link): return sites whose function is no longer entered over a probe."""
        self._generation = 1

    def attach(self, w: TimedFunction, pids: list[int], companions: Sequence[int] = ()) -> None:
        """Ask for the probes of one attachment, return sites before entries; [0] stands for all processes.

        ``companions``: links of others that end as soon as the kernel's bucket of this function is empty.
        """
        self._generation = self._generation % 0x7FFF + 1
        w.attachment.begin(w.slot.number | self._generation << GENERATION_SHIFT)
        w.slot.set_timed_share(w.watch.timed_share if w.sampled else 1.0)
        w.slot.set_generation(self._generation)
        if w.by_site:
            self._add_sites(w, self._returns.begin(w, pids, cookie_of(w, pids[0])))
        for pid in pids:
            self._enter(w, pid, companions)

    def detach(self, w: TimedFunction, now_ns: int) -> None:
        """Detach the function's probes, and forget them; the holder may have detached them already."""
        self._leaving(w, now_ns)
        for number in w.attachment.links:
            self._links.close(number)
        sites = w.attachment.site_links
        for number in (*w.attachment.links, *sites):
            self.owner.pop(number, None)
        # calls that are open now may still end at their return sites, where those of others end as well
        if self._is_rare(w, now_ns):
            self._draining += [(now_ns + DRAIN_NS, number) for number in sites]
        else:
            for number in sites:
                self._links.close(number)
        if w.by_site and w.attachment.cookies:
            self._returns.end(w)
        w.attachment.clear(now_ns)

    def learn(self, w: TimedFunction) -> None:
        """Ask for the return sites learned since the last call, all in one link a file."""
        pids = sorted(w.attachment.pids)
        self._add_sites(w, self._returns.flush(w, pids, cookie_of(w, pids[0])))

    def forked(self, w: TimedFunction, child: int) -> None:
        """Adopt or clean a child: it has inherited the breakpoints of a link."""
        w.attachment.miss()  # what the child calls before its link is made
        crowded = len(w.attachment.pids) >= MAX_PIDS
        sites = self._returns.adopt(w, child, cookie_of(w, child)) if w.by_site else []
        entry = self._enter(w, child)
        if crowded:  # links that come and go make the kernel look at the child's text again
            w.attachment.remove(entry)
            del self.owner[entry]
            self._cleaning.update((entry, *sites))
        else:
            self._add_sites(w, sites)

    def gone(self, w: TimedFunction, pid: int) -> None:
        """Close the links of a process that has ended."""
        for number in [link for link, linked in w.attachment.links.items() if linked == pid]:
            self._links.close(number)
            self.lost(w, number)

    def lost(self, w: TimedFunction, number: int) -> int:
        """Forget one link that is no more; return its pid."""
        self.owner.pop(number, None)
        return w.attachment.remove(number)

    def cleaned(self, news: LinkNews) -> bool:
        """Take in what became of a link that only comes and goes; False if it is none."""
        if news.id not in self._cleaning or news.what not in ("made", "failed"):
            return False
        self._cleaning.discard(news.id)
        if news.what == "made":
            self._links.close(news.id)
        return True

    def drain(self, now_ns: int) -> None:
        """Close return sites whose calls have had time to end."""
        for when, number in self._draining:
            if now_ns >= when:
                self._links.close(number)
        self._draining = [(when, number) for when, number in self._draining if now_ns < when]

    def due_ns(self) -> list[int]:
        """Return when return sites are to be closed."""
        return [when for when, _ in self._draining]

    def _enter(self, w: TimedFunction, pid: int, companions: Sequence[int] = ()) -> int:
        cookies = [cookie_of(w, pid)]
        if w.by_site:
            number = self._links.attach_site(w.module.fd, [w.site], cookies, w.probe.entry_at_site, pid, companions)
        else:
            number = self._links.attach(w.module.fd, [w.site], cookies, w.watch.kind, pid, companions)
        w.attachment.add_entry(number, pid)
        self.owner[number] = w
        return number

    def _add_sites(self, w: TimedFunction, numbers: list[int]) -> None:
        w.attachment.add_sites(numbers)
        self.owner |= dict.fromkeys(numbers, w)

    def _is_rare(self, w: TimedFunction, now_ns: int) -> bool:
        """Tell whether waiting for open calls is cheap; of a function that is called often few are open."""
        if w.window is None or w.bucket.was_empty:
            return False
        watched_ns = max(1, w.attachment.watched_until(now_ns) - w.window.watched_ns)
        return w.in_window("calls") * DRAIN_NS / watched_ns < RARE_CALLS


def cookie_of(w: TimedFunction, pid: int) -> int:
    """Return the cookie of a link: which slot, in which attachment, counted how, for whom."""
    by_path = COOKIE_PATH if w.probe.by_path else 0
    return w.attachment.cookies[0] | by_path | (0 if pid else COOKIE_SHARED)
