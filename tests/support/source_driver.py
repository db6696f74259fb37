"""Drives a live source on a target program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from specmine.model.batch import Activity, Batch, HotSample, Refusal, Watch
from specmine.model.function import Function
from specmine.model.observation import Kind, Observation
from specmine.probes.kernel.loader import LINK_KINDS
from specmine.probes.kernel.maps import kernel_at_least
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.patience import patient
from tests.support.yielding import yielding


@contextmanager
def running(*argv: object) -> Iterator[subprocess.Popen[str]]:
    """Start a target program; end it in any case."""
    with yielding():
        child = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()  # not read to its end: what it has started may still hold it


def counts_of(child: subprocess.Popen[str]) -> dict[str, object]:
    """End a target program and return the true counts that it prints."""
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=patient(60))
    found: dict[str, object] = json.loads(out.splitlines()[-1])
    return found


class Driver:
    """Polls a source and gathers what it reports."""

    def __init__(self, source: BpfSource) -> None:
        self.source = source
        self.functions: dict[str, Function] = {}
        self.observations: list[Observation] = []
        self.activities: list[Activity] = []
        self.hot_samples: list[HotSample] = []
        self.runtime: list[HotSample] = []
        self.refusals: list[Refusal] = []
        self.last = Batch(now_ns=0)

    def poll(self, done: Callable[[], object], limit_s: float = 60.0) -> None:
        """Poll until something is true; fail after the limit."""
        limit_s = patient(limit_s)
        end = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end, f"not within {limit_s} s: {self.last}"
            self.step()
            time.sleep(0.02)

    def step(self) -> None:
        """Poll once."""
        batch = self.last = self.source.poll(time.monotonic_ns())
        self.functions |= {function.key: function for function in batch.functions}
        self.observations += batch.observations
        self.activities += batch.activity
        self.hot_samples += batch.hot_samples
        self.runtime += batch.runtime
        self.refusals += batch.refusals

    def key(self, name: str) -> str:
        """Return the key of a function that was named, once it is."""
        self.poll(lambda: any(f.name == name for f in self.functions.values()))
        return next(f.key for f in self.functions.values() if f.name == name)

    def watch(self, name: str, kind: Kind, **how: float) -> str:
        """Ask for a function by its name."""
        key = self.key(name)
        limits = {"window_calls": 500, "window_ns": 10**9, "minimum_calls": 20, **how}
        self.source.apply(Watch(function=key, kind=kind, **limits))  # type: ignore[arg-type]
        return key


_SINCE = {"session": (6, 13), "multi": (6, 6), "perf": (4, 17)}
"""The kernel that brought each kind of link."""


def not_applicable(links: tuple[str, ...]) -> str:
    """Return why a test of these kinds of link does not apply to this kernel, '' if it does."""
    if any(kernel_at_least(*_SINCE[kind]) for kind in links):
        return ""
    return f"this kernel has no {' and no '.join(links)} links"


@contextmanager
def driven(pid: int, *names: str, links: tuple[str, ...] = LINK_KINDS, **settings: Any) -> Iterator[Driver]:
    """Start a source on a pid with hints; without any it can sample, which takes the verifier three times as long."""
    if why := not_applicable(links):
        pytest.skip(why)
    cache = os.environ["CACHE_DIRECTORY"]
    source = BpfSource(
        [Selection(pid=pid)],
        SourceSettings(watch=names, links=links, cache=cache, **({"sampling": not names} | settings)),
    )
    try:
        source.start()
        yield Driver(source)
    finally:
        source.close()
