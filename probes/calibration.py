"""What a probe costs on this host, and how much of its own time it leaves in a duration: measured, not assumed.

A tiny program of our own calls an empty function under a known stack, without probes and with each kind of them.
Its CPU time tells the price of a hit, the recorded durations of the empty function the bias. Prices are the 90th
percentile of the rounds times 1.25: a budget must rather be kept than used up.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specmine.mining.observation import BUCKETS, Kind, bucket_edges

from . import processes as proc
from .batch import Prices
from .errors import ProbeError
from .kernel import HashMap, map_array, write_array
from .layout import LAYOUT, MAX_SLOTS, PROCESS, RANGE_ROWS, RETURN_PROBED, RETURN_SITE, SLOT
from .links import Links
from .loading import Loaded

SLOT_NUMBER = MAX_SLOTS - 1
ROUNDS = 5
SAFETY = 1.25
SAMPLE_NS = 13_000.0
"""A sample of the CPU clock in a virtual machine, where the timer interrupt is dear; less on bare metal."""
DEPTH = 20
"""Frames above the empty function."""

_BASE, _TEXT = 0x400000, 0x1000
_LINKING_S = 5.0
_DEC_SIZE = 3
"""The instruction behind the call is not emulated, the jump after it is."""
_RSP_8, _RSP_16, _END = 1 | 1 << 13, 1 | 2 << 13, 6


def _program(calls: int) -> tuple[bytes, dict[str, int], list[tuple[int, int]]]:
    """Assemble the program: (ELF image, file offsets of its functions, unwind rows (offset, info))."""
    code = bytearray()
    places: dict[str, int] = {}

    def put(text: str) -> None:
        code.extend(bytes.fromhex(text))

    def call(target: int) -> None:
        code.extend(b"\xe8" + struct.pack("<i", target - (len(code) + 5)))

    places["emulated"] = len(code)
    put("55 5d c3")  # push rbp; pop rbp; ret
    places["stepped"] = len(code)
    put("89 c0 c3")  # mov eax, eax; ret
    for name in ("emulated", "stepped"):
        places[f"deep_{name}"] = start = len(code)
        put("48 83 ec 08 85 ff 74 0c ff cf")  # sub rsp, 8; test edi, edi; jz +12; dec edi
        call(start)
        put("48 83 c4 08 c3 90 90 90")  # add rsp, 8; ret
        code[start + 7] = len(code) - (start + 8)  # the jz lands here
        code.extend(b"\x41\xbc" + struct.pack("<i", calls))  # mov r12d, calls
        loop = len(code)
        places[f"return_{name}"] = loop + 5
        call(places[name])
        code.extend(b"\x41\xff\xcc\x75" + struct.pack("<b", loop - (len(code) + 5)))  # dec r12d; jnz loop
        put("48 83 c4 08 c3")
    entries = {}
    for name in ("emulated", "stepped"):
        entries[name] = len(code)
        put("31 c0 31 ff 48 8d 74 24 f0 ba 01 00 00 00 0f 05")  # read(0, rsp - 16, 1)
        code.extend(b"\xbf" + struct.pack("<i", DEPTH - 2))  # mov edi, depth
        call(places[f"deep_{name}"])
        put("b8 3c 00 00 00 31 ff 0f 05")  # exit(0)
    rows = [(0, _RSP_8)]
    for name in ("emulated", "stepped"):
        start = places[f"deep_{name}"]
        rows += [(start, _RSP_8), (start + 4, _RSP_16)]
    rows.append((entries["emulated"], _END))
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    images = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, _TEXT + len(code), _TEXT + len(code), 0x1000)
    image = bytearray((head + images + segment).ljust(_TEXT, b"\0") + code)
    offsets = {name: at + _TEXT for name, at in places.items()}
    offsets |= {f"start_{name}": at + _TEXT for name, at in entries.items()}
    return bytes(image), offsets, [(at + _TEXT, info) for at, info in rows]


class _Bench:
    """The program on disk, and runs of it."""

    def __init__(self, folder: Path, loaded: Loaded, links: Links, calls: int, name: str) -> None:
        image, self.offsets, self.rows = _program(calls)
        start = struct.pack("<Q", _BASE + self.offsets[f"start_{name}"])
        self.path = folder / f"{name}-{calls}"
        self.path.write_bytes(image[:24] + start + image[32:])
        self.path.chmod(0o700)
        self.name, self.calls, self.links = name, calls, links
        self.processes = HashMap(loaded.maps["processes"], "<u4", PROCESS)
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
        value["ranges"][0, 1] = (_BASE, _BASE + size, 0, index, RANGE_ROWS)
        write_array(loaded.maps["layouts"], number, value)
        return number

    def run(self) -> float:
        """Run once and return its CPU time in ns."""
        with subprocess.Popen([str(self.path)], stdin=subprocess.PIPE, cwd="/", env={}) as child:
            self.processes.put(np.uint32(child.pid).tobytes(), np.array([(0, self.layout, 0, 0)], PROCESS).tobytes())
            assert child.stdin is not None
            child.stdin.write(b"x")
            child.stdin.flush()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.processes.remove(np.uint32(child.pid).tobytes())
        if child.returncode:
            raise ProbeError(f"the calibrating program ended with {child.returncode}")
        return (usage.ru_utime + usage.ru_stime) * 1e9

    def site_rounds(self, loaded: Loaded) -> list[float]:
        """Run with an entry probe and a probe at the return site, and return the CPU times in ns."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        address = self.offsets[f"return_{self.name}"]
        key = np.array([(_BASE + address, self.layout, SLOT_NUMBER)], RETURN_SITE).tobytes()
        sites = HashMap(loaded.maps["return_sites"], RETURN_SITE, "<u8")
        sites.put(key, np.uint64(RETURN_PROBED).tobytes())
        try:
            back = self.links.attach_site(fd, [address + _DEC_SIZE], [SLOT_NUMBER], "call_site_return")
            entry = self.links.attach_site(fd, [self.offsets[self.name]], [SLOT_NUMBER], "call_time_site")
        finally:
            os.close(fd)
        _await(self.links, entry, "made")
        try:
            return [self.run() for _ in range(ROUNDS)]
        finally:
            for number in (entry, back):
                self.links.close(number)
            _await(self.links, back, "closed")
            sites.remove(key)

    def rounds(self, kind: Kind | None) -> list[float]:
        """Run with probes of one kind (None: without) and return the CPU times in ns."""
        if kind is None:
            return [self.run() for _ in range(ROUNDS)]
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            number = self.links.attach(fd, [self.offsets[self.name]], [SLOT_NUMBER], kind)
        finally:
            os.close(fd)
        _await(self.links, number, "made")
        try:
            return [self.run() for _ in range(ROUNDS)]
        finally:
            self.links.close(number)
            _await(self.links, number, "closed")


