"""The timed functions: who has a slot, what the kernel and the holder report about it, and who is given up."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from specmine.model.batch import Activity, Prices, Refusal, Watch
from specmine.model.function import Reason
from specmine.model.observation import Kind, Observation
from specmine.probes.elf.facts import Grade, Site
from specmine.probes.kernel.links import LinkNews
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.tracker import ProcessTracker
from specmine.probes.safety.gate import Gate
from specmine.probes.safety.rules import with_remedy
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.symbolizer import Symbolizer

from .activity import ActivityMeter
from .attacher import Attacher, Refused
from .function.open_calls import OpenCalls
from .function.slot import Slot
from .function.timed_function import TimedFunction
from .isolation import Isolation
from .link_table import LinkTable
from .phases.duty_cycle import DutyCycle
from .placement import Placement
from .return_probes import IDENTITY, ReturnProbes
from .unmapped import UnmappedFunctions
from .windows import Windows

_NO_SUCH_PROCESS = 3
PATIENCE_NS = 500_000_000
"""How long a function waits for the return sites that samples have shown."""
MOST_DROPPED = 256
SESSION_LOOK_NS = 250_000_000
"""So often it is looked whether a library has come that may throw, while return addresses are replaced."""


class Registry:
    """All timed functions."""

    def __init__(
        self,
        *,
        duty_cycle: DutyCycle,
        attacher: Attacher,
        links: LinkTable,
        returns: ReturnProbes,
        windows: Windows,
        activity: ActivityMeter,
        isolation: Isolation,
        placement: Placement,
        gate: Gate,
        modules: Modules,
        symbolizer: Symbolizer,
        tracker: ProcessTracker,
        bystanders: Bystanders,
        slots: Iterable[tuple[Slot, OpenCalls]],
        isolate: bool,
    ) -> None:
        """Time nothing yet; at most as many functions at once as there are slots."""
        self._duty_cycle, self._attacher, self._links, self._returns = duty_cycle, attacher, links, returns
        self.by_function = duty_cycle.functions
        self.windows, self.activity, self._isolation = windows, activity, isolation
        self._gate, self._symbolizer = gate, symbolizer
        self._tracker, self._bystanders = tracker, bystanders
        self._isolate = isolate
        self.placement = placement
        self._off = False
        self._polled_ns = 0
        self._free = list(slots)
        self._refusals: list[Refusal] = []
        self._late: list[Activity] = []
        self._fresh = True
        """No function was timed yet."""
        self._dropped: dict[int, str] = {}
        """Functions that were timed under a cookie and are not any more, the newest last."""
        self._unmapped = UnmappedFunctions(modules, symbolizer)

    # requests

    def switch(self, *, off: bool) -> None:
        """Take in the kill switch; while it is on nothing is attached."""
        self._off = off

    def watch(self, watch: Watch, now_ns: int) -> None:
        """Begin to time a function, or go on with other parameters."""
        w = self.by_function.get(watch.function)
        if w is not None and w.watch.kind is watch.kind:
            self._rewatch(w, watch, now_ns)
            return
        self.unwatch(watch.function, now_ns)
        if self._unmapped.awaits(watch):
            return
        if not self._free:
            reason = Reason(code="slots", text="all slots for watched functions are taken")
            self._refusals.append(Refusal(function=watch.function, kind=watch.kind, reason=reason))
        else:
            self._begin(watch, now_ns)

    def _rewatch(self, w: TimedFunction, watch: Watch, now_ns: int) -> None:
        before = w.watch
        if before.inside_of != watch.inside_of and (before.looks_inside or watch.looks_inside):
            self._duty_cycle.leave(w, watch, now_ns)
        w.request(watch)
        if (before.on_ns, before.period_ns) != (watch.on_ns, watch.period_ns):
            w.attachment.end_after(now_ns, watch.on_ns)
            w.schedule.attach_by(now_ns + watch.period_ns)
        elif not w.attachment.on_ns and watch.hits_per_second > before.hits_per_second:
            w.schedule.attach_by(now_ns + int(watch.burst_hits / watch.hits_per_second * 1e9))
        w.bucket.fill(self.activity.burst_hits(w))
        w.slot.set_timed_share(watch.timed_share if w.sampled else 1.0)

    def _begin(self, watch: Watch, now_ns: int) -> None:
        function, module = self._symbolizer.functions[watch.function], self._symbolizer.module_of[watch.function]
        returns = self._returns.sites_of(watch.function)
        slot, open_calls = self._free.pop(0)
        open_calls.forget_all()
        w = TimedFunction(function, module, watch, slot, open_calls, returns, may_isolate=self._isolate)
        self.by_function[watch.function] = w
        self._isolation.forget(w.slot.number)
        self._fresh = False
        if w.probe.timed and self.placement.returns_by_site() and self._returns.expect(w):
            w.schedule.wait_until(now_ns + PATIENCE_NS)

        def judged(site: Site | Reason) -> None:
            if self.by_function.get(watch.function) is not w:
                return
            if isinstance(site, Reason):
                self._refuse(w, (Kind.COUNT, site), now_ns)
                return
            w.place(site.offset, stepped=site.grade is Grade.STEPPED)
            if w.stepped:
                self._attacher.note_stepped(w)

        self._gate.site(function, module, judged)

    def unwatch(self, function: str, now_ns: int) -> None:
        """Detach the probes; an unfinished window that holds enough becomes an observation."""
        self._unmapped.forget(function)
        w = self.by_function.get(function)
        if w is None:
            return
        self.windows.drain(self.by_function.values(), now_ns)
        self.windows.cut_rest(w, now_ns, last=True)
        self._drop(w, now_ns)

    def _drop(self, w: TimedFunction, now_ns: int) -> None:
        activity = self.activity.take(w, now_ns, at_once=True)
        if activity is not None:
            self._late.append(activity)
        self._links.detach(w, now_ns)
        self._isolation.end(w)
        self._dropped |= dict.fromkeys(w.attachment.cookies, w.function.key)
        for cookie in list(self._dropped)[:-MOST_DROPPED]:
            del self._dropped[cookie]
        w.drop_window()  # 9 kB, and as much for each path: late reports of its attachments name it for long
        self.windows.leave(w)
        if self.by_function.get(w.function.key) is w:
            del self.by_function[w.function.key]
            self._free.append((w.slot, w.open_calls))

    def _refuse(self, w: TimedFunction, refused: Refused, now_ns: int) -> None:
        """Give a function up if it is refused."""
        if refused is not None:
            kind, reason = refused
            self._refusals.append(Refusal(function=w.function.key, kind=kind, reason=with_remedy(reason)))
            w.returns.judge_anew()
            self._drop(w, now_ns)

    def _begin_mapped(self, now_ns: int) -> None:
        """Begin to time functions that were asked for by key as soon as their binary is mapped."""
        for watch, known in self._unmapped.mapped():
            if known:
                self.watch(watch, now_ns)
            else:
                reason = Reason(code="gone", text="its binary has no such function")
                self._refusals.append(Refusal(function=watch.function, kind=Kind.COUNT, reason=reason))

    # what the holder and the kernel report

    def hear(self, news: LinkNews, now_ns: int) -> None:
        """Take in what the holder reported about one link, or about all."""
        if self._links.cleaned(news):
            return
        if news.what == "released":
            for w in self.by_function.values():
                self._links.detach(w, now_ns)  # the holder may have attached since what was requested before
        elif news.id in self._links.owner:
            self._hear_of(self._links.owner[news.id], news, now_ns)

    def _hear_of(self, w: TimedFunction, news: LinkNews, now_ns: int) -> None:
        at_ns = min(news.at_ns or now_ns, now_ns)  # what the holder did lies up to one poll back
        if news.id in w.attachment.site_links:
            if news.what == "made":
                self._returns.made(news.id)
            else:  # an alarm is reported for the entry's link as well
                self._links.lost(w, news.id)
        elif news.what == "made" and not w.attachment.on_ns:
            self._duty_cycle.made(w, at_ns)
        elif news.what == "failed":
            self._failed(w, news, now_ns)
        elif news.what == "alarm":
            self._refuse(w, self._duty_cycle.limited(w, at_ns, now_ns), now_ns)
        elif news.what == "ended":
            self._duty_cycle.ended(w, at_ns, now_ns)
        elif news.what == "bystander":
            self._bystanders.hit(w.module.file)
            self._attacher.reattach(w, now_ns)

    def _failed(self, w: TimedFunction, news: LinkNews, now_ns: int) -> None:
        pid = self._links.lost(w, news.id)
        if news.errno == _NO_SUCH_PROCESS or (pid and pid not in self._tracker.members):
            return  # it has ended meanwhile
        if not w.attachment.links:
            text = f"the kernel refuses it: {os.strerror(news.errno) if news.errno else news.text}"
            self._refuse(w, (Kind.COUNT, Reason(code="kernel-refuses", text=text)), now_ns)

    def learn_return(self, cookie: int, layout: int, address: int) -> None:
        """Learn a place that a call is going to return to and that is not probed."""
        for w in self.by_function.values():
            if w.attachment.cookies[:1] == (cookie & IDENTITY,):
                if w.by_site:
                    self._returns.learn(w, layout, address)
                return
        function = self._dropped.get(cookie & IDENTITY)
        if function is not None:  # known the next time
            self._returns.note(function, layout, address)

    # processes come and go

    def forked(self, parent: int, child: int) -> None:
        """Take in a forked child: it inherits the breakpoints of its parent's links."""
        for w in self.by_function.values():
            if parent in w.attachment.pids:
                self._links.forked(w, child)

    def gone(self, pid: int) -> None:
        """Close the links of a process that has ended."""
        for w in self.by_function.values():
            self._links.gone(w, pid)

    def recheck_safety(self, now_ns: int) -> None:
        """Change how returns are timed at once if a library has come that can unwind the stack, or may be one."""
        for w, reason in self.placement.rechecked(now_ns):
            self._refuse(w, (Kind.TIME, reason), now_ns)

    def return_pids(self) -> list[int]:
        """Return the processes in which calls are timed at return sites, or soon will be; those on now come first."""
        return self.placement.return_pids(soon=self._fresh)

    def _move(self, key: str, module: Module, now_ns: int) -> None:
        """Go on with a function in another file of its build."""
        watch = self.by_function[key].watch
        self.unwatch(key, now_ns)
        self._symbolizer.move(key, module)
        self._returns.forget(key)
        self.watch(watch, now_ns)

    def forget_layouts(self, layouts: Collection[int]) -> None:
        """Forget what is known of layouts whose numbers others get."""
        self._returns.forget_layouts(layouts)

    def forget(self, gone: Collection[Module], functions: Collection[str], now_ns: int) -> None:
        """Forget files that were closed, as callers too, and functions that were forgotten with them.

        What was asked for in them is awaited: their slots are for others meanwhile.
        """
        for w in [w for w in self.by_function.values() if w.module in gone]:
            self.unwatch(w.function.key, now_ns)
            self.watch(w.watch, now_ns)
        self._returns.forget_files(gone, functions)
        self.windows.forget(functions)
        self._gate.forget(functions)

    # time passes

    def reprice(self, prices: Prices) -> None:
        """Go by new prices and biases."""
        self.windows.reprice(prices)
        self.activity.reprice(prices)

    def poll(self, now_ns: int) -> tuple[tuple[Observation, ...], tuple[Activity, ...]]:
        """Do what is due at each function, cut windows; return what is finished."""
        self._polled_ns = now_ns
        self._begin_mapped(now_ns)
        for key, module in self.placement.elsewhere(now_ns):
            self._move(key, module, now_ns)
        self.placement.leave_debugged(now_ns)
        self._links.drain(now_ns)
        self.windows.drain(self.by_function.values(), now_ns)
        reports, self._late = self._late, []
        for w in list(self.by_function.values()):
            w.open_calls.poll(now_ns)
            cut = self.windows.cut_if_due(w, now_ns)
            self._refuse(w, self._duty_cycle.poll(w, now_ns, off=self._off), now_ns)
            activity = self.activity.take(w, now_ns, at_once=cut)
            if activity is not None:
                reports.append(activity)
                self.activity.write_costs(w)
        for w, refused in self._duty_cycle.take_refused():
            self._refuse(w, refused, now_ns)
        return self.windows.finished(now_ns), tuple(reports)

    def take_refusals(self) -> tuple[Refusal, ...]:
        """Return the refusals since the last call."""
        refusals, self._refusals = tuple(self._refusals), []
        return refusals

    def safety_ns(self) -> int:
        """Return when it must be looked whether a library has come that may throw; 0: at no certain time."""
        replacing = any(w.attachment.on_ns and w.probe.timed and not w.by_site for w in self.by_function.values())
        return self._polled_ns + SESSION_LOOK_NS if replacing else 0

    def due_ns(self) -> int:
        """Return when a probe must be attached or detached next; 0: at no certain time."""
        due = self._links.due_ns()
        for w in self.by_function.values():
            if w.attachment.on_ns and not w.probe.timed:
                due.append(w.attachment.on_ns)  # counts last a moment only
            elif w.attachment.on_ns and w.attachment.off_at_ns:
                due.append(w.attachment.off_at_ns)
            elif w.ready and not w.attachment.links and not self._off and not w.watch.follows:
                due.append(max(w.schedule.next_on_ns, 1))
        return min(due, default=0)
