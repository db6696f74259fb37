"""A source over a program that exists only as numbers, and a clock that moves only when somebody sleeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specmine.model.batch import (
    Activity,
    Batch,
    FollowWaits,
    HotSample,
    Lifetime,
    Prices,
    Refusal,
    Request,
    Sampling,
    Spent,
    Started,
    Unwatch,
    Watch,
)
from specmine.model.errors import ProbeError
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from tests.support.planted import Planted, path_of

MS, SECOND = 1_000_000, 1_000_000_000
PRICES = Prices(count_ns=700.0, time_ns=1300.0, path_ns=2300.0, stepped_ns=9000.0, sample_ns=5000.0, bias_ns=400.0)
REACTION_NS = 2 * MS
LEAST_REST = 20


@dataclass
class Window:
    """What one watch has collected."""

    watch: Watch
    start_ns: int
    next_on_ns: int = 0
    off_ns: int = 0
    tokens: float = 0.0
    durations: list[np.ndarray] = field(default_factory=list)
    by_way: dict[int, list[np.ndarray]] = field(default_factory=dict)
    timed: int = 0
    calls: int = 0
    watched_ns: int = 0


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self, now_ns: int = 100 * SECOND) -> None:
        self.now = now_ns

    def now_ns(self) -> int:
        return self.now

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        self.now = max(self.now, deadline_ns)


class SimulatedSource:
    """A Source over planted functions; deterministic for a seed."""

    def __init__(
        self,
        planted: Sequence[Planted],
        clock: FakeClock,
        *,
        seed: int = 1,
        cpus: float = 1.0,
        fail_at: int | None = None,
        ends_after_ns: int | None = None,
        link: str = "multi",
    ) -> None:
        self.planted = {each.function.key: each for each in planted}
        self.keys = {each.name: each.function.key for each in planted}
        self.clock, self.cpus, self.fail_at, self.link = clock, cpus, fail_at, link
        self.prices = PRICES
        self.random = np.random.default_rng(seed)
        self.windows: dict[str, Window] = {}
        self.rest: list[Observation] = []
        self.hertz = 0
        self.requests: list[tuple[int, Request]] = []
        self.refusals: list[Refusal] = []
        self.overhead_ns = 0.0
        self.began_ns = self.last_ns = 0
        self.ends_after_ns = ends_after_ns
        self.calls = 0
        self.closed = False

    def start(self) -> Started:
        self._count()
        self.began_ns = self.last_ns = self.clock.now_ns()
        life = Lifetime(
            id="boot:42:7", pid=42, executable="/opt/app", build_id="b1d", start_ns=self.began_ns, processes=1
        )
        host = {
            "hostname": "sim",
            "boot_id": "boot",
            "link": self.link,
            "utc_offset_ns": "1700000000000000000",
        }
        return Started(now_ns=self.began_ns, host=host, prices=self.prices, lifetimes=(life,))

    def fileno(self, *, urgent: bool = False) -> int:
        return -1

    def apply(self, request: Request) -> None:
        self._count()
        self.requests.append((self.last_ns, request))
        if isinstance(request, FollowWaits):
            return
        if isinstance(request, Sampling):
            self.hertz = request.hertz
        elif isinstance(request, Unwatch):
            self._drop(request.function)
        elif request.function in self.planted:  # what is not mapped is waited for
            refused = self.planted[request.function].refused
            if refused is not None and list(Kind).index(refused[0]) <= list(Kind).index(request.kind):
                self.refusals.append(Refusal(function=request.function, kind=refused[0], reason=refused[1]))
                return
            now = self.windows.get(request.function)
            if now is not None and now.watch.kind is request.kind and bool(now.watch.on_ns) == bool(request.on_ns):
                anew = now.watch.inside_of != request.inside_of
                now.watch, now.tokens, now.off_ns = request, request.burst_hits, max(now.off_ns, 0)
                if anew:  # a look begins with an on-phase
                    now.next_on_ns = self.last_ns + (1 if request.looks_inside else request.period_ns)
                now.next_on_ns = min(now.next_on_ns, self.last_ns + request.period_ns)
                return  # the window goes on
            self._drop(request.function)
            self.windows[request.function] = Window(
                watch=request,
                start_ns=self.last_ns,
                next_on_ns=self.last_ns + 1,  # the first on-phase comes at once
                tokens=request.burst_hits,
            )

    def poll(self, now_ns: int) -> Batch:
        self._count()
        passed = now_ns - self.last_ns
        activity: list[Activity] = []
        observations, self.rest = self.rest, []
        rested = {each.function for each in observations}
        on_ns: dict[str, int] = {}
        for key in sorted(self.windows, key=lambda key: (self.windows[key].watch.follows, key)):
            watch = self.windows[key].watch
            ran = self._follow(key, on_ns.get(watch.inside_of, 0)) if watch.follows else None
            activity.append(ran or self._run(key, self.windows[key], now_ns))
            on_ns[key] = activity[-1].watched_ns
            if key not in rested:
                observations += self._finished(key, self.windows[key], now_ns)
        hot_samples = self._sampled(passed)
        self.overhead_ns += sum(each.cost_ns for each in activity)
        self.overhead_ns += self.hertz * passed / SECOND * self.cpus * self.prices.sample_ns
        first = self.last_ns == self.began_ns
        refusals, self.refusals = tuple(self.refusals), []
        self.last_ns = now_ns
        ended = self.ends_after_ns is not None and now_ns - self.began_ns >= self.ends_after_ns
        return Batch(
            now_ns=now_ns,
            observations=tuple(observations),
            activity=tuple(activity),
            hot_samples=hot_samples,
            functions=tuple(each.function for each in self.planted.values()) if first else (),
            refusals=refusals,
            spent=Spent(
                overhead_ns=self.overhead_ns,
                program_cpu_ns=int((now_ns - self.began_ns) * self.cpus),
                agent_ns=int(0.002 * (now_ns - self.began_ns)),
            ),
            ended=ended,
            exit_status=0 if ended else None,
        )

    def close(self) -> None:
        self.closed = True

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise ProbeError("the kernel said no")

    def _wait(self, watch: Watch) -> int:
        return int(self.random.uniform(0.5, 1.5) * watch.period_ns)

    def _follow(self, key: str, on_ns: int) -> Activity:
        """Let the probes of a callee collect for as long as those of the function that it follows were on."""
        window = self.windows[key]
        if on_ns:
            window.tokens = window.watch.burst_hits
        (calls, hits), cost, _, used = self._collect(key, window, on_ns) if on_ns else ((0, 0), 0.0, False, 0)
        window.watched_ns += used
        window.calls += calls
        kind = window.watch.kind
        return Activity(
            function=key, kind=kind, watched_ns=used, hits=hits, calls=calls, cost_ns=cost, timed=calls,
        )  # fmt: skip

    def _run(self, key: str, window: Window, now_ns: int) -> Activity:
        """Let the probes of one function collect until now."""
        watch, cost, hits, on, calls, limited = window.watch, 0.0, 0, 0, 0, False
        at = max(self.last_ns, window.start_ns)
        while at < now_ns:
            if watch.on_ns and at < window.next_on_ns:
                at = min(now_ns, window.next_on_ns)
                if at == window.next_on_ns:
                    window.off_ns, window.tokens = at + watch.on_ns, watch.burst_hits
                continue
            end = min(now_ns, window.off_ns) if watch.on_ns else now_ns
            if window.off_ns == -1:
                break
            got, spent, empty, used = self._collect(key, window, end - at)
            calls, cost, hits, limited, on = (
                calls + got[0],
                cost + spent,
                hits + got[1],
                limited or empty,
                on + used,
            )
            at = end
            if watch.on_ns and (empty or at >= window.off_ns):
                window.next_on_ns = at + self._wait(watch)
            elif empty:
                window.off_ns = -1  # taken off for good
        window.watched_ns += on
        window.calls += calls
        return Activity(
            function=key,
            kind=watch.kind,
            watched_ns=on,
            hits=hits,
            calls=calls,
            cost_ns=cost,
            limited=limited,
            timed=0 if watch.kind is Kind.COUNT else calls,
        )

    def _collect(self, key: str, window: Window, length_ns: int) -> tuple[tuple[int, int], float, bool, int]:
        planted, watch = self.planted[key], window.watch
        per_call = 1 if watch.kind is Kind.COUNT else 2
        calls = int(self.random.poisson(planted.rate * length_ns / SECOND))
        if watch.hits_per_second:
            window.tokens = min(window.tokens + watch.hits_per_second * length_ns / SECOND, watch.burst_hits)
        limit = int(window.tokens // per_call) if watch.hits_per_second else calls
        empty, wanted = calls > limit, max(calls, 1)
        extra = 0
        if empty:
            extra = int(min(planted.rate * REACTION_NS / SECOND, calls - limit))
            length_ns, calls = int(length_ns * limit / wanted), limit
        window.tokens -= calls * per_call
        price = {Kind.COUNT: self.prices.count_ns, Kind.TIME: self.prices.time_ns, Kind.PATH: self.prices.path_ns}[
            watch.kind
        ]
        cost = calls * (1 + planted.inner) * price + extra * self.prices.count_ns
        if watch.kind is not Kind.COUNT and calls:
            self._time(planted, window, calls)
        return (calls, int(calls * (1 + planted.inner)) * per_call + extra), cost, empty, max(length_ns, 1)

    def _time(self, planted: Planted, window: Window, calls: int) -> None:
        weights = np.array([way.weight for way in planted.ways])
        grown = (1 + planted.drift) ** ((self.last_ns - self.began_ns) / SECOND)
        for place, number in enumerate(self.random.multinomial(calls, weights / weights.sum())):
            classes = planted.ways[place].classes
            for share, number_of_class in zip(
                classes, self.random.multinomial(number, [each[0] for each in classes]), strict=True
            ):
                durations = share[1] * grown * np.exp(share[2] * self.random.standard_normal(number_of_class))
                durations = np.maximum(durations + self.prices.bias_ns, 1)
                window.durations.append(durations)
                window.by_way.setdefault(place, []).append(durations)
        window.timed += calls

    def _finished(self, key: str, window: Window, now_ns: int) -> list[Observation]:
        watch, age = window.watch, now_ns - window.start_ns
        full = window.timed >= watch.window_calls
        old = age >= watch.window_ns and window.timed >= watch.minimum_calls
        if watch.kind is Kind.COUNT or not (full or old or age >= watch.limit_ns):
            return []
        return [self._cut(key, window, now_ns)]

    def _drop(self, key: str) -> None:
        """Give up a watch; what its open window holds becomes an observation of the next batch."""
        window = self.windows.pop(key, None)
        if window is not None and window.timed >= LEAST_REST and self.last_ns > window.start_ns:
            self.rest.append(self._cut(key, window, self.last_ns))
            del self.windows[key]

    def _cut(self, key: str, window: Window, now_ns: int) -> Observation:
        watch = window.watch
        planted = self.planted[key]
        paths = tuple(
            PathHistogram(
                path=path_of(planted.ways[place], planted.name),
                histogram=Histogram.from_durations(np.concatenate(durations)),
            )
            for place, durations in sorted(window.by_way.items())
        )
        durations = np.concatenate(window.durations) if window.durations else np.array([], dtype=float)
        observation = Observation(
            function=key,
            lifetime="boot:42:7",
            kind=watch.kind,
            start_ns=window.start_ns,
            end_ns=now_ns,
            histogram=Histogram.from_durations(durations.astype(np.int64)),
            calls=window.calls,
            watched_ns=window.watched_ns,
            inner=int(window.timed * planted.inner),
            bias_ns=self.prices.bias_ns,
            paths=paths if watch.kind is Kind.PATH else (),
        )
        fresh = Window(
            watch=watch,
            start_ns=now_ns,
            next_on_ns=window.next_on_ns,
            off_ns=window.off_ns,
            tokens=window.tokens,
        )
        self.windows[key] = fresh
        return observation

    def _sampled(self, passed: int) -> tuple[HotSample, ...]:
        found = []
        wall = passed * self.cpus
        for key in sorted(self.planted):
            each = self.planted[key]
            samples = int(self.random.poisson(self.hertz * wall / SECOND * each.inclusive))
            if samples:
                found.append(
                    HotSample(
                        function=key,
                        samples=samples,
                        busy_samples=samples,
                        on_cpu_ns=wall * each.own,
                        off_cpu_ns=0.0,
                        inclusive_ns=wall * each.inclusive,
                        callers=tuple((self.keys[name], part * wall * each.inclusive) for name, part in each.callers),
                        loop_bottom=each.loop_bottom,
                    )
                )
        return tuple(found)
