"""What a probe costs on this host, and how much of its own time it leaves in a duration: measured, not assumed.

A tiny program of our own calls an empty function under a known stack, without probes and with each kind of them.
Its CPU time tells the price of a hit, the recorded durations of the empty function the bias; those of a function that
calls the empty one tell what probed calls add to the calls around them. Prices are the rounds' medians times 1.25: a
budget must rather be kept than used up; what cold caches add is measured at the probes (coldness.py). What durations
are corrected by is the least of the rounds' medians: beside other work rounds are slower, never faster.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.model.errors import HelperError, ProbeError
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind
from specmine.probes.arch.interface import INNER
from specmine.probes.arch.machine import machine
from specmine.probes.holder.time_scale import TIME_SCALE
from specmine.probes.kernel.cache import read_json, write_json
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import Loaded, sources_digest
from specmine.probes.kernel.maps import CachedMap, map_array, write_array
from specmine.probes.kernel.structs import (
    COUNTERS,
    EPOCHS,
    LAYOUT,
    MAX_SLOTS,
    PROCESS,
    RANGE_ROWS,
    RETURN_PROBED,
    RETURN_REFUSED,
    RETURN_SITE,
    SLOT,
)
from specmine.probes.kernel.work_folder import work_folder
from specmine.probes.process import proc

from .cold_cache import geometric_mean

SLOT_NUMBER, OUTER_SLOT = MAX_SLOTS - 1, MAX_SLOTS - 2
ROUNDS = 5
KEPT_S = 6 * 3600
"""Age at which what was measured before is measured again: clocks change, virtual machines move."""
SAFETY = 1.25
SAMPLE_NS = 13_000.0
"""A sample of the CPU clock in a virtual machine, where the timer interrupt is dear; less on bare metal."""
BIAS_ERROR = 0.12
"""Least relative uncertainty of the bias: caches are colder in a real program than in a loop."""

_LINKING_S = 5.0 * TIME_SCALE


@dataclass(frozen=True, slots=True)
class _Probe:
    """A probe on one of the program's functions."""

    at: str
    kind: Kind
    returns: str = ""
    """Return address that is probed; '' where returns are replaced or not wanted."""
    untimed: bool = False
    """The entry finds that its return site cannot be probed."""
    slot: int = SLOT_NUMBER


@dataclass(frozen=True, slots=True)
class Round:
    """One run of the program."""

    cpu_ns: float
    quartiles: NDArray[np.float64]
    """Of the durations booked meanwhile, ns: a row for the empty function, one for the outer; NaN without any."""
    handler_ns: float = 0.0
    """What the returns' handlers took, the geometric mean; 0 if there was none."""


def _quartiles(histogram: Histogram) -> list[float]:
    return histogram.quantiles((0.25, 0.5, 0.75)) if histogram.total else [np.nan] * 3


