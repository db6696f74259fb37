"""Memory that a process keeps instead of giving it back to the kernel after each large array."""

from __future__ import annotations

import ctypes

_TRIM, _MAPPED = -1, -3  # names of mallopt
_KEPT_BYTES = 128 << 20
_LARGEST_BYTES = 32 << 20  # of an array that is not mapped by itself; glibc takes no more


def keep_freed_memory() -> bool:
    """Let the allocator keep what is freed; return whether it takes that.

    A loader makes arrays of some 100 kB thousands of times a second. By default each costs page faults, which take four
    times as long as the work on them.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    return bool(mallopt(_TRIM, _KEPT_BYTES)) and bool(mallopt(_MAPPED, _LARGEST_BYTES))
