"""Watch functions: give each a slot, put its probes on and off, and cut what they count into observations."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.mining.observation import BUCKETS, Function, Kind, Observation, PathHistogram, Reason

from .batch import Activity, Prices, Refusal, Watch
from .bystanders import Bystanders
from .errors import SpecmineError
from .facts import Grade, Site
from .kernel import HashMap
from .layout import COOKIE_KEEP, COOKIE_SHARED, GENERATION_SHIFT, MAX_SLOTS
from .links import Links, LinkNews
from .modules import Module, Modules
from .naming import Naming
from .programs import Programs
from .safety import refuses_returns

MAX_PIDS = 8
"""Processes watched at once through a file that others map too."""
ROTATE_NS = 10_000_000_000
NAMES_PATIENCE_NS = 5_000_000_000
SELFTEST_SLOT = MAX_SLOTS - 1
NO_LIMIT = 1 << 62
SETTLE_NS = 100_000_000
"""A process that just began is looked at again before returns are probed: libraries are still being mapped."""


@dataclass(slots=True, eq=False)
class _Base:
    """Counters at the start of a window."""

    start_ns: int
    hits: int
    calls: int
    timed: int
    inner: int
    watched_ns: int
    histogram: NDArray[np.uint64]


@dataclass(slots=True, eq=False)
class Watched:
    """One function under watch."""

    function: Function
    module: Module
    watch: Watch
    slot: int
    cookie: int
    site: int = 0
    stepped: bool = False
    ready: bool = False
    """The site is known and the gate has let it pass."""
    links: dict[int, int] = field(default_factory=dict)
    """Link number -> pid, 0 for all."""
    made: set[int] = field(default_factory=set)
    on_ns: int = 0
    """Since when the probes are on, 0 while they are off."""
    watched_ns: int = 0
    next_on_ns: int = 0
    off_at_ns: int = 0
    rotate_ns: int = 0
    tokens: float = 0.0
    limited: bool = False
    base: _Base | None = None
    paths: dict[int, NDArray[np.uint64]] = field(default_factory=dict)
    """Kind PATH: durations of the open window by path id."""
    told: tuple[int, int, int, int] = (0, 0, 0, 0)
    """hits, calls, timed, watched_ns at the last activity."""


@dataclass(slots=True, eq=False)
class _Unnamed:
    """A finished window whose paths have no names yet."""

    watched: Watched
    since_ns: int
    observation: Observation
    paths: dict[int, NDArray[np.uint64]]


class Watching:
    """All watched functions."""

    def __init__(
        self,
        links: Links,
        modules: Modules,
        naming: Naming,
        programs: Programs,
        bystanders: Bystanders,
        arrays: dict[str, NDArray[np.void]],
        path_histogram: HashMap,
        prices: Prices,
        *,
        emulates_nops: bool,
    ) -> None:
        """Watch nothing yet."""
        self._links, self._modules, self._naming = links, modules, naming
        self._programs, self._bystanders = programs, bystanders
        self._counters, self._slots = arrays["counters"], arrays["slots"]
        self._histogram = arrays["histogram"].reshape(MAX_SLOTS, BUCKETS)
        self._path_histogram = path_histogram
        self._emulates_nops = emulates_nops
        self.prices = prices
        self.inside_ns = 0.0
        self.bystander_hits = 0
        self.by_function: dict[str, Watched] = {}
        self.refusals: list[Refusal] = []
        self._by_link: dict[int, Watched] = {}
        self._cleaning: set[int] = set()
        self._free = list(range(MAX_SLOTS - 1))
        self._generation = 1
        self._random = random.Random(0)
        self._unnamed: list[_Unnamed] = []
        self._sites: dict[str, Site] = {}
        self._late: list[Activity] = []
        self._strangers = 0

    # ---- requests ------------------------------------------------------------------------------------------

    def watch(self, watch: Watch, now_ns: int) -> None:
        """Begin, or go on with other parameters."""
        known = self.by_function.get(watch.function)
        if known is not None and known.watch.kind is watch.kind:
            was, known.watch = known.watch, watch
            known.limited = False
            if (was.on_ns, was.period_ns) != (watch.on_ns, watch.period_ns) and known.on_ns:
                known.off_at_ns = now_ns + watch.on_ns if watch.on_ns else 0
            self._grant(known, 0)
            return
        self.unwatch(watch.function, now_ns)
        function, module = self._naming.functions[watch.function], self._naming.module_of[watch.function]
        if not self._free:
            self._refuse(watch, "slots", "all places for watched functions are taken", "wait until one is free")
            return
        slot = self._free.pop(0)
        self._generation = self._generation % 0x7FFF + 1
        w = Watched(function, module, watch, slot, slot | self._generation << GENERATION_SHIFT)
        w.tokens = watch.burst_hits
        self.by_function[watch.function] = w
        self._find_site(w)

    def unwatch(self, function: str, now_ns: int) -> None:
        """Take the probes off; an unfinished window that holds enough becomes an observation."""
        w = self.by_function.get(function)
        if w is None:
            return
        self._drain_paths()
        if w.base is not None and self._timed(w) >= w.watch.minimum_calls:
            self._cut(w, now_ns)
        activity = self._activity(w, now_ns)
        if activity is not None:
            self._late.append(activity)
        self._off(w, now_ns)
        del self.by_function[function]
        self._free.append(w.slot)

    def _refuse(self, watch: Watch, code: str, text: str, remedy: str = "", kind: Kind | None = None) -> None:
        reason = Reason(code=code, text=text, remedy=remedy)
        self.refusals.append(Refusal(function=watch.function, kind=kind or watch.kind, reason=reason))

    def _drop(self, w: Watched, now_ns: int) -> None:
        self._off(w, now_ns)
        if self.by_function.get(w.function.key) is w:
            del self.by_function[w.function.key]
            self._free.append(w.slot)

    # ---- the gate --------------------------------------------------------------------------------------------

    def _find_site(self, w: Watched) -> None:
        known = self._sites.get(w.function.key)
        if known is not None:
            self._judge(w, known)
            return

        def then(answer: object) -> None:
            if isinstance(answer, list) and answer and isinstance(answer[0], Site):
                self._sites[w.function.key] = answer[0]
                self._judge(w, answer[0])
            elif self.by_function.get(w.function.key) is w:
                self._refuse(w.watch, "unreadable", f"its code cannot be read: {answer}", "", Kind.COUNT)
                self._drop(w, 0)

        self._modules.ask(
            "sites", w.module.fd, then, offsets=[w.function.offset], kernel_emulates_nops=self._emulates_nops
        )

    def _judge(self, w: Watched, site: Site) -> None:
        if self.by_function.get(w.function.key) is not w:
            return
        if site.grade is Grade.REFUSED:
            self._refuse(w.watch, site.code, site.text, "", Kind.COUNT)
            self._drop(w, 0)
            return
        w.site, w.stepped, w.ready = site.offset, site.grade is Grade.STEPPED, True

    def _unsafe(self, w: Watched) -> Reason | None:
        """Why its returns must not be timed; None if they may."""
        if w.watch.kind is Kind.COUNT:
            return None
        layouts = {m.layout for m in self._programs.members.values()}
        mapped = {
            module
            for number in sorted(layouts)
            if number in self._modules.layouts
            for module in self._modules.layouts[number].modules
            if module is not None
        }
        return refuses_returns(sorted(mapped, key=lambda m: m.path))

    def _settled(self, now_ns: int) -> bool:
        """Tell whether all that the processes map is known."""
        return not any(
            module is not None and not module.settled
            for member in self._programs.members.values()
            for module in (
                self._modules.layouts[member.layout].modules if member.layout in self._modules.layouts else (None,)
            )
        )

    # ---- probes on and off -----------------------------------------------------------------------------------

    def _on(self, w: Watched, now_ns: int) -> None:
        if not self._settled(now_ns):
            return
        reason = self._unsafe(w)
        if reason is not None:
            self.refusals.append(Refusal(function=w.function.key, kind=Kind.TIME, reason=reason))
            self._drop(w, now_ns)
            return
        pids = self._pids(w)
        if not pids:
            w.next_on_ns = now_ns + 100_000_000
            return
        self._grant(w, 0)
        for pid in pids:
            self._attach(w, pid)
        w.rotate_ns = now_ns + ROTATE_NS

    def _pids(self, w: Watched) -> list[int]:
        """Choose the processes to link for: [0] for all, if only watched ones map the file."""
        mapping = [
            m.pid
            for m in self._programs.members.values()
            if m.layout in self._modules.layouts and w.module in self._modules.layouts[m.layout].modules
        ]
        lifetimes = {m.lifetime for m in self._programs.members.values()}
        if mapping and len(lifetimes) == 1 and not self._bystanders.share(w.module.file):
            return [0]
        if len(mapping) > MAX_PIDS:
            mapping = self._random.sample(sorted(mapping), MAX_PIDS)
        return sorted(mapping)

    def _attach(self, w: Watched, pid: int) -> None:
        cookie = w.cookie | COOKIE_KEEP | (0 if pid else COOKIE_SHARED)
        number = self._links.attach(w.module.fd, [w.site], [cookie], w.watch.kind, pid)
        w.links[number] = pid
        self._by_link[number] = w

    def _off(self, w: Watched, now_ns: int) -> None:
        for number in w.links:
            self._links.close(number)
            self._by_link.pop(number, None)
        w.links, w.made = {}, set()
        self._mark_off(w, now_ns)

    def _mark_off(self, w: Watched, now_ns: int) -> None:
        if w.on_ns:
            w.watched_ns += max(0, now_ns - w.on_ns)
        w.on_ns = 0

    def hear(self, news: LinkNews, now_ns: int) -> None:
        """Take in what the holder said about one link."""
        if news.id in self._cleaning and news.what in ("made", "failed"):
            self._cleaning.discard(news.id)
            if news.what == "made":
                self._links.close(news.id)
            return
        if news.what in ("released", "dead"):
            for w in self.by_function.values():
                self._forget_links(w, now_ns)
            return
        w = self._by_link.get(news.id)
        if w is None:
            return
        if news.what == "made":
            w.made.add(news.id)
            if not w.on_ns:
                w.on_ns = now_ns
                w.off_at_ns = now_ns + w.watch.on_ns if w.watch.on_ns else 0
                if w.base is None:
                    self._begin_window(w, now_ns)
                if not w.watched_ns:
                    w.told = (*self._totals(w), 0)
        elif news.what == "failed":
            self._failed(w, news, now_ns)
        elif news.what == "alarm":
            w.limited = True
            self._off(w, now_ns)
            rate = w.watch.hits_per_second
            wait_s = w.watch.burst_hits / rate if rate else 1.0
            w.next_on_ns = now_ns + int(wait_s * 1e9)
            w.tokens = w.watch.burst_hits
        elif news.what == "stranger":
            self._bystanders.taint(w.module.file)
            self._off(w, now_ns)
            w.next_on_ns = now_ns

    def _failed(self, w: Watched, news: LinkNews, now_ns: int) -> None:
        pid = w.links.pop(news.id, 0)
        self._by_link.pop(news.id, None)
        if news.errno == 3 or (pid and pid not in self._programs.members):  # it has ended meanwhile
            return
        if not w.links:
            text = os.strerror(news.errno) if news.errno else news.text
            self._refuse(w.watch, "kernel-refuses", f"the kernel refuses the probe: {text}", "", Kind.COUNT)
            self._drop(w, now_ns)

    def _forget_links(self, w: Watched, now_ns: int) -> None:
        for number in w.links:
            self._by_link.pop(number, None)
        w.links, w.made = {}, set()
        self._mark_off(w, now_ns)
        w.next_on_ns = now_ns

    # ---- processes come and go -------------------------------------------------------------------------------

    def forked(self, parent: int, child: int) -> None:
        """A forked child inherits the breakpoints of its parent's links: adopt it or clean it."""
        for w in self.by_function.values():
            pids = set(w.links.values())
            if parent not in pids or not w.on_ns:
                continue
            if len(pids) < MAX_PIDS:
                self._attach(w, child)
            else:  # a link that comes and goes makes the kernel look at the child's text again
                cookie = [w.cookie | COOKIE_KEEP]
                self._cleaning.add(self._links.attach(w.module.fd, [w.site], cookie, w.watch.kind, child))

    def gone(self, pid: int) -> None:
        """Forget the links of a process that has ended."""
        for w in self.by_function.values():
            for number in [n for n, p in w.links.items() if p == pid]:
                self._links.close(number)
                self._by_link.pop(number, None)
                del w.links[number]
                w.made.discard(number)

    def check_bystanders(self, now_ns: int) -> None:
        """Take links for all off files that a process that nobody chose maps by now."""
        for w in self.by_function.values():
            if 0 in w.links.values() and self._bystanders.share(w.module.file):
                self._off(w, now_ns)
                w.next_on_ns = now_ns

    # ---- windows ---------------------------------------------------------------------------------------------

    def poll(self, now_ns: int) -> tuple[list[Observation], list[Activity]]:
        """Switch duty cycles, refill buckets, cut windows; return what is finished."""
        self._drain_paths()
        activity, self._late = self._late, []
        for w in list(self.by_function.values()):
            if w.on_ns:
                self._while_on(w, now_ns)
            elif w.ready and not w.links and now_ns >= w.next_on_ns:
                self._on(w, now_ns)
            one = self._activity(w, now_ns)
            if one is not None:
                activity.append(one)
        strangers = int(self._counters["strangers"].sum())
        self.bystander_hits += strangers - self._strangers
        self._strangers = strangers
        return self._finished(now_ns), activity

    def _while_on(self, w: Watched, now_ns: int) -> None:
        self._grant(w, now_ns)
        if w.off_at_ns and now_ns >= w.off_at_ns:
            self._off(w, now_ns)
            spread = self._random.uniform(0.5, 1.5)  # unbiased by any rhythm of the program
            w.next_on_ns = now_ns + int(max(0, w.watch.period_ns - w.watch.on_ns) * spread)
        elif now_ns >= w.rotate_ns:
            w.rotate_ns = now_ns + ROTATE_NS
            members = len(self._programs.members)
            if w.links and 0 not in w.links.values() and (members > len(w.links) or len(w.links) == 0):
                self._off(w, now_ns)
                self._on(w, now_ns)
        elif not w.links:  # every process that it was linked for has ended
            self._mark_off(w, now_ns)
        self._cut_if_due(w, now_ns)

    def _cut_if_due(self, w: Watched, now_ns: int) -> None:
        base = w.base
        if base is None or w.watch.kind is Kind.COUNT:
            return
        timed, age = self._timed(w), now_ns - base.start_ns
        full = timed >= w.watch.window_calls
        old = age >= w.watch.window_ns and timed >= w.watch.minimum_calls
        if full or old or (age >= w.watch.limit_ns and timed):
            self._cut(w, now_ns)

    def _totals(self, w: Watched) -> tuple[int, int, int]:
        c = self._counters[w.slot]
        return int(c["hits"]), int(c["calls"]), int(c["timed"])

    def _watched_ns(self, w: Watched, now_ns: int) -> int:
        return w.watched_ns + (now_ns - w.on_ns if w.on_ns else 0)

    def _begin_window(self, w: Watched, now_ns: int) -> None:
        hits, calls, timed = self._totals(w)
        inner = int(self._counters[w.slot]["inner"])
        w.base = _Base(
            now_ns, hits, calls, timed, inner, self._watched_ns(w, now_ns), self._histogram[w.slot].copy()
        )
        w.paths = {}

    def _timed(self, w: Watched) -> int:
        assert w.base is not None
        if w.watch.kind is Kind.PATH:
            return sum(int(c.sum()) for c in w.paths.values())
        return self._totals(w)[2] - w.base.timed

    def _drain_paths(self) -> None:
        if not any(w.watch.kind is Kind.PATH for w in self.by_function.values()):
            return
        keys, values = self._path_histogram.drain()
        by_cookie = {w.cookie & 0xFFFF_00FF: w for w in self.by_function.values()}
        for key, count in zip(keys, values, strict=True):
            w = by_cookie.get(int(key["cookie"]) & 0xFFFF_00FF)
            if w is None or w.base is None:
                continue
            counts = w.paths.setdefault(int(key["path"]), np.zeros(BUCKETS, np.uint64))
            counts[int(key["bucket"])] += np.uint64(count)

    def _cut(self, w: Watched, now_ns: int) -> None:
        base = w.base
        assert base is not None
        if now_ns <= base.start_ns:
            return
        _, calls, timed = self._totals(w)
        if w.watch.kind is Kind.PATH:
            counts = np.sum(list(w.paths.values()), axis=0, dtype=np.uint64) if w.paths else np.zeros(BUCKETS, np.uint64)
        else:
            counts = self._histogram[w.slot] - base.histogram
        members = self._programs.members.values()
        observation = Observation(
            function=w.function.key,
            lifetime=next((m.lifetime for m in members), ""),
            kind=w.watch.kind,
            start_ns=base.start_ns,
            end_ns=now_ns,
            counts=counts,
            calls=max(calls - base.calls, int(counts.sum())),
            watched_ns=self._watched_ns(w, now_ns) - base.watched_ns,
            inner=int(self._counters[w.slot]["inner"]) - base.inner,
            censored=0 if w.on_ns else max(0, calls - base.calls - (timed - base.timed)),
            bias_ns=self.prices.bias_ns,
        )
        self._unnamed.append(_Unnamed(w, now_ns, observation, w.paths))
        self._begin_window(w, now_ns)

    def _finished(self, now_ns: int) -> list[Observation]:
        """Return the observations whose paths have names."""
        done: list[Observation] = []
        waiting: list[_Unnamed] = []
        for u in self._unnamed:
            named = self._named_paths(u, give_up=now_ns - u.since_ns > NAMES_PATIENCE_NS)
            if named is None:
                waiting.append(u)
            else:
                o = u.observation
                fields = {name: getattr(o, name) for name in o.__dataclass_fields__}
                done.append(Observation(**fields | {"paths": named}))
        self._unnamed = waiting
        return done

    def _named_paths(self, u: _Unnamed, *, give_up: bool) -> tuple[PathHistogram, ...] | None:
        merged: dict[object, NDArray[np.uint64]] = {}
        for id, counts in u.paths.items():
            path = self._naming.call_path(id, u.watched.function)
            if path is None:
                if not give_up:
                    return None
                path = self._naming.call_path(0, u.watched.function)
            assert path is not None
            merged[path] = merged[path] + counts if path in merged else counts
        return tuple(
            PathHistogram(path=path, counts=merged[path])  # type: ignore[arg-type, index]
            for path in sorted(merged, key=lambda p: (-int(merged[p].sum()), repr(p)))
        )

    # ---- the budget's numbers --------------------------------------------------------------------------------

    def _grant(self, w: Watched, now_ns: int) -> None:
        """Fill the kernel's bucket."""
        hits = int(self._counters[w.slot]["hits"])
        limit = hits + w.watch.burst_hits if w.watch.burst_hits else NO_LIMIT
        self._slots[w.slot] = (limit,)

    def _activity(self, w: Watched, now_ns: int) -> Activity | None:
        hits, calls, timed = self._totals(w)
        watched_ns = self._watched_ns(w, now_ns)
        before = w.told
        if watched_ns == before[3] and not w.limited:
            return None
        new_hits, new_timed = hits - before[0], timed - before[2]
        w.told = (hits, calls, timed, watched_ns)
        cost = self.cost_ns(w, new_hits, new_timed)
        self.inside_ns += cost
        limited, w.limited = w.limited, False
        return Activity(
            function=w.function.key,
            kind=w.watch.kind,
            watched_ns=watched_ns - before[3],
            hits=new_hits,
            calls=calls - before[1],
            cost_ns=cost,
            limited=limited,
        )

    def cost_ns(self, w: Watched, hits: int, timed: int) -> float:
        """Predict what hits cost the program: whole timed calls by their price, the rest as entries."""
        p = self.prices
        entries = max(timed, hits - timed)
        price = {Kind.COUNT: p.count_ns, Kind.TIME: p.time_ns, Kind.PATH: p.path_ns}[w.watch.kind]
        cost = timed * price + max(0, entries - timed) * p.count_ns
        return cost + (entries * p.stepped_ns if w.stepped else 0.0)


def failed(answer: object) -> bool:
    """Tell whether the reader answered with an error."""
    return isinstance(answer, SpecmineError)
