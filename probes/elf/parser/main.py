"""The process that parses foreign files: no privileges, little memory, killed when it takes too long.

It gets an open file and a question over a socket and answers with plain values; see reader.py for the other
end. What it has parsed it keeps for a while, by the file's identity.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import signal
import socket
import stat
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from specmine.model.errors import InputError
from specmine.probes.elf.demangle import display_name
from specmine.probes.elf.facts import BinaryFacts
from specmine.probes.elf.protocol import UNCONFINED, Answer, encode
from specmine.probes.holder.time_scale import TIME_SCALE

from .binary import build_id_of, debuglink, read_facts
from .branches import Branches, find_branches
from .code_digest import code_digests
from .function_table import FunctionTable
from .image import Image, open_image
from .probe_sites import find_sites
from .return_sites import return_sites
from .sandbox import confine
from .stack_switch import stack_switch
from .symbols import function_table
from .tail_calls import wrappers
from .unwind_rows import Frames, read_frames
from .unwinder_jumps import find_landings

CPU_SECONDS, WALL_SECONDS = 15.0 * TIME_SCALE, 120.0 * TIME_SCALE
HEAP_BYTES, ADDRESS_BYTES, ANSWER_BYTES = 1 << 30, 1 << 33, 1 << 28
KEPT_BYTES, KEPT_FILES = 1 << 28, 64
"""Bounds of what is kept: parsed data (estimated), files."""
RESTED_S = 2
"""After so long without a question, what is only at hand goes back to the host: pages of files, and free heap."""

_Key = tuple[int, int, int, int]


@dataclass(eq=False)
class _Binary:
    """One file and what has been read of it so far."""

    data: mmap.mmap
    tables: dict[str, FunctionTable] = field(default_factory=dict)
    offered: mmap.mmap | None = None
    """A file that may hold its symbols."""

    @cached_property
    def image(self) -> Image:
        """Its headers."""
        return open_image(self.data)

    @cached_property
    def facts(self) -> BinaryFacts:
        """What can be said of it as a whole."""
        facts = read_facts(self.image)
        if facts.unwinder or facts.is_go:
            return facts
        at = stack_switch(self.image, self.frames, facts.soname)
        return facts if at is None else replace(facts, unwinder=(f"may switch stacks at 0x{at:x}",))

    @cached_property
    def frames(self) -> Frames:
        """Its call frame information."""
        return read_frames(self.image)

    @cached_property
    def branches(self) -> Branches:
        """Its direct branches."""
        return find_branches(self.image)

    def table(self, module: str) -> FunctionTable:
        """Its functions; a file mapped by two names has two tables, since names hold the module's."""
        known = self.tables.get(module)
        if known is None:
            debug = _offered_image(self.image, self.offered)
            known = function_table(self.image, self.frames, self.branches, module, debug=debug)
            self.tables[module] = known
        return known

    def any_table(self, module: str) -> FunctionTable:
        """Its functions by whatever name of the module, for those who ask for places only."""
        return next(iter(self.tables.values())) if self.tables else self.table(module)

    def size(self) -> int:
        """Estimate the bytes of memory that keeping it takes."""
        parsed = vars(self)
        total = 1 << 16
        if "frames" in parsed:
            total += 8 * len(self.frames.rows.pc) + 24 * len(self.frames.starts)
        if "branches" in parsed:
            total += 17 * len(self.branches.target)
        return total + sum(600 * len(each.starts) for each in self.tables.values())


class _Shelf:
    """The binaries read lately, the oldest first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, _Binary] = OrderedDict()

    def get(self, fd: int) -> tuple[_Key, _Binary]:
        """Return the binary in an open file, parsed or not yet."""
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise InputError("not an ELF file: not a regular file")
        if status.st_size == 0:
            raise InputError("not an ELF file: too short")
        key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
        known = self._kept.get(key)
        if known is None:
            try:
                known = self._kept[key] = _Binary(mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
            except (OSError, ValueError) as error:
                raise InputError(f"cannot be read: {error}") from error
        self._kept.move_to_end(key)
        return key, known

    def trim(self) -> None:
        """Drop the oldest until the rest is small enough; the newest stays."""
        sizes = {key: each.size() for key, each in self._kept.items()}
        while len(self._kept) > 1 and (len(self._kept) > KEPT_FILES or sum(sizes.values()) > KEPT_BYTES):
            key, _ = self._kept.popitem(last=False)
            del sizes[key]

    def give_back_pages(self) -> None:
        """Leave the files' pages to the host; those that are read again are mapped again."""
        for each in self._kept.values():
            for data in (each.data, each.offered):
                if data is not None:
                    data.madvise(mmap.MADV_DONTNEED)

    def drop(self, key: _Key | None) -> None:
        """Forget one file, or all."""
        if key is None:
            self._kept.clear()
        else:
            self._kept.pop(key, None)


