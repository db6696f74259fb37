"""Watch functions: give each a slot, let the gate judge it, follow duty cycles and the processes' coming and going."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

from specmine.mining.observation import Kind, Observation, Reason

from .batch import Activity, Prices, Refusal, Watch
from .buckets import Buckets
from .bystanders import Bystanders
from .choosing import Choosing
from .facts import Grade, Site
from .gate import Gate
from .isolation import TURN_NS, Isolation
from .linking import DRAIN_NS, IDENTITY, Linking
from .links import LinkNews
from .modules import Modules
from .naming import Naming
from .programs import Programs
from .returns import ReturnSites
from .safety import kind_refused, with_remedy
from .watched import Watched
from .windows import Windows

ROTATE_NS = 10_000_000_000
LOOK_NS = 1_000_000_000
"""How often the traps of a function that stays on are held against its calls."""
UNCLEAR_MOST = 20
"""Windows thrown away for unknown callers of a recursion before it is given up."""
RETRY_NS = 100_000_000
COMPARE_NS = 10_000_000_000
"""How often the code that a probe goes into is compared with its file."""
LONGEST_INSTRUCTION = 15
_NO_SUCH_PROCESS = 3


class Watching:
    """All watched functions."""

    def __init__(
        self,
        *,
        modules: Modules,
        naming: Naming,
        programs: Programs,
        bystanders: Bystanders,
        gate: Gate,
        windows: Windows,
        isolation: Isolation,
        isolate: bool,
        returns: ReturnSites,
        linking: Linking,
        buckets: Buckets,
        places: int,
    ) -> None:
        """Watch nothing yet; at most ``places`` functions at once."""
        self._modules, self._naming, self._programs = modules, naming, programs
        self._bystanders, self._gate, self._returns = bystanders, gate, returns
        self._linking, self._buckets, self.windows = linking, buckets, windows
        self._isolation, self._isolate = isolation, isolate
        returns.unlike_file = lambda module, at: gate.changed(module, at, at + LONGEST_INSTRUCTION) is not None
        self.by_function: dict[str, Watched] = {}
        self.refusals: list[Refusal] = []
        self.off = False
        """The kill switch is on: nothing is put on."""
        self._free = list(range(places))
        self._random = random.Random(0)
        self._choosing = Choosing(modules, programs, bystanders, gate, returns, self._random)
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
            self._buckets.fill(known)
            self._buckets.sample(known)
            return
        self.unwatch(watch.function, now_ns)
        if watch.function not in self._naming.functions:
            self._unnamed[watch.function] = watch
        elif not self._free:
            reason = Reason(code="slots", text="all places for watched functions are taken")
            self.refusals.append(Refusal(function=watch.function, kind=watch.kind, reason=reason))
        else:
            self._begin(watch, now_ns)

    def _begin(self, watch: Watch, now_ns: int) -> None:
        function, module = self._naming.functions[watch.function], self._naming.module_of[watch.function]
        w = self.by_function[watch.function] = Watched(function, module, watch, self._free.pop(0))
        w.together = not self._isolate
        self._isolation.forget(w.slot)

        def judged(site: Site | Reason) -> None:
            if self.by_function.get(watch.function) is not w:
                return
            if isinstance(site, Reason):
                self._refuse(w, Kind.COUNT, site, now_ns)
                return
            w.site, w.stepped, w.ready = site.offset, site.grade is Grade.STEPPED, True
            self._note_price(w, w.stepped)

        self._gate.site(function, module, judged)

    def unwatch(self, function: str, now_ns: int) -> None:
        """Take the probes off; an unfinished window that holds enough becomes an observation."""
        self._unnamed.pop(function, None)
        w = self.by_function.get(function)
        if w is None:
            return
        self.windows.drain(self.by_function.values())
        self.windows.cut_rest(w, now_ns)
        self._drop(w, now_ns)

    def _drop(self, w: Watched, now_ns: int) -> None:
        activity = self.windows.activity(w, now_ns)
        if activity is not None:
            self._late.append(activity)
        self._linking.off(w, now_ns)
        self._isolation.end(w)
        if self.by_function.get(w.function.key) is w:
            del self.by_function[w.function.key]
            self._free.append(w.slot)

    def _refuse(self, w: Watched, kind: Kind, reason: Reason, now_ns: int) -> None:
        self.refusals.append(Refusal(function=w.function.key, kind=kind, reason=with_remedy(reason)))
        self._drop(w, now_ns)

    def _note_price(self, w: Watched, stepped: bool) -> None:
        if stepped and not w.function.stepped:
            w.function = self._naming.known_as(w.function, stepped=True)  # the budget must know its price

    def _note_unsampled(self, w: Watched) -> None:
        if not w.function.unsampled:
            w.function = self._naming.known_as(w.function, unsampled=True)  # the budget must know

    def _name_known(self, now_ns: int) -> None:
        """Begin to watch functions that were asked for by key as soon as their binary is mapped."""
        for key, watch in list(self._unnamed.items()):
            build, _, offset = key.rpartition("+")
            for module in list(self._modules.by_file.values()):
                if module.facts is None or module.facts.build_id != build:
                    continue
                if self._naming.function(module, int(offset, 16)) is not False:
                    del self._unnamed[key]
                    if key in self._naming.functions:
                        self.watch(watch, now_ns)
                    else:
                        reason = Reason(code="gone", text="its binary has no such function")
                        self.refusals.append(Refusal(function=key, kind=Kind.COUNT, reason=reason))
                break

    # probes on and off

    def _on(self, w: Watched, now_ns: int) -> None:
        layouts = self._gate.mapped()
        if not layouts:
            return
        by_site, reason = self._gate.way(w.watch.kind, layouts)
        if reason is not None:
            self._refuse(w, Kind.TIME, reason, now_ns)
            return
        if by_site != w.by_site:
            w.by_site, w.window = by_site, None
        if by_site:
            self._note_unsampled(w)
        pids = self._choosing.pids(w, begun=bool(self.windows.timed(w)))
        if not pids:
            barred = self._gate.bars(0, [w.module])
            if barred is not None:
                self._refuse(w, kind_refused(barred), barred, now_ns)
            w.next_on_ns = now_ns + RETRY_NS
            return
        if self._is_changed(w, now_ns) or (w.isolated and not self._takes_turn(w, now_ns)):
            return
        self._buckets.fill(w)
        # the counters stand still until the links are made: what they show now is where counting begins
        if not w.watched_ns:
            self.windows.start_telling(w)
        if w.window is None:
            self.windows.begin(w, now_ns)
        self._returns.look_from(w, *self._buckets.traps_and_calls(w))
        self._linking.on(w, pids)
        w.rotate_ns, w.look_ns = now_ns + ROTATE_NS, now_ns + LOOK_NS

    def _is_changed(self, w: Watched, now_ns: int) -> bool:
        """Refuse a function whose code in memory is not that of its file; True if it was."""
        if now_ns < w.compared_ns:
            return False
        w.compared_ns = now_ns + COMPARE_NS
        changed = self._gate.changed(w.module, w.function.offset, w.site + LONGEST_INSTRUCTION)
        if changed is not None:
            self._refuse(w, Kind.COUNT, changed, now_ns)
        return changed is not None

    def _takes_turn(self, w: Watched, now_ns: int) -> bool:
        """Have the probes within its calls taken off; True once they are."""
        others = self._isolation.begin(w, self.by_function.values(), now_ns)
        for each in others or ():
            self._again(each, now_ns)
        if others is None or others:  # their links take a while to come off
            w.next_on_ns = now_ns + RETRY_NS
            return False
        return True

    def _again(self, w: Watched, now_ns: int) -> None:
        """Take the probes off, to be put on in another way at the next poll."""
        self._linking.off(w, now_ns)
        w.next_on_ns = now_ns

    # what the holder and the kernel say

    def hear(self, news: LinkNews, now_ns: int) -> None:
        """Take in what the holder said about one link, or about all."""
        if self._linking.cleaned(news):
            return
        if news.what == "released":
            for w in self.by_function.values():
                self._linking.forget(w, now_ns)
        elif news.id in self._linking.owner:
            self._hear_of(self._linking.owner[news.id], news, now_ns)

    def _hear_of(self, w: Watched, news: LinkNews, now_ns: int) -> None:
        at_ns = min(news.at_ns or now_ns, now_ns)  # what the holder did lies up to one poll back
        if news.id in w.site_links:
            if news.what == "made":
                self._returns.made(news.id)
            else:  # an alarm is told for the entry's link as well
                self._linking.lost(w, news.id)
        elif news.what == "made" and not w.on_ns:
            w.on_ns = at_ns
            on_ns = min(w.watch.on_ns or TURN_NS, TURN_NS) if w.isolated else w.watch.on_ns
            w.off_at_ns = at_ns + on_ns if on_ns else 0
        elif news.what == "failed":
            self._failed(w, news, now_ns)
        elif news.what == "alarm":
            self._limited(w, at_ns, now_ns)
        elif news.what == "stranger":
            self._bystanders.taint(w.module.file)
            self._again(w, now_ns)

    def _limited(self, w: Watched, at_ns: int, now_ns: int) -> None:
        """The bucket ran empty: wait until it would be full again."""
        w.limited = True
        self._look_at_returns(w, now_ns)
        if self._judge_returns(w, now_ns):
            return
        if not w.watch.on_ns:  # the pause that follows is no part of a window that holds enough
            self.windows.drain(self.by_function.values())
            self.windows.cut_rest(w, at_ns)
        self._linking.off(w, at_ns)
        rate = w.watch.hits_per_second
        wait_ns = w.watch.burst_hits / rate * 1e9 if rate else 1e9
        w.next_on_ns = now_ns + int(wait_ns * self._random.uniform(0.5, 1.5))

    def _failed(self, w: Watched, news: LinkNews, now_ns: int) -> None:
        pid = self._linking.lost(w, news.id)
        if news.errno == _NO_SUCH_PROCESS or (pid and pid not in self._programs.members):
            return  # it has ended meanwhile
        if not w.links:
            text = f"the kernel refuses it: {os.strerror(news.errno) if news.errno else news.text}"
            self._refuse(w, Kind.COUNT, Reason(code="kernel-refuses", text=text), now_ns)

    def seen_return(self, cookie: int, layout: int, address: int) -> None:
        """A call is going to return to a place that is not probed: learn it."""
        w = next((w for w in self.by_function.values() if w.cookies and w.cookies[0] == cookie & IDENTITY), None)
        if w is not None and w.by_site:
            self._returns.learn(w, layout, address)

    def _look_at_returns(self, w: Watched, now_ns: int) -> None:
        """Hold the traps at its return sites against its calls."""
        w.look_ns = now_ns + LOOK_NS
        if w.by_site:
            self._returns.look(w, *self._buckets.traps_and_calls(w))

    def _judge_returns(self, w: Watched, now_ns: int) -> bool:
        """Give a function up that cannot be timed by its return sites; True if it was."""
        if not w.by_site:
            return False
        age_ns = now_ns - w.window.start_ns if w.window else 0
        reason = self._returns.verdict(w, self._buckets.calls(w), self._buckets.unlearnt(w), age_ns)
        if w.unclear >= UNCLEAR_MOST:
            text = (
                "it calls itself, and from places whose returns cannot be probed: which call is outermost is not known"
            )
            reason = Reason(code="unclear-recursion", text=text)
        if reason is not None:
            self._refuse(w, Kind.TIME, reason, now_ns)
        return reason is not None

    def return_pids(self) -> list[int]:
        """Return the processes in which calls are timed at return sites, or soon will be; those on now come first."""
        watched = [w for w in self.by_function.values() if w.by_site]
        if not watched:
            return []
        linked = {pid for w in watched for pid in w.links.values()}
        return sorted(self._programs.members, key=lambda pid: (pid not in linked, pid))

    # processes come and go

    def forked(self, parent: int, child: int) -> None:
        """A forked child inherits the breakpoints of its parent's links."""
        for w in self.by_function.values():
            if parent in w.links.values():
                self._linking.forked(w, child)

    def gone(self, pid: int) -> None:
        """Take off the links of a process that has ended."""
        for w in self.by_function.values():
            self._linking.gone(w, pid)

    def check_bystanders(self, now_ns: int) -> None:
        """Take links for all off files that a process that nobody chose maps by now."""
        for w in self.by_function.values():
            if 0 in w.links.values() and self._bystanders.share(w.module.file):
                self._again(w, now_ns)

    def recheck_safety(self, now_ns: int) -> None:
        """Change how returns are timed at once if a library has come that can unwind the stack."""
        layouts = self._gate.mapped()
        for w in list(self.by_function.values()):
            if not w.links or not layouts:
                continue
            by_site, reason = self._gate.way(w.watch.kind, layouts)
            if reason is not None:
                self._refuse(w, Kind.TIME, reason, now_ns)
            elif by_site and not w.by_site:
                self._again(w, now_ns)
                w.window = None

    def suspect(self, pids: Iterable[int]) -> None:
        """Look now whether a debugger has come to these processes."""
        self._gate.suspect(map(int, pids))

    def _spare(self, now_ns: int) -> None:
        """Take probes off processes that must not have them any more: a debugger has come."""
        if self._gate.look_around(now_ns):
            for w in self.by_function.values():
                if any(self._gate.bars(pid, [w.module]) is not None for pid in set(w.links.values())):
                    self._again(w, now_ns)
                    self._linking.drain(now_ns + DRAIN_NS)  # return sites as well, open calls or not

    # time passes

    def reprice(self, prices: Prices) -> None:
        """Go by new prices and biases."""
        self.windows.prices = self._buckets.prices = prices

    def poll(self, now_ns: int) -> tuple[tuple[Observation, ...], tuple[Activity, ...]]:
        """Switch duty cycles, refill buckets, cut windows; return what is finished."""
        self._name_known(now_ns)
        self._spare(now_ns)
        self._linking.drain(now_ns)
        self.windows.drain(self.by_function.values())
        activity, self._late = self._late, []
        for w in list(self.by_function.values()):
            self.windows.cut_if_due(w, now_ns)
            if w.on_ns:
                self._while_on(w, now_ns)
            elif self._may_go_on(w, now_ns):
                self._on(w, now_ns)
            one = self.windows.activity(w, now_ns)
            if one is not None:
                activity.append(one)
                self._buckets.cost(w)
        return self.windows.finished(now_ns), tuple(activity)

    def due_ns(self) -> int:
        """Return when a probe must be put on or off next; 0: at no certain time."""
        due = self._linking.due_ns()
        for w in self.by_function.values():
            if w.on_ns and w.watch.kind is Kind.COUNT:
                due.append(w.on_ns)  # counts last a moment only
            elif w.on_ns and w.off_at_ns:
                due.append(w.off_at_ns)
            elif w.ready and not w.links and not self.off:
                due.append(max(w.next_on_ns, 1))
        return min(due, default=0)

    def _may_go_on(self, w: Watched, now_ns: int) -> bool:
        due = w.ready and not w.links and now_ns >= w.next_on_ns
        return due and not self.off and not self._isolation.holds_back(w, now_ns)

    def _while_on(self, w: Watched, now_ns: int) -> None:
        if w.isolated and not self._isolation.has_turn(w):
            self._again(w, now_ns)
            return
        if w.sampled and self._buckets.inner(w):  # calls inside untimed ones were taken for outermost
            self._note_unsampled(w)
            w.window = None
            self._again(w, now_ns)
            return
        if w.by_site and w.links:
            self._learn_sites(w, now_ns)
        if not w.links:  # every process that it was linked for has ended
            w.switch_off(now_ns)
        elif w.off_at_ns and now_ns >= w.off_at_ns:
            self._look_at_returns(w, now_ns)
            self._linking.off(w, now_ns)
            self._isolation.end(w)
            # at random, so that no rhythm of the program can hide from the on-phases
            pause_ns = max(TURN_NS if w.isolated else 0, w.watch.period_ns - w.watch.on_ns)
            w.next_on_ns = now_ns + int(pause_ns * self._random.uniform(0.5, 1.5))
        elif now_ns >= w.rotate_ns:
            w.rotate_ns = now_ns + ROTATE_NS
            if 0 not in w.links.values() and len(self._programs.members) > len(w.links):
                self._linking.off(w, now_ns)
                self._on(w, now_ns)
        else:
            self._buckets.refill(w, now_ns)

    def _learn_sites(self, w: Watched, now_ns: int) -> None:
        """Probe the return sites learnt since the last poll; give the function up if that is no use."""
        pids = self._linking.learn(w)
        self._note_price(w, w.stepped_returns)
        if now_ns >= w.look_ns:
            self._look_at_returns(w, now_ns)
        if self._judge_returns(w, now_ns):
            return
        if 0 in pids and any(self._bystanders.share(m.file) for m in self._returns.modules(w)):
            self._again(w, now_ns)  # a caller lies in a file that others map too: link by process
