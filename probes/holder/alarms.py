"""The ring buffer by which the kernel reports rate limits and hits of unwatched processes."""

from __future__ import annotations

import mmap
import struct


class Alarms:
    """The reader's end of the ring buffer."""

    def __init__(self, fd: int, size: int) -> None:
        page = mmap.PAGESIZE
        self.fd, self.size = fd, size
        self.consumer = mmap.mmap(fd, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self.producer = mmap.mmap(fd, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)

    def read(self) -> list[tuple[int, int, int, int]]:
        """Return (type, tgid, value, address) of each unread record."""
        records = []
        at = struct.unpack_from("<Q", self.consumer)[0]
        while at < struct.unpack_from("<Q", self.producer)[0]:
            place = mmap.PAGESIZE + at % self.size
            length = struct.unpack_from("<I", self.producer, place)[0]
            if length & 1 << 31:  # still being written
                break
            if not length & 1 << 30:
                records.append(struct.unpack_from("<IIQQ", self.producer, place + 8))
            at += (length & 0x3FFFFFFF) + 15 & ~7
            struct.pack_into("<Q", self.consumer, 0, at)
        return records
