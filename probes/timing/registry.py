"""The functions that are watched: who has a slot, what the kernel and the holder say of it, and who is given up."""

from __future__ import annotations

import os
from collections.abc import Iterable

from specmine.model.batch import Activity, Prices, Refusal, Watch
from specmine.model.function import Reason
from specmine.model.observation import Kind, Observation
from specmine.probes.elf.facts import Grade, Site
from specmine.probes.kernel.links import LinkNews
from specmine.probes.safety.rules import with_remedy
from specmine.probes.symbols.modules import Modules

from .attachment import DRAIN_NS, IDENTITY
from .duty_cycle import DutyCycle, Refused
from .timed_function import TimedFunction

_NO_SUCH_PROCESS = 3


class Registry:
    """All watched functions."""

    def __init__(self, switching: DutyCycle, modules: Modules, *, isolate: bool, places: int) -> None:
        """Watch nothing yet; at most ``places`` functions at once."""
        self._duty_cycle, self._modules, self._isolate = switching, modules, isolate
        self.by_function = switching.by_function
        self.windows, self._gate = switching.windows, switching.gate
        self._attachments, self._buckets = switching.linking, switching.buckets
        self._symbolizer, self._programs, self._bystanders = switching.naming, switching.programs, switching.bystanders
        self.refusals: list[Refusal] = []
        self.off = False
        """The kill switch is on: nothing is put on."""
        self._free = list(range(places))
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
        if watch.function not in self._symbolizer.functions:
            self._unnamed[watch.function] = watch
        elif not self._free:
            reason = Reason(code="slots", text="all places for watched functions are taken")
            self.refusals.append(Refusal(function=watch.function, kind=watch.kind, reason=reason))
        else:
            self._begin(watch, now_ns)

    def _begin(self, watch: Watch, now_ns: int) -> None:
        function, module = self._symbolizer.functions[watch.function], self._symbolizer.module_of[watch.function]
        w = self.by_function[watch.function] = TimedFunction(function, module, watch, self._free.pop(0))
        w.together = not self._isolate
        self._duty_cycle.isolation.forget(w.slot)

        def judged(site: Site | Reason) -> None:
            if self.by_function.get(watch.function) is not w:
                return
            if isinstance(site, Reason):
                self._refuse(w, (Kind.COUNT, site), now_ns)
                return
            w.site, w.stepped, w.ready = site.offset, site.grade is Grade.STEPPED, True
            if w.stepped:
                self._duty_cycle.note_stepped(w)

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

    def _drop(self, w: TimedFunction, now_ns: int) -> None:
        activity = self.windows.activity(w, now_ns)
        if activity is not None:
            self._late.append(activity)
        self._attachments.off(w, now_ns)
        self._duty_cycle.isolation.end(w)
        if self.by_function.get(w.function.key) is w:
            del self.by_function[w.function.key]
            self._free.append(w.slot)

    def _refuse(self, w: TimedFunction, refused: Refused, now_ns: int) -> None:
        """Give a function up if it is refused."""
        if refused is not None:
            kind, reason = refused
            self.refusals.append(Refusal(function=w.function.key, kind=kind, reason=with_remedy(reason)))
            self._drop(w, now_ns)

    def _name_known(self, now_ns: int) -> None:
        """Begin to watch functions that were asked for by key as soon as their binary is mapped."""
        for key, watch in list(self._unnamed.items()):
            build, _, offset = key.rpartition("+")
            for module in list(self._modules.by_file.values()):
                if module.facts is None or module.facts.build_id != build:
                    continue
                if self._symbolizer.function(module, int(offset, 16)) is not False:
                    del self._unnamed[key]
                    if key in self._symbolizer.functions:
                        self.watch(watch, now_ns)
                    else:
                        reason = Reason(code="gone", text="its binary has no such function")
                        self.refusals.append(Refusal(function=key, kind=Kind.COUNT, reason=reason))
                break

    # what the holder and the kernel say

    def hear(self, news: LinkNews, now_ns: int) -> None:
        """Take in what the holder said about one link, or about all."""
        if self._attachments.cleaned(news):
            return
        if news.what == "released":
            for w in self.by_function.values():
                self._attachments.forget(w, now_ns)
        elif news.id in self._attachments.owner:
            self._hear_of(self._attachments.owner[news.id], news, now_ns)

    def _hear_of(self, w: TimedFunction, news: LinkNews, now_ns: int) -> None:
        at_ns = min(news.at_ns or now_ns, now_ns)  # what the holder did lies up to one poll back
        if news.id in w.site_links:
            if news.what == "made":
                self._duty_cycle.returns.made(news.id)
            else:  # an alarm is told for the entry's link as well
                self._attachments.lost(w, news.id)
        elif news.what == "made" and not w.on_ns:
            self._duty_cycle.made(w, at_ns)
        elif news.what == "failed":
            self._failed(w, news, now_ns)
        elif news.what == "alarm":
            self._refuse(w, self._duty_cycle.limited(w, at_ns, now_ns), now_ns)
        elif news.what == "stranger":
            self._bystanders.taint(w.module.file)
            self._duty_cycle.again(w, now_ns)

    def _failed(self, w: TimedFunction, news: LinkNews, now_ns: int) -> None:
        pid = self._attachments.lost(w, news.id)
        if news.errno == _NO_SUCH_PROCESS or (pid and pid not in self._programs.members):
            return  # it has ended meanwhile
        if not w.links:
            text = f"the kernel refuses it: {os.strerror(news.errno) if news.errno else news.text}"
            self._refuse(w, (Kind.COUNT, Reason(code="kernel-refuses", text=text)), now_ns)

    def seen_return(self, cookie: int, layout: int, address: int) -> None:
        """A call is going to return to a place that is not probed: learn it."""
        w = next((w for w in self.by_function.values() if w.cookies and w.cookies[0] == cookie & IDENTITY), None)
        if w is not None and w.by_site:
            self._duty_cycle.returns.learn(w, layout, address)

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
                self._attachments.forked(w, child)

    def gone(self, pid: int) -> None:
        """Take off the links of a process that has ended."""
        for w in self.by_function.values():
            self._attachments.gone(w, pid)

    def check_bystanders(self, now_ns: int) -> None:
        """Take links for all off files that a process that nobody chose maps by now."""
        for w in self.by_function.values():
            if 0 in w.links.values() and self._bystanders.share(w.module.file):
                self._duty_cycle.again(w, now_ns)

    def recheck_safety(self, now_ns: int) -> None:
        """Change how returns are timed at once if a library has come that can unwind the stack."""
        layouts = self._gate.mapped()
        for w in list(self.by_function.values()):
            if not w.links or not layouts:
                continue
            by_site, reason = self._gate.way(w.watch.kind, layouts)
            if reason is not None:
                self._refuse(w, (Kind.TIME, reason), now_ns)
            elif by_site and not w.by_site:
                self._duty_cycle.again(w, now_ns)
                w.window = None

    def suspect(self, pids: Iterable[int]) -> None:
        """Look now whether a debugger has come to these processes."""
        self._gate.suspect(map(int, pids))

    def _spare(self, now_ns: int) -> None:
        """Take probes off processes that must not have them any more: a debugger has come."""
        if self._gate.look_around(now_ns):
            for w in self.by_function.values():
                if any(self._gate.bars(pid, [w.module]) is not None for pid in set(w.links.values())):
                    self._duty_cycle.again(w, now_ns)
                    self._attachments.drain(now_ns + DRAIN_NS)  # return sites as well, open calls or not

    # time passes

    def reprice(self, prices: Prices) -> None:
        """Go by new prices and biases."""
        self.windows.prices = self._buckets.prices = prices

    def poll(self, now_ns: int) -> tuple[tuple[Observation, ...], tuple[Activity, ...]]:
        """Switch duty cycles, refill buckets, cut windows; return what is finished."""
        self._name_known(now_ns)
        self._spare(now_ns)
        self._attachments.drain(now_ns)
        self.windows.drain(self.by_function.values())
        activity, self._late = self._late, []
        for w in list(self.by_function.values()):
            self.windows.cut_if_due(w, now_ns)
            self._refuse(w, self._duty_cycle.poll(w, now_ns, off=self.off), now_ns)
            one = self.windows.activity(w, now_ns)
            if one is not None:
                activity.append(one)
                self._buckets.cost(w)
        return self.windows.finished(now_ns), tuple(activity)

    def due_ns(self) -> int:
        """Return when a probe must be put on or off next; 0: at no certain time."""
        due = self._attachments.due_ns()
        for w in self.by_function.values():
            if w.on_ns and w.watch.kind is Kind.COUNT:
                due.append(w.on_ns)  # counts last a moment only
            elif w.on_ns and w.off_at_ns:
                due.append(w.off_at_ns)
            elif w.ready and not w.links and not self.off:
                due.append(max(w.next_on_ns, 1))
        return min(due, default=0)
