"""Phases without probes are that: nothing is on in them, and all goes on afterwards."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.lib.probe_toggle import Toggled
from specmine.model.batch import Batch, Spent, Watch
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.patience import patient
from tests.support.source_driver import running

OFF_S = 0.6


@pytest.mark.kernel
def test_no_probe_is_hit_in_a_phase_without_probes(program: Callable[..., Path], cache: Path) -> None:
    """Whatever is due then: a function that is called all the time takes no hit until the next phase."""
    with running(program("paths"), 600) as child:
        source = BpfSource([Selection(pid=child.pid)], SourceSettings(watch=("z",), sampling=False, cache=str(cache)))
        toggled = Toggled(source, child.pid)
        try:
            toggled.start()
            key = _watched(toggled)
            hits: list[int] = []

            def phases() -> Iterator[tuple[bool, float]]:
                yield False, 0.2
                hits.append(_hits(source, key))
                yield False, OFF_S
                hits.append(_hits(source, key))
                yield True, 60.0

            fake: Any = SimpleNamespace(run=phases)
            toggled.begin(fake)
            end = time.monotonic() + patient(60)
            while len(hits) < 2 or _hits(source, key) <= hits[1]:
                assert time.monotonic() < end
                toggled.poll(toggled.now_ns())
                time.sleep(0.01)
            assert hits[0] == hits[1] > 0
        finally:
            toggled.close()


class FakeClock:
    """What the toggled source uses of ``time``; only sleeping takes time."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def monotonic_ns(self) -> int:
        """Return the time."""
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += round(seconds * 1e9)


def test_time_and_cpu_time_stand_still_in_a_phase_without_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that always uses one CPU earns as much a second as if there were no such phases, at each moment."""
    monkeypatch.setattr("bench.lib.probe_toggle.family", lambda pid: [pid])
    clock = FakeClock()
    monkeypatch.setattr("bench.lib.probe_toggle.cpu_seconds", lambda pids: dict.fromkeys(pids, clock.now_ns * 1e-9))
    monkeypatch.setattr("bench.lib.probe_toggle.time", clock)
    nothing = SimpleNamespace(
        by_function={}, windows=SimpleNamespace(drain=lambda functions, now_ns: None), switch=lambda *, off: None
    )
    finder = SimpleNamespace(_hertz=0, stop=lambda: None)

    def read(now_ns: int) -> Batch:
        return Batch(now_ns=now_ns, spent=Spent(program_cpu_ns=now_ns))

    parts = SimpleNamespace(registry=nothing, profiler=finder, presence=SimpleNamespace(off=False))
    inner: Any = SimpleNamespace(poll=read, parts=parts)
    toggled = Toggled(inner, 1)
    fake: Any = SimpleNamespace(run=lambda: itertools.cycle([(True, 0.1), (False, 0.25)]))
    seen = [toggled.poll(toggled.now_ns())]
    toggled.begin(fake)
    while clock.now_ns < 3e9:
        seen.append(toggled.poll(toggled.now_ns()))
        clock.sleep(0.01)
    times, cpu = [each.now_ns for each in seen], [each.spent.program_cpu_ns for each in seen]
    assert times == sorted(times)
    assert 0.4e9 < times[-1] - times[0] < 0.8e9
    # in the poll that passes such a phase the CPU time is that of the poll before
    assert all(abs((c - cpu[0]) - (t - times[0])) < 11e6 for t, c in zip(times, cpu, strict=True))


def _watched(toggled: Toggled) -> str:
    """Have a function counted in short on-phases, one after the other, and wait until it was hit; return its key."""
    key, end = "", time.monotonic() + patient(60)
    while not key or not _hits(toggled.inner, key):
        assert time.monotonic() < end
        batch = toggled.poll(toggled.now_ns())
        for each in batch.functions:
            if each.name == "z" and not key:
                key = each.key
                toggled.apply(Watch(function=key, kind=Kind.TIME, on_ns=20_000_000, period_ns=60_000_000))
        time.sleep(0.01)
    return key


def _hits(source: BpfSource, key: str) -> int:
    watching = source.parts.registry
    return watching.by_function[key].slot.count("hits") if key in watching.by_function else 0
