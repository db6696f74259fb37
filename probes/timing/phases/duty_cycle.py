"""The on-phases of timed functions: when probes are attached and detached, and when a function is refused."""

from __future__ import annotations

import random

from specmine.model.batch import Watch
from specmine.model.function import Reason
from specmine.model.observation import Kind
from specmine.probes.timing.attacher import RETRY_NS, Attacher, Refused, traps_and_calls
from specmine.probes.timing.function.timed_function import TimedFunction
from specmine.probes.timing.isolation import TURN_NS, Isolation
from specmine.probes.timing.process_choice import ProcessChoice
from specmine.probes.timing.windows import Windows

from .shared import SharedPhases

LONGER = 5
"""An on-phase lasts so many times as long as planned at most."""
UNCLEAR_MOST = 20
"""Windows discarded for unknown callers of a recursion before it is given up."""


class DutyCycle:
    """Does what is due at each function."""

    def __init__(
        self,
        attacher: Attacher,
        choice: ProcessChoice,
        windows: Windows,
        isolation: Isolation,
        chance: random.Random,
    ) -> None:
        """Time no function yet."""
        self.functions: dict[str, TimedFunction] = {}
        """All timed functions by key; isolation of one detaches the probes of others."""
        self._attacher, self._choice = attacher, choice
        self._windows, self._isolation, self._chance = windows, isolation, chance
        self._shared = SharedPhases(self.functions, attacher, isolation)
        self._heard_ns = 0
        """When the kernel was last read because of a report of the holder."""

    def poll(self, w: TimedFunction, now_ns: int, *, off: bool) -> Refused:
        """Do what is due; ``off``: nothing is attached."""
        if w.attachment.on_ns:
            return self._poll_on(w, now_ns)
        if w.watch.follows:
            if w.attachment.links and not self._shared.is_led(w):
                self._attacher.detach(w, now_ns)
            return None
        due = w.ready and not w.attachment.links and now_ns >= w.schedule.next_on_ns
        due = due and (w.returns.answered or now_ns >= w.schedule.patient_ns)
        due = due and not off and not self._isolation.holds_back(w, now_ns)
        if due and (not w.shares or self._shared.is_gathered(w, now_ns)):
            return self._attach(w, now_ns)
        return None

    def take_refused(self) -> list[tuple[TimedFunction, Refused]]:
        """Return functions that must not be probed, and why, beside those that ``poll`` was asked for."""
        return self._shared.take_refused()

    def made(self, w: TimedFunction, at_ns: int) -> None:
        """Begin the on-phase: the probes are on."""
        on_ns = min(w.watch.on_ns or TURN_NS, TURN_NS) if w.alone else w.watch.on_ns
        w.attachment.switch_on(at_ns, on_ns)
        self._windows.on(w)
        if not w.alone:
            inside = self._isolation.directly_inside(w.slot.number)
            for other in self.functions.values():
                if other.slot.number in inside and not other.isolated:
                    other.schedule.join(at_ns)  # what it takes of these calls is known only while both are on

    def limited(self, w: TimedFunction, at_ns: int, now_ns: int) -> Refused:
        """Wait until the bucket, which ran empty, would be full again."""
        w.bucket.alarm()
        self._check_returns(w, now_ns)
        refused = self._judge_returns(w, now_ns)
        if refused is not None:
            return refused
        # the pause that follows is no part of a window that holds enough
        self._cut(w, at_ns, now_ns, heard=True)
        self._detach(w, at_ns)
        if w.take_owed():
            w.schedule.attach_at(now_ns + RETRY_NS)
            return None
        rate = w.watch.hits_per_second
        wait_ns = w.watch.burst_hits / rate * 1e9 if rate else 1e9
        w.schedule.attach_at(now_ns + int(wait_ns * self._chance.uniform(0.5, 1.5)))
        return None

    def ended(self, w: TimedFunction, at_ns: int, now_ns: int) -> None:
        """Take in that the holder closed the links of a callee with those of the function that it follows."""
        self._end_phase(w, at_ns, now_ns)

    def leave(self, w: TimedFunction, watch: Watch, now_ns: int) -> None:
        """End what is on, and the window: on-phases of another kind follow, at once if calls are looked into."""
        self._windows.renew(w, now_ns, self.functions.values())
        if w.attachment.links:
            self._detach(w, now_ns)
        pause_ns = 0 if watch.looks_inside else watch.period_ns
        w.schedule.attach_at(now_ns + int(pause_ns * self._chance.uniform(0.5, 1.5)))

    def _attach(self, w: TimedFunction, now_ns: int) -> Refused:
        pids = self._attacher.choose(w, now_ns)
        if isinstance(pids, tuple):
            return pids
        if pids and not (w.alone and not self._takes_turn(w, now_ns)):
            companions = self._shared.attach_followers(w, pids, now_ns) if w.shares else []
            if companions:
                self._windows.expect(w)
            self._attacher.attach(w, pids, now_ns, companions)
        return None

    def _takes_turn(self, w: TimedFunction, now_ns: int) -> bool:
        """Have the probes inside its calls detached; True once they are."""
        others = self._isolation.begin(w, self.functions.values(), now_ns)
        for other in others or ():
            self._attacher.reattach(other, now_ns)
        if others is None or others:  # their links take a while to be closed
            w.schedule.attach_at(now_ns + RETRY_NS)
            return False
        return True

    def _poll_on(self, w: TimedFunction, now_ns: int) -> Refused:
        if w.alone and not self._isolation.has_turn(w):
            self._attacher.reattach(w, now_ns)
            return None
        if w.watch.follows and not self._shared.is_led(w):
            self._end_phase(w, now_ns, now_ns)
            return None
        if w.sampled and w.in_window("inner"):  # calls inside untimed ones were taken for outermost
            self._attacher.note_unsampled(w)
            w.drop_window()
            self._attacher.reattach(w, now_ns)
            return None
        if w.by_site and w.attachment.links:
            refused = self._learn_sites(w, now_ns)
            if refused is not None:
                return refused
        if not w.attachment.links:  # every process that it was linked for has ended
            w.attachment.switch_off(now_ns)
        elif w.attachment.off_at_ns and now_ns >= w.attachment.off_at_ns:
            if self._goes_on(w, now_ns):
                w.attachment.end_after(now_ns, w.watch.on_ns)
            else:
                self._end_phase(w, now_ns, now_ns)
        elif now_ns >= w.schedule.rotate_ns:
            w.schedule.rotated(now_ns)
            if self._choice.has_others(w):
                self._attacher.detach(w, now_ns)
                return self._attach(w, now_ns)
        else:
            w.bucket.refill(w.watch.hits_per_second, w.watch.burst_hits, now_ns)
        return None

    def _goes_on(self, w: TimedFunction, now_ns: int) -> bool:
        """Tell whether an on-phase lasts longer: its window is not full yet, and began with it, or before.

        Calls that take longer than they did come more rarely. They cost no more than planned, and would else be looked
        at only after the next on-phase, up to a minute later.
        """
        if w.isolated or w.shares or w.watch.follows or w.window is None:
            return False
        began_ns = w.attachment.on_ns
        is_full = w.window.start_ns > began_ns or w.in_window("timed") >= w.watch.window_calls
        return not is_full and now_ns - began_ns < LONGER * w.watch.on_ns

    def _cut(self, w: TimedFunction, at_ns: int, now_ns: int, *, heard: bool = False) -> None:
        """Make the open window an observation if it holds enough.

        ``heard``: the holder had taken the probes off when its reports were read. So one look at the kernel is enough
        for all reports that were read together.
        """
        if w.watch.looks_inside and w.isolated:
            self._drain(now_ns, heard=heard)
            if w.shares:  # no observation: what it says of callees is kept
                self._windows.cut(w, at_ns)
            else:
                self._windows.cut_rest(w, at_ns)
        elif w.in_window("timed") >= w.watch.minimum_calls:
            self._drain(now_ns, heard=heard)
            self._windows.cut_rest(w, at_ns)

    def _drain(self, now_ns: int, *, heard: bool) -> None:
        if heard and self._heard_ns == now_ns:
            return
        if heard:
            self._heard_ns = now_ns
        self._windows.drain(self.functions.values(), now_ns)

    def _detach(self, w: TimedFunction, at_ns: int) -> None:
        """Detach the probes, and those of callees that shared the on-phase; see whose turn the next one is."""
        began_ns = w.attachment.on_ns
        if self._windows.is_followed(w):  # its calls are counted with the waits in them
            self._drain(at_ns, heard=False)
        self._attacher.detach(w, at_ns)
        for other in self._shared.followers(w):
            if other.attachment.links:
                self._end_phase(other, at_ns, at_ns)
        if w.watch.looks_inside and w.isolated and w.window is not None and w.window.start_ns > began_ns:
            self._windows.renew(w, at_ns, self.functions.values())
            w.turn()

    def _end_phase(self, w: TimedFunction, at_ns: int, now_ns: int) -> None:
        self._cut(w, at_ns, now_ns)
        self._check_returns(w, now_ns)
        self._detach(w, at_ns)
        self._isolation.end(w)
        if w.take_owed():  # what the phase was for comes at once
            w.schedule.attach_at(now_ns + RETRY_NS)
            return
        # at random, so that no rhythm of the program can hide from the on-phases
        pause_ns = max(TURN_NS if w.isolated else 0, w.watch.period_ns - w.watch.on_ns)
        w.schedule.pause(now_ns, pause_ns, self._chance.uniform(0.5, 1.5))

    def _learn_sites(self, w: TimedFunction, now_ns: int) -> Refused:
        """Probe the return sites learned since the last poll; say if that is no use."""
        self._attacher.learn(w)
        if now_ns >= w.schedule.check_ns:
            self._check_returns(w, now_ns)
        refused = self._judge_returns(w, now_ns)
        if refused is None and self._choice.is_shared(w):
            self._attacher.reattach(w, now_ns)  # a caller lies in a file that others map too: link by process
        return refused

    def _check_returns(self, w: TimedFunction, now_ns: int) -> None:
        """Compare the traps at its return sites with its calls."""
        w.schedule.checked(now_ns)
        if w.by_site:
            w.returns.check(*traps_and_calls(w))

    def _judge_returns(self, w: TimedFunction, now_ns: int) -> Refused:
        """Return why a function cannot be timed by its return sites."""
        if not w.by_site:
            return None
        age_ns = now_ns - w.window.start_ns if w.window else 0
        reason = w.returns.verdict(w.in_window("calls"), w.in_window("unlearnt"), age_ns)
        if w.unclear >= UNCLEAR_MOST:
            text = (
                "it calls itself, and from places whose returns cannot be probed: which call is outermost is not known"
            )
            reason = Reason(code="unclear-recursion", text=text)
        return (Kind.TIME, reason) if reason is not None else None
