"""Code in memory against its file, in a process of the test's own."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from specmine.probes.process.mappings import Mapping, mappings
from specmine.probes.safety.text_check import is_changed

CODE, SIZE = b"\x90\x55\x48\x89\xe5\xc3\x90\x90", 8192


class Mapped:
    """A file in the memory of this process, as a program maps its code."""

    def __init__(self, folder: Path, name: str, address: int = 0) -> None:
        path = folder / name
        path.write_bytes(CODE * (SIZE // len(CODE)))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._libc = libc
        fd = os.open(path, os.O_RDONLY)
        try:
            fixed = 0x100000 if address else 0  # MAP_FIXED_NOREPLACE
            rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            self.address = libc.mmap(address or None, SIZE, rights, mmap.MAP_PRIVATE | fixed, fd, 0)
        finally:
            os.close(fd)
        assert self.address and (not address or self.address == address)

    @property
    def mapping(self) -> Mapping:
        """What the kernel says of it."""
        return next(each for each in mappings("self") if each.start == self.address)

    def write(self, at: int, data: bytes) -> None:
        """Change it, so that this process has a page of its own."""
        ctypes.memmove(self.address + at, data, len(data))

    def close(self) -> None:
        """Map it no longer."""
        assert self._libc.munmap(self.address, SIZE) == 0


def changed(mapped: Mapped, mapping: Mapping, at: int = 0) -> bool:
    """Tell whether the code there is another than that of the file."""
    return is_changed(os.getpid(), mapped.address + at, CODE, mapping)


@pytest.mark.parametrize("at", [0, 4096])
def test_what_a_program_wrote_into_its_code_is_a_change(tmp_path: Path, at: int) -> None:
    """Pages as they are in the file are none, nor is a breakpoint."""
    code = Mapped(tmp_path, "code")
    try:
        assert not changed(code, code.mapping, at)
        code.write(at + 2, b"\xcc")
        assert not changed(code, code.mapping, at)
        code.write(at + 3, b"\x90")
        assert changed(code, code.mapping, at)
    finally:
        code.close()


def test_what_lies_there_instead_is_no_change(tmp_path: Path) -> None:
    """A server that opens its libraries anew has others where they were, or nothing."""
    code = Mapped(tmp_path, "code")
    before = code.mapping
    code.close()
    assert not changed(code, before)
    other = Mapped(tmp_path, "other", code.address)
    try:
        other.write(0, b"\x00" * 8)
        assert not changed(other, before)
        assert changed(other, other.mapping)
    finally:
        other.close()


def test_the_dead_have_changed_nothing(tmp_path: Path) -> None:
    """Nor has who ends meanwhile."""
    code = Mapped(tmp_path, "code")
    try:
        code.write(0, b"\x00" * 8)
        assert not is_changed(2**22 + 1, code.address, CODE, code.mapping)
    finally:
        code.close()