class _Bench:
    """The program on disk, and runs of it."""

    def __init__(self, folder: Path, loaded: Loaded, links: Links, calls: int, start: str) -> None:
        self.program = program = machine().calibration_program(calls)
        self.places, self.rows, image = program.places, program.rows, program.image
        entry = struct.pack("<Q", program.base + self.places[f"start_{start}"])
        self.path = folder / f"{start}-{calls}"
        self.path.write_bytes(image[:24] + entry + image[32:])
        self.path.chmod(0o700)
        self.calls, self.links = calls, links
        epochs = map_array(loaded.maps["epochs"], 1, EPOCHS, writable=True)
        self.processes = CachedMap(loaded.maps["processes"], "<u4", PROCESS, epochs)
        self.sites = CachedMap(loaded.maps["return_sites"], RETURN_SITE, "<u8", epochs)
        booked = map_array(loaded.maps["histogram"], loaded.entries["histogram"], "<u8").reshape(MAX_SLOTS, BUCKETS)
        self.booked, self.counters = booked, map_array(loaded.maps["counters"], MAX_SLOTS, COUNTERS)
        self.layout = self._teach(loaded, len(image))

    def _teach(self, loaded: Loaded, size: int) -> int:
        """Give the kernel the program's unwind rows, at the far end of its arrays."""
        count, pages = len(self.rows), (size >> 8) + 2
        first, index = loaded.entries["rows"] - count, loaded.entries["page_index"] - pages
        write_array(loaded.maps["rows"], first, np.array([at | info << 32 for at, info in self.rows], np.uint64))
        starts = np.array([at for at, _ in self.rows])
        place = np.searchsorted(starts, np.arange(pages) << 8, side="right") - 1
        write_array(loaded.maps["page_index"], index, (first + np.clip(place, 0, None)).astype(np.uint64))
        number = loaded.entries["layouts"] - 1
        value = np.zeros(1, LAYOUT)
        value["ranges"]["start"] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
        value["ranges"][0, 0] = (0, 0, 0, 0, 0)
        value["ranges"][0, 1] = (self.program.base, self.program.base + size, 0, index, RANGE_ROWS)
        write_array(loaded.maps["layouts"], number, value)
        return number

    def run(self) -> Round:
        """Run once."""
        before = self.booked[[SLOT_NUMBER, OUTER_SLOT]]
        handlers = self._handlers()
        with subprocess.Popen([str(self.path)], stdin=subprocess.PIPE, cwd="/", env={}) as child:
            process = np.array([(0, self.layout, 1, 0)], PROCESS).tobytes()
            self.processes.put(np.uint32(child.pid).tobytes(), process)
            assert child.stdin is not None
            child.stdin.write(b"x")
            child.stdin.flush()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.processes.remove(np.uint32(child.pid).tobytes())
        if child.returncode:
            raise ProbeError(f"the calibrating program ended with {child.returncode}")
        booked = self.booked[[SLOT_NUMBER, OUTER_SLOT]] - before
        quartiles = [
            Histogram.from_dense(each).quantiles((0.25, 0.5, 0.75)) if each.any() else [np.nan] * 3 for each in booked
        ]
        now = self._handlers()
        handlers = now[0] - handlers[0], now[1] - handlers[1]
        handler_ns = geometric_mean(*handlers) if handlers[0] else 0.0
        return Round((usage.ru_utime + usage.ru_stime) * 1e9, np.array(quartiles), handler_ns)

    def _handlers(self) -> tuple[int, int]:
        counted = self.counters[SLOT_NUMBER]
        return int(counted["handlers_timed"]), int(counted["handler_log"])

    def rounds(self, *probes: _Probe) -> list[Round]:
        """Run ROUNDS times with these probes."""
        with ExitStack() as stack:
            for probe in probes:
                stack.enter_context(self._with(probe))
            return [self.run() for _ in range(ROUNDS)]

    @contextmanager
    def _with(self, probe: _Probe) -> Iterator[None]:
        """Have a probe on, and wait until it is off again."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        made: list[int] = []
        key = b""
        try:
            if probe.returns:
                back = self.places[probe.returns]
                key = np.array([(self.program.base + back, self.layout, probe.slot)], RETURN_SITE).tobytes()
                state = RETURN_REFUSED if probe.untimed else RETURN_PROBED
                self.sites.put(key, np.uint64(state).tobytes())
                if not probe.untimed:
                    behind = self.program.emulated_after[probe.returns.rpartition("_")[0]]
                    made.append(self.links.attach_site(fd, [back + behind], [probe.slot], "call_site_return"))
                made.append(self.links.attach_site(fd, [self.places[probe.at]], [probe.slot], "call_time_site"))
            else:
                made.append(self.links.attach(fd, [self.places[probe.at]], [probe.slot], probe.kind))
        finally:
            os.close(fd)
        _await(self.links, made, "made")
        try:
            yield
        finally:
            for number in reversed(made):
                self.links.close(number)
            _await(self.links, made, "closed")
            if key:
                self.sites.remove(key)


def _await(links: Links, numbers: Iterable[int], what: str) -> None:
    waiting = set(numbers)
    for _ in range(20):
        for news in links.news(_LINKING_S) if waiting else ():
            if news.id in waiting and news.what == "failed":
                raise ProbeError(f"the calibrating probe was refused: {news.text}")
            if news.what == "dead":
                raise HelperError(news.text)
            if news.what == what:
                waiting.discard(news.id)
        if not waiting:
            return
    raise HelperError("the calibrating probe was not made in time")


def calibrated(
    loaded: Loaded, links: Links, slots: NDArray[np.void], counters: NDArray[np.void], cache: Path | None
) -> Prices:
    """Return this host's prices, measured now or in the last hours of this boot.

    Raises
    ------
    ProbeError
        The calibrating program does not run or its probes do not fire.
    """
    kept = kept_prices(cache, loaded.mode) if cache else None
    if kept is not None:
        return kept
    prices = measured(loaded, links, slots, counters)
    if cache is not None:
        write_json(_kept_at(cache, loaded.mode), asdict(prices))
    return prices


def kept_prices(cache: Path, mode: str) -> Prices | None:
    """Return the prices over a kind of link that were measured in the last hours of this boot, None if none were."""
    path = _kept_at(cache, mode)
    kept = read_json(path)
    try:
        if 0 <= time.time() - path.stat().st_mtime < KEPT_S and set(kept) == {each.name for each in fields(Prices)}:
            return Prices(**{name: float(value) for name, value in kept.items()})
    except (OSError, ValueError, TypeError):
        pass
    return None


def _kept_at(cache: Path, mode: str) -> Path:
    return cache / f"prices-{proc.boot_id()}-{mode}-{sources_digest()}.json"


def measured(loaded: Loaded, links: Links, slots: NDArray[np.void], counters: NDArray[np.void]) -> Prices:
    """Measure this host's prices; takes half a second. Raises ProbeError as ``calibrated``."""
    for slot in (SLOT_NUMBER, OUTER_SLOT):
        slots[slot] = np.zeros(1, SLOT)[0]
        slots["limit"][slot] = 1 << 62
    sites = loaded.mode != "perf"
    with work_folder() as folder:
        deep = _Bench(Path(folder), loaded, links, 4000, "deep_emulated")
        bare = _cpu_ns(deep.rounds())

        def price(rounds: list[Round], bench: _Bench = deep, without: float = bare) -> float:
            return max(50.0, (_cpu_ns(rounds) - without) / bench.calls)

        count = price(deep.rounds(_Probe("emulated", Kind.COUNT)))
        timed = deep.rounds(_Probe("emulated", Kind.TIME))
        walked = deep.rounds(_Probe("emulated", Kind.PATH))
        at_site = deep.rounds(_Probe("emulated", Kind.TIME, "return_emulated")) if sites else []
        untimed = 0.0
        if loaded.mode == "session":
            slots["timed_of_4g"][SLOT_NUMBER] = 1
            untimed = price(deep.rounds(_Probe("emulated", Kind.TIME)))
            slots["timed_of_4g"][SLOT_NUMBER] = 0
        slow = _Bench(Path(folder), loaded, links, 400, "deep_stepped")
        still = _cpu_ns(slow.rounds())
        stepped = price(slow.rounds(_Probe("stepped", Kind.COUNT)), slow, still)
        timed_slowly = slow.rounds(_Probe("stepped", Kind.TIME))
        inside = _nested(_Bench(Path(folder), loaded, links, 400, "wide_emulated"), slots, loaded.mode)
    bias, spread = least_bias(timed)
    site_bias, site_spread = least_bias(at_site) if sites else (0.0, 0.0)
    if not bias or not int(counters["timed"][SLOT_NUMBER]):
        raise ProbeError("the calibrating probes did not fire")
    if sites and not site_bias:
        raise ProbeError("the calibrating probes at a return site did not fire")
    return Prices(
        count_ns=count * SAFETY,
        time_ns=max(price(rounds) for rounds in (timed, at_site) if rounds) * SAFETY,
        path_ns=price(walked) * SAFETY,
        stepped_ns=max(0.0, stepped - count) * SAFETY,
        sample_ns=SAMPLE_NS,
        bias_ns=bias,
        site_bias_ns=site_bias,
        stepped_bias_ns=max(0.0, least_bias(timed_slowly)[0] - bias),
        bias_uncertainty=max(BIAS_ERROR, spread / bias, site_spread / site_bias if sites else 0.0),
        stepped_mean_ns=max(0.0, stepped - count),
        handler_ns=_least_handler(timed),
        path_handler_ns=_least_handler(walked),
        site_handler_ns=_least_handler(at_site),
        untimed_ns=untimed * SAFETY,
        **inside,
    )


