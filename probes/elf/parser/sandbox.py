"""Give up everything that parsing a file does not need: privileges, memory, files to write, other programs.

For the reader's child alone, after its imports; there is no way back. Who cannot be confined does not parse: root's
identity must go, and the filter of system calls must hold. Landlock, which kernels before 5.13 lack, is a third wall.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal

from specmine.probes.arch.machine import machine

from .system_call_filter import restrict

_NOBODY = 65534
_NO_ONE = 4_294_901_760
"""An id that no account has: other processes of nobody could send signals to ours."""
_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 24, 38, 47
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
"""System calls that libc has no function for; their numbers are the same on all machines."""
# of Landlock's first version all but reading files and folders: execute, write, remove, make
_WRITING = 0x1FF3


def confine(*, heap_bytes: int, address_bytes: int, answer_bytes: int) -> None:
    """Drop all privileges of this process and limit what it can use. OSError if that cannot be done.

    Parameters
    ----------
    heap_bytes, address_bytes : int
        Private memory; all mappings together, files included.
    answer_bytes : int
        Largest file (in memory) that it may write.
    """
    for limit, value in (
        (resource.RLIMIT_DATA, heap_bytes),
        (resource.RLIMIT_AS, address_bytes),
        (resource.RLIMIT_FSIZE, answer_bytes),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (allowed, allowed))
    libc = ctypes.CDLL(None, use_errno=True)
    _drop_identity(libc)
    _drop_capabilities(libc)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "new privileges cannot be given up")
    _deny_writing(libc)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # forgotten whenever the identity changes, so after that
    restrict(machine().audit, machine().parser_calls)


def _drop_identity(libc: ctypes.CDLL) -> None:
    """Become no one: files of root are root's to write, with or without capabilities."""
    libc.prctl(_CAP_AMBIENT, 4, 0, 0, 0)  # clear all
    capability = 0
    while libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    if os.geteuid() == 0:
        os.setgroups([])
        try:
            os.setresgid(_NO_ONE, _NO_ONE, _NO_ONE)
            identity = _NO_ONE
        except OSError:  # a user namespace has no such id
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            identity = _NOBODY
        os.setresuid(identity, identity, identity)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this thread
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def _deny_writing(libc: ctypes.CDLL) -> None:
    """Let Landlock refuse every change of the file system; files open already stay usable."""
    handled = ctypes.c_uint64(_WRITING)
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if ruleset >= 0:
        libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0)
        os.close(ruleset)
