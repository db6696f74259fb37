"""Watch functions: give each a slot, judge it, put its probes on and off as asked and as processes come and go."""

from __future__ import annotations

import os
import random

import numpy as np
from numpy.typing import NDArray

from specmine.mining.observation import Kind, Observation, Reason

from .batch import Activity, Refusal, Watch
from .bystanders import Bystanders
from .facts import Grade, Site
from .layout import COOKIE_PATH, COOKIE_SHARED, GENERATION_SHIFT, MAX_SLOTS
from .links import LinkNews, Links
from .modules import VDSO, Modules
from .naming import Naming
from .programs import Programs
from .returns import MAX_SITES, ReturnSites
from .safety import forbids_replacing, refuses_returns
from .watched import Watched
from .windows import Windows

MAX_PIDS = 8
"""Processes watched at once through a file that others map too."""
MAX_PERF = 6
"""Functions watched at once over perf events, which come off slowly."""
ROTATE_NS = 10_000_000_000
RETRY_NS = 100_000_000
DRAIN_NS = 200_000_000
HOPELESS_CALLS = 300
"""Calls after which a function is given up if none of them returned to where a probe can be."""
RARE_CALLS = 50
"""Calls within DRAIN_NS up to which open calls are waited for."""
PASSED_BY, PASSED_BY_LEAST = 6, 500
"""Traps for each call, and in all, at which a function's return sites are too busy; a timed call makes two."""
_IDENTITY = 0xFFFF_00FF
NO_LIMIT = 1 << 62
_NO_SUCH_PROCESS = 3