def _cpu_ns(rounds: list[Round]) -> float:
    return float(np.median([each.cpu_ns for each in rounds]))


def least_bias(rounds: list[Round], row: int = 0) -> tuple[float, float]:
    """Return the median of a row's durations, and half their interquartile range, in the round where it was least.

    Other work on the CPU makes a round slower, never faster. (0, 0) if no round booked a duration.
    """
    quartiles = np.array([each.quartiles[row] for each in rounds])
    if np.isnan(quartiles[:, 1]).all():
        return 0.0, 0.0
    low, middle, high = quartiles[np.nanargmin(quartiles[:, 1])]
    return float(middle), float(high - low) / 2


def _least_handler(rounds: list[Round]) -> float:
    return min((each.handler_ns for each in rounds if each.handler_ns), default=0.0)


def _nested(bench: _Bench, slots: NDArray[np.void], mode: str) -> dict[str, float]:
    """Return what probes on an empty function add to the duration of the call around it, ns a hit, by kind."""
    if mode == "perf":
        outer = _Probe("outer_emulated", Kind.TIME, slot=OUTER_SLOT)
    else:
        outer = _Probe("outer_emulated", Kind.TIME, "outer_return_emulated", slot=OUTER_SLOT)

    def duration(*inner: _Probe) -> float:
        return least_bias(bench.rounds(outer, *inner), row=1)[0]

    bare = duration()

    def added(*inner: _Probe) -> float:
        return max(0.0, (duration(*inner) - bare) / INNER)

    timed = added(_Probe("emulated", Kind.TIME))
    entry = timed / 2
    if mode == "session":
        slots["timed_of_4g"][SLOT_NUMBER] = 1
        entry = min(timed, added(_Probe("emulated", Kind.TIME)))
        slots["timed_of_4g"][SLOT_NUMBER] = 0
    found = {
        "count_mean_ns": added(_Probe("emulated", Kind.COUNT)),
        "entry_mean_ns": entry,
        "return_mean_ns": timed - entry,
    }
    if mode != "perf":
        entry = added(_Probe("emulated", Kind.TIME, "inner_return_emulated", untimed=True))
        both = added(_Probe("emulated", Kind.TIME, "inner_return_emulated"))
        found |= {"site_entry_mean_ns": entry, "site_return_mean_ns": max(0.0, both - entry)}
    return found
