"""The filter is what the kernel documents: each call by its number, no code, no other machine's numbers."""

from __future__ import annotations

import errno
import struct

import pytest

from specmine.probes.elf.parser.system_call_filter import instructions

MACHINE, OTHER = 0xC000003E, 0x40000003
CALLS = {"read": 0, "mmap": 9, "mprotect": 10, "exit_group": 231}
ALLOWED, KILLED, REFUSED = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM


def verdict(machine: int, number: int, third: int = 0) -> int:
    """Run the filter on a call as the kernel would, by the definition of classic BPF."""
    data = struct.pack("<iIQ6Q", number, machine, 0, 0, 0, third, 0, 0, 0)
    code = list(struct.iter_unpack("<HBBI", instructions(MACHINE, CALLS)))
    at = loaded = 0
    while True:
        what, yes, no, value = code[at]
        at += 1
        if what == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            loaded = struct.unpack_from("<I", data, value)[0]
        elif what == 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
            at += yes if loaded == value else no
        elif what == 0x45:  # BPF_JMP | BPF_JSET | BPF_K
            at += yes if loaded & value else no
        else:
            assert what == 0x06  # BPF_RET | BPF_K
            return int(value)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ((MACHINE, 0), ALLOWED),
        ((MACHINE, 231), ALLOWED),
        ((MACHINE, 9, 3), ALLOWED),
        ((MACHINE, 9, 7), REFUSED),
        ((MACHINE, 10, 1), ALLOWED),
        ((MACHINE, 10, 5), REFUSED),
        ((MACHINE, 1), REFUSED),
        ((MACHINE, 57), REFUSED),
        ((MACHINE, 321), REFUSED),
        ((MACHINE, 0x40000000), REFUSED),
        ((OTHER, 0), KILLED),
        ((OTHER, 231), KILLED),
    ],
)
def test_what_the_filter_says(call: tuple[int, ...], expected: int) -> None:
    """Listed calls pass, memory that can be executed and everything else fails, other machines' calls end it."""
    assert verdict(*call) == expected