class Watching:
    """All watched functions and their links."""

    def __init__(
        self,
        links: Links,
        modules: Modules,
        naming: Naming,
        programs: Programs,
        bystanders: Bystanders,
        windows: Windows,
        returns: ReturnSites,
        slots: NDArray[np.void],
        counters: NDArray[np.void],
        *,
        emulates_nops: bool,
    ) -> None:
        """Watch nothing yet."""
        self._links, self._modules, self._naming = links, modules, naming
        self._programs, self._bystanders, self.windows = programs, bystanders, windows
        self._slots, self._counters, self._returns = slots, counters, returns
        self._draining: list[tuple[int, int]] = []
        """(when, link): return sites whose function is no longer entered over a probe."""
        self._emulates_nops = emulates_nops
        self.by_function: dict[str, Watched] = {}
        self.refusals: list[Refusal] = []
        self._by_link: dict[int, Watched] = {}
        self._cleaning: set[int] = set()
        self._free = list(range(MAX_SLOTS - 1))  # the last one is calibration's
        self._generation = 1
        self._random = random.Random(0)
        self._sites: dict[str, Site] = {}
        self._late: list[Activity] = []
        self._unnamed: dict[str, Watch] = {}
        """Functions known from an earlier life of ours, whose binary has not been seen in this one."""

    # requests

    def watch(self, watch: Watch, now_ns: int) -> None:
        """Begin to watch a function, or go on with other parameters."""
        known = self.by_function.get(watch.function)
        if known is not None and known.watch.kind is watch.kind:
            was, known.watch = known.watch, watch
            if (was.on_ns, was.period_ns) != (watch.on_ns, watch.period_ns):
                known.off_at_ns = now_ns + watch.on_ns if watch.on_ns else 0
                known.next_on_ns = min(known.next_on_ns, now_ns + watch.period_ns)
            self._fill_bucket(known)
            return
        self.unwatch(watch.function, now_ns)
        if watch.function not in self._naming.functions:
            self._unnamed[watch.function] = watch
            return
        function, module = self._naming.functions[watch.function], self._naming.module_of[watch.function]
        if module.file == VDSO:
            self._refuse(watch.function, Kind.COUNT, "vdso", "the kernel's own code cannot be probed")
            return
        if not self._free or (self._links.mode == "perf" and len(self.by_function) >= MAX_PERF):
            self._refuse(watch.function, watch.kind, "slots", "all places for watched functions are taken")
            return
        w = Watched(function, module, watch, self._free.pop(0))
        self.by_function[watch.function] = w
        known_site = self._sites.get(function.key)
        if known_site is not None:
            self._judge(w, known_site, now_ns)
        else:
            self._ask_site(w, now_ns)

    def unwatch(self, function: str, now_ns: int) -> None:
        """Take the probes off; an unfinished window that holds enough becomes an observation."""
        self._unnamed.pop(function, None)
        w = self.by_function.get(function)
        if w is None:
            return
        self.windows.drain_paths(self.by_function.values())
        self.windows.cut_rest(w, now_ns)
        self._drop(w, now_ns)

    def _drop(self, w: Watched, now_ns: int) -> None:
        activity = self.windows.activity(w, now_ns)
        if activity is not None:
            self._late.append(activity)
        self._off(w, now_ns)
        if self.by_function.get(w.function.key) is w:
            del self.by_function[w.function.key]
            self._free.append(w.slot)

    def _refuse(self, function: str, kind: Kind, code: str, text: str) -> None:
        self.refusals.append(Refusal(function=function, kind=kind, reason=Reason(code=code, text=text)))

    # the gate

    def _ask_site(self, w: Watched, now_ns: int) -> None:
        def then(answer: object) -> None:
            if isinstance(answer, list) and answer and isinstance(answer[0], Site):
                self._sites[w.function.key] = answer[0]
                self._judge(w, answer[0], now_ns)
            elif self.by_function.get(w.function.key) is w:
                self._refuse(w.function.key, Kind.COUNT, "unreadable", f"its code cannot be read: {answer}")
                self._drop(w, now_ns)

        self._modules.ask(
            "sites", w.module.fd, then, offsets=[w.function.offset], kernel_emulates_nops=self._emulates_nops
        )

    def _judge(self, w: Watched, site: Site, now_ns: int) -> None:
        if self.by_function.get(w.function.key) is not w:
            return
        if site.grade is Grade.REFUSED:
            self._refuse(w.function.key, Kind.COUNT, site.code, site.text)
            self._drop(w, now_ns)
            return
        w.site, w.stepped, w.ready = site.offset, site.grade is Grade.STEPPED, True
        if w.stepped and not w.function.stepped:
            w.function = self._naming.as_stepped(w.function)

    def _mapped(self) -> list[int]:
        """Return the layouts in use; [] while what some process maps is not known."""
        layouts = {m.layout for m in self._programs.members.values()}
        known = self._modules.layouts
        settled = all(
            n in known and all(module is None or module.settled for module in known[n].modules) for n in layouts
        )
        return sorted(layouts) if settled else []

    def _way(self, w: Watched, layouts: list[int]) -> tuple[bool, Reason | None]:
        """Return whether its returns must be timed by return sites, and why they cannot be timed at all."""
        if w.watch.kind is Kind.COUNT:
            return False, None
        mapped = {m for n in layouts for m in self._modules.layouts[n].modules if m is not None}
        modules = sorted(mapped, key=lambda m: m.path)
        reason = forbids_replacing(modules)
        if reason is not None and self._links.mode == "perf":
            return True, reason  # probes that come off slowly cannot follow return sites
        return reason is not None, refuses_returns(modules)

    def recheck_safety(self, now_ns: int) -> None:
        """Change how returns are timed at once if a library has come that can unwind the stack."""
        layouts = self._mapped()
        for w in list(self.by_function.values()):
            if not w.links or not layouts:
                continue
            by_site, reason = self._way(w, layouts)
            if reason is not None:
                self.refusals.append(Refusal(function=w.function.key, kind=Kind.TIME, reason=reason))
                self._drop(w, now_ns)
            elif by_site and not w.by_site:
                self._off(w, now_ns)
                w.window, w.next_on_ns = None, now_ns

    def seen_return(self, cookie: int, tgid: int, address: int) -> None:
        """A call is going to return to a place that is not probed: learn it."""
        member = self._programs.members.get(tgid)
        w = next((w for w in self.by_function.values() if w.cookies and w.cookies[0] == cookie & _IDENTITY), None)
        if w is not None and member is not None and w.by_site:
            self._returns.learn(w, member.layout, address)

    # probes on and off

    def _on(self, w: Watched, now_ns: int) -> None:
        layouts = self._mapped()
        if not layouts:
            return
        by_site, reason = self._way(w, layouts)
        if by_site != w.by_site:
            w.by_site, w.window = by_site, None
        if reason is not None:
            self.refusals.append(Refusal(function=w.function.key, kind=Kind.TIME, reason=reason))
            self._drop(w, now_ns)
            return
        pids = self._pids(w)
        if not pids:
            w.next_on_ns = now_ns + RETRY_NS
            return
        self._fill_bucket(w)
        # the counters stand still until the links are made: what they show now is where counting begins
        if not w.watched_ns:
            self.windows.start_telling(w)
        if w.window is None:
            self.windows.begin(w, now_ns)
        self._generation = self._generation % 0x7FFF + 1
        w.cookies = (w.slot | self._generation << GENERATION_SHIFT, *w.cookies[:1])
        self._slots[w.slot] = (self._slots[w.slot]["limit"], self._generation)
        self._attach_all(w, pids)
        w.rotate_ns = now_ns + ROTATE_NS

    def _pids(self, w: Watched) -> list[int]:
        """Choose the processes to link for: [0] for all, if only watched ones map the file.

        All are of one lifetime, so that an observation is of one lifetime: lifetimes take turns.
        """
        layouts = self._modules.layouts
        mapping = [
            m for m in self._programs.members.values() if m.layout in layouts and w.module in layouts[m.layout].modules
        ]
        if not mapping:
            return []
        lifetimes = sorted({m.lifetime for m in mapping})
        touched = {w.module, *(self._returns.modules(w) if w.by_site else ())}
        alone = len(lifetimes) == 1 and not any(self._bystanders.share(m.file) for m in touched)
        if w.lifetime in lifetimes and w.window is not None and self.windows.timed(w):
            chosen = w.lifetime  # finish the window first
        else:
            chosen = self._random.choice(lifetimes)
        if chosen != w.lifetime:
            w.lifetime, w.window = chosen, None
        if alone:
            return [0]
        pids = sorted(m.pid for m in mapping if m.lifetime == chosen)
        return sorted(self._random.sample(pids, MAX_PIDS)) if len(pids) > MAX_PIDS else pids

    def _attach_all(self, w: Watched, pids: list[int]) -> None:
        if w.by_site:
            for number in self._returns.begin(w, pids, self._cookie(w, pids[0])):
                w.site_links.add(number)
                self._by_link[number] = w
        for pid in pids:
            self._attach(w, pid)

    def _attach(self, w: Watched, pid: int) -> int:
        cookies = [self._cookie(w, pid)]
        if w.by_site:
            program = "call_path_site" if w.watch.kind is Kind.PATH else "call_time_site"
            number = self._links.attach_site(w.module.fd, [w.site], cookies, program, pid)
        else:
            number = self._links.attach(w.module.fd, [w.site], cookies, w.watch.kind, pid)
        w.links[number] = pid
        self._by_link[number] = w
        return number

    @staticmethod
    def _cookie(w: Watched, pid: int) -> int:
        by_path = COOKIE_PATH if w.watch.kind is Kind.PATH else 0
        return w.cookies[0] | by_path | (0 if pid else COOKIE_SHARED)

    def _off(self, w: Watched, now_ns: int) -> None:
        for number in w.links:
            self._links.close(number)
        self._unlink(w, now_ns)

    def _unlink(self, w: Watched, now_ns: int) -> None:
        """Forget the links: they are closed, or were taken off by the holder."""
        for number in (*w.links, *w.site_links):
            self._by_link.pop(number, None)
        # calls that are open now may still end at their return sites, where those of others end as well
        wait_ns = DRAIN_NS if self._is_rare(w, now_ns) else 0
        if wait_ns:
            self._draining += [(now_ns + wait_ns, number) for number in w.site_links]
        else:
            for number in w.site_links:
                self._links.close(number)
        w.links, w.site_links = {}, set()
        if w.by_site and w.cookies:
            self._returns.end(w)
        w.switch_off(now_ns)

    def hear(self, news: LinkNews, now_ns: int) -> None:
        """Take in what the holder said about one link."""
        if news.id in self._cleaning and news.what in ("made", "failed"):
            self._cleaning.discard(news.id)
            if news.what == "made":
                self._links.close(news.id)
            return
        if news.what == "released":
            for w in self.by_function.values():
                self._unlink(w, now_ns)
            return
        known = self._by_link.get(news.id)
        if known is not None:
            self._hear_of(known, news, now_ns)

    def _hear_of(self, w: Watched, news: LinkNews, now_ns: int) -> None:
        if news.id in w.site_links:
            self._hear_of_site(w, news)
            return
        at_ns = min(news.at_ns or now_ns, now_ns)  # what the holder did lies up to one poll back
        if news.what == "made":
            self._made(w, at_ns)
        elif news.what == "failed":
            self._failed(w, news, now_ns)
        elif news.what == "alarm" and self._is_passed_by(w):
            w.limited = True
            self._drop_passed_by(w, now_ns)
        elif news.what == "alarm":
            w.limited = True
            if not w.watch.on_ns:  # the pause that follows is no part of a window that holds enough
                self.windows.drain_paths(self.by_function.values())
                self.windows.cut_rest(w, at_ns)
            self._off(w, at_ns)
            rate = w.watch.hits_per_second
            wait_ns = w.watch.burst_hits / rate * 1e9 if rate else 1e9
            w.next_on_ns = now_ns + int(wait_ns * self._random.uniform(0.5, 1.5))
        elif news.what == "stranger":
            self._bystanders.taint(w.module.file)
            self._off(w, now_ns)
            w.next_on_ns = now_ns

    def _hear_of_site(self, w: Watched, news: LinkNews) -> None:
        if news.what == "made":
            self._returns.made(news.id)
        elif news.what in ("failed", "alarm", "stranger"):  # an alarm is told for the entry's link as well
            w.site_links.discard(news.id)
            self._by_link.pop(news.id, None)

    def _made(self, w: Watched, now_ns: int) -> None:
        if w.on_ns:
            return
        w.on_ns = now_ns
        w.off_at_ns = now_ns + w.watch.on_ns if w.watch.on_ns else 0

    def _failed(self, w: Watched, news: LinkNews, now_ns: int) -> None:
        pid = w.links.pop(news.id, 0)
        self._by_link.pop(news.id, None)
        if news.errno == _NO_SUCH_PROCESS or (pid and pid not in self._programs.members):
            return  # it has ended meanwhile
        if not w.links:
            text = os.strerror(news.errno) if news.errno else news.text
            self._refuse(w.function.key, Kind.COUNT, "kernel-refuses", f"the kernel refuses it: {text}")
            self._drop(w, now_ns)

    # processes come and go

    def forked(self, parent: int, child: int) -> None:
        """A forked child inherits the breakpoints of its parent's links: adopt it or clean it."""
        for w in self.by_function.values():
            pids = set(w.links.values())
            if parent not in pids:
                continue
            sites = self._returns.adopt(w, child, self._cookie(w, child)) if w.by_site else []
            entry = self._attach(w, child)
            if len(pids) < MAX_PIDS:
                w.site_links.update(sites)
                self._by_link |= dict.fromkeys(sites, w)
            else:  # links that come and go make the kernel look at the child's text again
                del w.links[entry], self._by_link[entry]
                self._cleaning.update((entry, *sites))

    def gone(self, pid: int) -> None:
        """Take off the links of a process that has ended."""
        for w in self.by_function.values():
            for number in [n for n, p in w.links.items() if p == pid]:
                self._links.close(number)
                self._by_link.pop(number, None)
                del w.links[number]

    def check_bystanders(self, now_ns: int) -> None:
        """Take links for all off files that a process that nobody chose maps by now."""
        for w in self.by_function.values():
            if 0 in w.links.values() and self._bystanders.share(w.module.file):
                self._off(w, now_ns)
                w.next_on_ns = now_ns

    # time passes

    def _name_known(self, now_ns: int) -> None:
        """Begin to watch functions that were asked for by key as soon as their binary is mapped."""
        for key, watch in list(self._unnamed.items()):
            build, _, offset = key.rpartition("+")
            for module in list(self._modules.by_file.values()):
                if module.facts is not None and module.facts.build_id == build:
                    found = self._naming.function(module, int(offset, 16))
                    if found is not False:
                        del self._unnamed[key]
                        if key in self._naming.functions:
                            self.watch(watch, now_ns)
                        else:
                            self._refuse(key, Kind.COUNT, "gone", "its binary has no such function")
                    break

    def poll(self, now_ns: int) -> tuple[tuple[Observation, ...], tuple[Activity, ...]]:
        """Switch duty cycles, refill buckets, cut windows; return what is finished."""
        self._name_known(now_ns)
        self._drain_sites(now_ns)
        self.windows.drain_paths(self.by_function.values())
        activity, self._late = self._late, []
        for w in list(self.by_function.values()):
            self.windows.cut_if_due(w, now_ns)
            if w.on_ns:
                self._while_on(w, now_ns)
            elif w.ready and not w.links and now_ns >= w.next_on_ns:
                self._on(w, now_ns)
            one = self.windows.activity(w, now_ns)
            if one is not None:
                activity.append(one)
        return self.windows.finished(now_ns), tuple(activity)

    def due_ns(self) -> int:
        """Return when a probe must be put on or off next; 0: at no certain time."""
        due = []
        for w in self.by_function.values():
            if w.on_ns and w.watch.kind is Kind.COUNT:
                due.append(w.on_ns)  # counts last a moment only
            elif w.on_ns and w.off_at_ns:
                due.append(w.off_at_ns)
            elif w.ready and not w.links:
                due.append(max(w.next_on_ns, 1))
        due += [at_ns for at_ns, _ in self._draining]
        return min(due, default=0)

    def _calls(self, w: Watched) -> int:
        """Return the calls counted in the open window."""
        return int(self._counters[w.slot]["calls"]) - w.window.calls if w.window else 0

    def _is_rare(self, w: Watched, now_ns: int) -> bool:
        """Tell whether waiting for open calls is cheap; of a function that is called often few are open."""
        if w.window is None:
            return False
        calls = self._calls(w)
        watched_ns = max(1, w.watched_until(now_ns) - w.window.watched_ns)
        return calls * DRAIN_NS / watched_ns < RARE_CALLS

    def _drain_sites(self, now_ns: int) -> None:
        """Take return sites off whose calls have had time to end."""
        for when, number in self._draining:
            if now_ns >= when:
                self._links.close(number)
        self._draining = [each for each in self._draining if now_ns < each[0]]

    def _learn_sites(self, w: Watched, now_ns: int) -> None:
        """Probe the return sites learnt since the last poll, all in one link a file."""
        pids = sorted(set(w.links.values()))
        for number in self._returns.flush(w, pids, self._cookie(w, pids[0])):
            w.site_links.add(number)
            self._by_link[number] = w
        if w.stepped_returns and not w.function.stepped:
            w.function = self._naming.as_stepped(w.function)  # the budget must know its price
        if self._returns.crowded(w):
            text = f"it is called from more than {MAX_SITES} places, each of which would need a probe"
            self._refuse(w.function.key, Kind.TIME, "too-many-callers", text)
            self._drop(w, now_ns)
        elif self._returns.hopeless(w) and self._calls(w) >= HOPELESS_CALLS:
            text = "no call to it that was seen returns to an instruction that can be probed"
            self._refuse(w.function.key, Kind.TIME, "no-return-site", text)
            self._drop(w, now_ns)
        elif self._is_passed_by(w):
            self._drop_passed_by(w, now_ns)
        elif 0 in pids and any(self._bystanders.share(m.file) for m in self._returns.modules(w)):
            self._off(w, now_ns)  # a caller lies in a file that others map too: link by process
            w.next_on_ns = now_ns

    def _is_passed_by(self, w: Watched) -> bool:
        """Tell whether its return sites are passed far more often than it returns: other calls end there too."""
        if not w.by_site or w.window is None:
            return False
        c = self._counters[w.slot]
        hits, calls = int(c["hits"]) - w.window.hits, int(c["calls"]) - w.window.calls
        return hits > PASSED_BY * calls + PASSED_BY_LEAST

    def _drop_passed_by(self, w: Watched, now_ns: int) -> None:
        text = "other calls end at the places that it returns to, so often that probes there cost too much"
        self._refuse(w.function.key, Kind.TIME, "busy-return-site", text)
        self._drop(w, now_ns)

    def _while_on(self, w: Watched, now_ns: int) -> None:
        if w.by_site and w.links:
            self._learn_sites(w, now_ns)
        if not w.links:  # every process that it was linked for has ended
            w.switch_off(now_ns)
        elif w.off_at_ns and now_ns >= w.off_at_ns:
            self._off(w, now_ns)
            # at random, so that no rhythm of the program can hide from the on-phases
            pause_ns = max(0, w.watch.period_ns - w.watch.on_ns)
            w.next_on_ns = now_ns + int(pause_ns * self._random.uniform(0.5, 1.5))
        elif now_ns >= w.rotate_ns:
            w.rotate_ns = now_ns + ROTATE_NS
            if 0 not in w.links.values() and len(self._programs.members) > len(w.links):
                self._off(w, now_ns)
                self._on(w, now_ns)
        else:
            self._refill_bucket(w, now_ns)

    def _fill_bucket(self, w: Watched) -> None:
        """Let the kernel take so many hits before it calls for help."""
        hits = int(self._counters[w.slot]["hits"])
        limit = hits + w.watch.burst_hits if w.watch.burst_hits else NO_LIMIT
        self._slots[w.slot] = (limit, self._slots[w.slot]["generation"])
        w.filled_ns = 0

    def _refill_bucket(self, w: Watched, now_ns: int) -> None:
        """Pour in what the time since the last refill allows; the bucket never holds more than a burst."""
        if not w.watch.burst_hits or not w.watch.hits_per_second:
            return
        passed, w.filled_ns = (now_ns - w.filled_ns if w.filled_ns else 0), now_ns
        full = int(self._counters[w.slot]["hits"]) + w.watch.burst_hits
        more = int(self._slots[w.slot][0]) + round(w.watch.hits_per_second * passed / 1e9)
        self._slots[w.slot] = (min(full, more), self._slots[w.slot]["generation"])
