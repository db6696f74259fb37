"""Put the probes of watched functions on and off, process by process."""

from __future__ import annotations

from specmine.model.observation import Kind
from specmine.probes.kernel.links import LinkNews, Links
from specmine.probes.kernel.structs import COOKIE_PATH, COOKIE_SHARED, GENERATION_SHIFT

from .rate_limit import RateLimit
from .return_sites import ReturnSites
from .timed_function import TimedFunction

MAX_PIDS = 8
"""Processes watched at once through a file that others map too."""
DRAIN_NS = 200_000_000
"""How long return sites stay for calls that are open when the entry's probe goes."""
RARE_CALLS = 50
"""Calls within DRAIN_NS up to which open calls are waited for."""
IDENTITY = 0xFFFF_00FF
"""Slot and generation of a cookie, without the flags of a link."""


class Attachments:
    """The links of all watched functions, and which function each belongs to."""

    def __init__(self, links: Links, returns: ReturnSites, buckets: RateLimit) -> None:
        """Hold no link."""
        self._links, self._returns, self._buckets = links, returns, buckets
        self.owner: dict[int, TimedFunction] = {}
        """Link number -> function, for entries and return sites."""
        self._cleaning: set[int] = set()
        self._draining: list[tuple[int, int]] = []
        """(when, link): return sites whose function is no longer entered over a probe."""
        self._generation = 1

    def on(self, w: TimedFunction, pids: list[int]) -> None:
        """Ask for the probes of one attachment, return sites before entries; [0] stands for all processes."""
        self._generation = self._generation % 0x7FFF + 1
        w.cookies = (w.slot | self._generation << GENERATION_SHIFT, *w.cookies[:1])
        self._buckets.admit(w, self._generation)
        if w.by_site:
            self._own(w, self._returns.begin(w, pids, cookie_of(w, pids[0])))
        for pid in pids:
            self._enter(w, pid)

    def off(self, w: TimedFunction, now_ns: int) -> None:
        """Take the function's probes off."""
        for number in w.links:
            self._links.close(number)
        self.forget(w, now_ns)

    def forget(self, w: TimedFunction, now_ns: int) -> None:
        """Let go of the links: the entries' are closed, or were taken off by the holder."""
        for number in (*w.links, *w.site_links):
            self.owner.pop(number, None)
        # calls that are open now may still end at their return sites, where those of others end as well
        if self._is_rare(w, now_ns):
            self._draining += [(now_ns + DRAIN_NS, number) for number in w.site_links]
        else:
            for number in w.site_links:
                self._links.close(number)
        w.links, w.site_links = {}, set()
        if w.by_site and w.cookies:
            self._returns.end(w)
        w.switch_off(now_ns)

    def learn(self, w: TimedFunction) -> list[int]:
        """Ask for the return sites learnt since the last call, all in one link a file; return the pids."""
        pids = sorted(set(w.links.values()))
        self._own(w, self._returns.flush(w, pids, cookie_of(w, pids[0])))
        return pids

    def forked(self, w: TimedFunction, child: int) -> None:
        """A child has inherited the breakpoints of a link: adopt it or clean it."""
        crowded = len(set(w.links.values())) >= MAX_PIDS
        sites = self._returns.adopt(w, child, cookie_of(w, child)) if w.by_site else []
        entry = self._enter(w, child)
        if crowded:  # links that come and go make the kernel look at the child's text again
            del w.links[entry], self.owner[entry]
            self._cleaning.update((entry, *sites))
        else:
            self._own(w, sites)

    def gone(self, w: TimedFunction, pid: int) -> None:
        """Take off the links of a process that has ended."""
        for number in [n for n, p in w.links.items() if p == pid]:
            self._links.close(number)
            self.lost(w, number)

    def lost(self, w: TimedFunction, number: int) -> int:
        """Forget one link that is no more; return its pid."""
        self.owner.pop(number, None)
        w.site_links.discard(number)
        return w.links.pop(number, 0)

    def cleaned(self, news: LinkNews) -> bool:
        """Take in what became of a link that only comes and goes; False if it is none."""
        if news.id not in self._cleaning or news.what not in ("made", "failed"):
            return False
        self._cleaning.discard(news.id)
        if news.what == "made":
            self._links.close(news.id)
        return True

    def drain(self, now_ns: int) -> None:
        """Take return sites off whose calls have had time to end."""
        for when, number in self._draining:
            if now_ns >= when:
                self._links.close(number)
        self._draining = [each for each in self._draining if now_ns < each[0]]

    def due_ns(self) -> list[int]:
        """Return when return sites are to be taken off."""
        return [at_ns for at_ns, _ in self._draining]

    def _enter(self, w: TimedFunction, pid: int) -> int:
        cookies = [cookie_of(w, pid)]
        if w.by_site:
            program = "call_path_site" if w.watch.kind is Kind.PATH else "call_time_site"
            number = self._links.attach_site(w.module.fd, [w.site], cookies, program, pid)
        else:
            number = self._links.attach(w.module.fd, [w.site], cookies, w.watch.kind, pid)
        w.links[number] = pid
        self.owner[number] = w
        return number

    def _own(self, w: TimedFunction, numbers: list[int]) -> None:
        w.site_links.update(numbers)
        self.owner |= dict.fromkeys(numbers, w)

    def _is_rare(self, w: TimedFunction, now_ns: int) -> bool:
        """Tell whether waiting for open calls is cheap; of a function that is called often few are open."""
        if w.window is None or w.limited:
            return False
        watched_ns = max(1, w.watched_until(now_ns) - w.window.watched_ns)
        return self._buckets.calls(w) * DRAIN_NS / watched_ns < RARE_CALLS


def cookie_of(w: TimedFunction, pid: int) -> int:
    """Return the cookie of a link: which slot, in which attachment, counted how, for whom."""
    by_path = COOKIE_PATH if w.watch.kind is Kind.PATH else 0
    return w.cookies[0] | by_path | (0 if pid else COOKIE_SHARED)