def main(channel: int, niceness: int) -> None:
    """Serve requests that come over an inherited socket until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the foreground program, which then ends us
    for name in ("_RNvC1a1b", "_ZN1a1bEv", "_ZN1a1b17h0123456789abcdefE"):
        display_name(name)  # loads what is loaded at first use, while files can still be opened
    np.unique(np.zeros(1))  # imports numpy.ma
    os.nice(niceness)
    peer = socket.socket(fileno=channel)  # asks the kernel what it is, which is refused later
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", RESTED_S, 0))
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # without glibc there is none
    try:
        confine(heap_bytes=HEAP_BYTES, address_bytes=ADDRESS_BYTES, answer_bytes=ANSWER_BYTES)
    except OSError:
        os._exit(UNCONFINED)
    gc.disable()  # parsing makes many objects and no cycles
    shelf = _Shelf()
    with peer:
        while True:
            fds = _received(peer, shelf, trim)
            if len(fds) < 2:
                return
            question, file, *more = fds
            try:
                request = json.loads(_whole(question))
                _set_alarms(CPU_SECONDS, WALL_SECONDS)
                answer = _answered(shelf, request, file, more)
            finally:
                _set_alarms(0, 0)
                for fd in fds:
                    os.close(fd)
            _send(peer, answer)
            shelf.trim()


def _received(peer: socket.socket, shelf: _Shelf, trim: Callable[[int], int] | None) -> list[int]:
    """Return the descriptors of the next question; give back what is not needed once none has come for a while."""
    rested = False
    while True:
        try:
            return socket.recv_fds(peer, 1, 3)[1]
        except BlockingIOError:
            if not rested:
                shelf.give_back_pages()
                if trim is not None:
                    trim(0)
            rested = True


def _set_alarms(cpu: float, wall: float) -> None:
    """Arm, or disarm, the timers whose signals end this process, whatever it is doing."""
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, wall)


def _answered(shelf: _Shelf, request: dict[str, Any], file: int, more: Sequence[int]) -> bytes:
    key: _Key | None = None
    try:
        key, binary = shelf.get(file)
        if more and binary.offered is None and not binary.tables and os.fstat(more[0]).st_size:
            binary.offered = mmap.mmap(more[0], 0, access=mmap.ACCESS_READ)
        return encode(_answer(binary, **request))
    except InputError as error:
        shelf.drop(key)
        return encode(error)
    except MemoryError:
        shelf.drop(None)
        return encode(InputError("cannot be read: it takes too much memory"))
    except Exception as error:  # whatever a malformed file leads to is the file's fault
        shelf.drop(key)
        why = f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode()
        return encode(InputError(f"cannot be read: {why if why.isprintable() else type(error).__name__}"))


def _answer(  # noqa: PLR0911 (one for each request)
    binary: _Binary,
    *,
    op: str,
    module: str = "",
    offsets: Sequence[int] = (),
    globs: Sequence[str] = (),
    kernel_emulates_nops: bool = False,
) -> Answer:
    if op == "facts":
        return binary.facts
    if op == "rows":
        return binary.frames.rows
    if op == "functions_at":
        return binary.table(module).lookup(offsets)
    if op == "find":
        return binary.table(module).match(globs)
    if op == "wrappers":
        return wrappers(binary.table(module), binary.branches, offsets)
    if op == "code":
        return code_digests(binary.image, binary.table(module), offsets)
    if op == "landings":
        return find_landings(binary.image, lambda: binary.any_table(module))
    if op == "return_sites":
        table = binary.any_table(module)
        return return_sites(binary.image, table, binary.branches, offsets, kernel_emulates_nops=kernel_emulates_nops)
    if op == "sites":
        return find_sites(
            binary.image,
            binary.any_table(module),
            binary.frames.rows,
            binary.branches,
            offsets,
            kernel_emulates_nops=kernel_emulates_nops,
        )
    raise InputError(f"the reader knows no request {op!r}")


def _offered_image(image: Image, data: mmap.mmap | None) -> Image | None:
    """Return a file as the separate debug file of a binary, if it is that: by build-id, else by checksum."""
    if data is None:
        return None
    try:
        debug = open_image(data, names_only=True)
    except InputError:
        return None
    own, other = build_id_of(image), build_id_of(debug)
    same = own == other if own and other else zlib.crc32(data) == debuglink(image)[1] != 0
    return debug if same else None


def _whole(fd: int) -> bytes:
    with open(os.dup(fd), "rb") as file:  # noqa: PTH123
        file.seek(0)
        return file.read()


def _send(peer: socket.socket, answer: bytes) -> None:
    fd = os.memfd_create("specmine-answer", os.MFD_CLOEXEC)
    try:
        with open(os.dup(fd), "wb") as file:  # noqa: PTH123
            file.write(answer)
        socket.send_fds(peer, [b"a"], [fd])
    finally:
        os.close(fd)