def _await(links: Links, number: int, what: str) -> None:
    for _ in range(20):
        for news in links.news(_LINKING_S):
            if news.id == number and news.what == what:
                return
            if news.id == number and news.what == "failed":
                raise ProbeError(f"the calibrating probe was refused: {news.text}")
    raise ProbeError("the calibrating probe was not made in time")


def calibrated(
    loaded: Loaded, links: Links, slots: NDArray[np.void], counters: NDArray[np.void], cache: Path | None
) -> Prices:
    """Return this host's prices, measured now or earlier in this boot.

    Raises
    ------
    ProbeError
        The calibrating program does not run or its probes do not fire.
    """
    path = cache / f"prices-{proc.boot_id()}-{loaded.mode}.json" if cache else None
    if path is not None:
        try:
            return Prices(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            pass
    prices = _measure(loaded, links, slots, counters)
    if path is not None:
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(asdict(prices)))
        temporary.replace(path)
    return prices


def _measure(loaded: Loaded, links: Links, slots: NDArray[np.void], counters: NDArray[np.void]) -> Prices:
    slots[SLOT_NUMBER] = np.array([(1 << 62, 0, 0, 0, 0, 0)], SLOT)[0]
    histogram = map_array(loaded.maps["histogram"], loaded.entries["histogram"], "<u8")
    own = histogram.reshape(MAX_SLOTS, BUCKETS)[SLOT_NUMBER]
    with tempfile.TemporaryDirectory(prefix="specmine-") as folder:
        fast = _Bench(Path(folder), loaded, links, 4000, "emulated")
        bare = float(np.median(fast.rounds(None)))
        price = {}
        before = own.copy()
        for kind in (Kind.COUNT, Kind.TIME, Kind.PATH):
            rounds = fast.rounds(kind)
            price[kind] = max(50.0, (float(np.quantile(rounds, 0.9)) - bare) / fast.calls)
        by_kernel = own - before
        before = own.copy()
        if loaded.mode != "perf":
            rounds = fast.site_rounds(loaded)
            price[Kind.TIME] = max(price[Kind.TIME], (float(np.quantile(rounds, 0.9)) - bare) / fast.calls)
        by_site = own - before
        slow = _Bench(Path(folder), loaded, links, 400, "stepped")
        bare = float(np.median(slow.rounds(None)))
        stepped = (float(np.quantile(slow.rounds(Kind.COUNT), 0.9)) - bare) / slow.calls
    if not by_kernel.any() or not int(counters["timed"][SLOT_NUMBER]):
        raise ProbeError("the calibrating probes did not fire")
    if loaded.mode != "perf" and not by_site.any():
        raise ProbeError("the calibrating probes at a return site did not fire")
    return Prices(
        count_ns=price[Kind.COUNT] * SAFETY,
        time_ns=price[Kind.TIME] * SAFETY,
        path_ns=price[Kind.PATH] * SAFETY,
        stepped_ns=max(0.0, stepped - price[Kind.COUNT]) * SAFETY,
        sample_ns=SAMPLE_NS,
        bias_ns=_median_ns(by_kernel),
        site_bias_ns=_median_ns(by_site),
    )


def _median_ns(counts: NDArray[np.uint64]) -> float:
    """Return the median duration of a histogram, ns; 0 if it is empty."""
    if not counts.any():
        return 0.0
    edges = bucket_edges()
    half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return float(edges[half] + edges[half + 1]) / 2
