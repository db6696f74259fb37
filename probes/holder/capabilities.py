"""Give up capabilities for good. Standard library only: the holder has no other module."""

from __future__ import annotations

import ctypes
from collections.abc import Collection

CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39
FOR_LINKS = (CAP_PERFMON, CAP_BPF)
"""What making links takes; kernels without them, and uprobes on perf events, ask for CAP_SYS_ADMIN."""
_VERSION = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)
_CAPBSET_DROP, _CAP_AMBIENT, _CLEAR_ALL = 24, 47, 4


def keep(wanted: Collection[int]) -> int:
    """Keep these capabilities, as far as they are there, and give up all others; return the set as bits.

    For the calling thread, before it starts others. OSError if the kernel refuses.
    """
    kept = _permitted() & sum(1 << each for each in wanted)
    _libc.prctl(_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    number = 0
    while number < 64 and (kept >> number & 1 or _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0) == 0):
        number += 1  # the first that there is no right to drop, or that does not exist, ends it
    low, high = kept & 0xFFFF_FFFF, kept >> 32
    sets = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    if _libc.capset(_header(), sets) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
    return kept


def keep_for_links(*, perf: bool) -> int:
    """Keep what making links takes; ``perf``: over perf events."""
    permitted = _permitted()
    enough = not perf and all(permitted >> each & 1 for each in FOR_LINKS)
    return keep(FOR_LINKS if enough else (*FOR_LINKS, CAP_SYS_ADMIN))


def _header() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(_VERSION, 0)


def _permitted() -> int:
    sets = (ctypes.c_uint32 * 6)()
    if _libc.capget(_header(), sets) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be read")
    return int(sets[4] << 32 | sets[1])
