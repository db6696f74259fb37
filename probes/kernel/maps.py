"""Maps of the kernel from user space: arrays by memory mapping, hashes by batches, ring buffers by polling."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from specmine.model.errors import ProbeError
from specmine.probes.arch.machine import machine

UPDATE_ELEM, DELETE_ELEM = 2, 3
LOOKUP_BATCH, LOOKUP_AND_DELETE_BATCH = 24, 25
BATCH = 4096

_libc = ctypes.CDLL(None, use_errno=True)


def kernel_at_least(major: int, minor: int) -> bool:
    """Return whether the running kernel has this version or a later one."""
    words = platform.release().split(".")
    try:
        return (int(words[0]), int(words[1])) >= (major, minor)
    except (ValueError, IndexError):
        return False


def bpf(command: int, attr: bytes) -> int:
    """Make one bpf() call; OSError with the kernel's errno."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    result = int(_libc.syscall(machine().syscalls["bpf"], command, buffer, len(attr)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def map_array(fd: int, entries: int, dtype: DTypeLike, *, writable: bool = False) -> NDArray[Any]:
    """Map an array of the kernel into memory.

    Parameters
    ----------
    fd : int
        An ARRAY map made with BPF_F_MMAPABLE.
    entries : int
        Its number of entries.
    dtype : dtype
        Layout of a value; the kernel pads values to 8 bytes, so its size must be a multiple of 8.

    Returns
    -------
    ndarray
        Shape (entries,), live: a read sees what the programs count at that moment.
    """
    kind = np.dtype(dtype)
    if kind.itemsize % 8:
        raise ValueError(f"values of an array map are padded to 8 bytes, not {kind.itemsize}")
    length = -(-entries * kind.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return np.frombuffer(mmap.mmap(fd, length, mmap.MAP_SHARED, protection), dtype=kind, count=entries)


def write_array(fd: int, first: int, values: NDArray[Any]) -> None:
    """Write consecutive entries of an array map.

    Only the pages that hold them are mapped, and only meanwhile: a mapping of the whole counts as our memory.

    Parameters
    ----------
    fd : int
        An ARRAY map made with BPF_F_MMAPABLE.
    first : int
        Number of the first entry.
    values : ndarray
        Entries of a multiple of 8 bytes each, as the kernel pads them.
    """
    size = values.dtype.itemsize
    begin = first * size // mmap.PAGESIZE * mmap.PAGESIZE
    length = first * size + values.nbytes - begin
    with mmap.mmap(fd, length, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=begin) as memory:
        at = first * size - begin
        memory[at : at + values.nbytes] = values.tobytes()


class HashMap:
    """A hash map with fixed-size keys and values, read and written as numpy records."""

    def __init__(self, fd: int, key: DTypeLike, value: DTypeLike) -> None:
        """Keep the fd; key and value are dtypes that match the C structs."""
        self.fd, self.key, self.value = fd, np.dtype(key), np.dtype(value)
        self._batches = True

    def _element(self, command: int, key: bytes, value: bytes = b"") -> int:
        k = ctypes.create_string_buffer(key, len(key))
        v = ctypes.create_string_buffer(value, len(value)) if value else None
        where = ctypes.addressof(v) if v is not None else 0
        return bpf(command, struct.pack("<IIQQQ", self.fd, 0, ctypes.addressof(k), where, 0))

    def put(self, key: bytes, value: bytes) -> bool:
        """Insert or replace one entry; False if the map is full."""
        try:
            self._element(UPDATE_ELEM, key, value)
        except OSError:
            return False
        return True

    def remove(self, key: bytes) -> None:
        """Delete one entry if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._element(DELETE_ELEM, key)

    def drain(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Take all entries out: (keys, values), equally long."""
        return self._all(LOOKUP_AND_DELETE_BATCH)

    def entries(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Read all entries and leave them: (keys, values), equally long."""
        return self._all(LOOKUP_BATCH)

    def _all(self, command: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        keys, values = [], []
        for k, v in self._batch(command):
            keys.append(k)
            values.append(v)
        if not keys:
            return np.zeros(0, self.key), np.zeros(0, self.value)
        return np.concatenate(keys), np.concatenate(values)

    def _batch(self, command: int) -> Iterator[tuple[NDArray[np.void], NDArray[np.void]]]:
        size = BATCH
        token = ctypes.create_string_buffer(max(8, self.key.itemsize))
        following = ctypes.create_string_buffer(max(8, self.key.itemsize))
        first = True
        while True:
            keys, values = np.zeros(size, self.key), np.zeros(size, self.value)
            attr = bytearray(
                struct.pack(
                    "<QQQQIIQQ",
                    0 if first else ctypes.addressof(token),
                    ctypes.addressof(following),
                    keys.ctypes.data,
                    values.ctypes.data,
                    size,
                    self.fd,
                    0,
                    0,
                )
            )
            buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
            result = int(_libc.syscall(machine().syscalls["bpf"], command, buffer, len(attr)))
            number = ctypes.get_errno() if result < 0 else 0
            count = struct.unpack_from("<I", attr, 32)[0]
            if number == 28:  # ENOSPC: one bucket of the hash holds more than fits
                size *= 4
                continue
            if number not in (0, 2):
                raise ProbeError(f"reading a map failed: {os.strerror(number)}")
            if count:
                yield keys[:count], values[:count]
            if number == 2:
                return
            ctypes.memmove(token, following, len(token))
            first = False


class CachedMap(HashMap):
    """A hash map whose entries the watched threads cache; each write ends the epoch of what they cached."""

    def __init__(self, fd: int, key: DTypeLike, value: DTypeLike, epochs: NDArray[Any]) -> None:
        """Keep the fd; ``epochs`` is the mapped array of the ends of epochs, one entry of EPOCHS."""
        super().__init__(fd, key, value)
        self._epochs = epochs

    def put(self, key: bytes, value: bytes) -> bool:
        """Insert or replace one entry; False if the map is full."""
        done = super().put(key, value)
        self._epochs["by_user"][0] += 1
        return done

    def remove(self, key: bytes) -> None:
        """Delete one entry if it is there."""
        super().remove(key)
        self._epochs["by_user"][0] += 1


class RingBuffer:
    """A ring buffer that one reader empties by polling."""

    def __init__(self, fd: int, size: int) -> None:
        """Map the buffer; ``size`` is its number of bytes."""
        self.fd, self.size = fd, size
        self._consumer = mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._producer = mmap.mmap(fd, mmap.PAGESIZE + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=mmap.PAGESIZE)

    def read(self, limit: int = 4096) -> list[bytes]:
        """Return the records not yet read, at most ``limit``."""
        records: list[bytes] = []
        at = struct.unpack_from("<Q", self._consumer)[0]
        end = struct.unpack_from("<Q", self._producer)[0]
        while at < end and len(records) < limit:
            place = mmap.PAGESIZE + at % self.size
            head = struct.unpack_from("<I", self._producer, place)[0]
            if head & 1 << 31:  # still being written
                break
            length = head & 0x3FFFFFFF
            if not head & 1 << 30:
                records.append(self._producer[place + 8 : place + 8 + length])
            at += length + 15 & ~7
        struct.pack_into("<Q", self._consumer, 0, at)
        return records
