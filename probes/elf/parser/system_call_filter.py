"""A seccomp filter: what the parser of foreign files may still ask of the kernel after its imports.

It reads what it is handed, answers on its socket, and takes memory. It opens no file by name, makes no socket, process
or signal, and no memory becomes code. All else fails with EPERM, whoever runs it.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Mapping

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
"""Instructions of classic BPF: load a word, jump if equal, jump if any bit is set, end."""
_ALLOW, _FAIL, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_NUMBER, _MACHINE, _THIRD_ARGUMENT = 0, 4, 32
"""Offsets in ``struct seccomp_data``."""
_PROT_EXEC = 4
_MAPPING = ("mmap", "mprotect")
"""Calls whose third argument says what memory may be used for."""


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def instructions(machine: int, allowed: Mapping[str, int]) -> bytes:
    """Return the filter that allows these calls, and no executable memory.

    Parameters
    ----------
    machine : int
        AUDIT_ARCH number: a call by another machine's numbers ends the process.
    allowed : dict
        Number of each system call.
    """
    plain = sorted(number for name, number in allowed.items() if name not in _MAPPING)
    code = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for number in plain:
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for name in _MAPPING:
        if name in allowed:
            code += [
                (_EQUAL, 0, 4, allowed[name]),
                (_LOAD, 0, 0, _THIRD_ARGUMENT),
                (_ANY_BIT, 0, 1, _PROT_EXEC),
                (_RETURN, 0, 0, _FAIL | errno.EPERM),
                (_RETURN, 0, 0, _ALLOW),
            ]
    code.append((_RETURN, 0, 0, _FAIL | errno.EPERM))
    return b"".join(struct.pack("<HBBI", *each) for each in code)


def restrict(machine: int, allowed: Mapping[str, int]) -> None:
    """Put the filter on this process for good. It must have no new privileges already. OSError if that fails."""
    code = instructions(machine, allowed)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel takes no seccomp filter")
