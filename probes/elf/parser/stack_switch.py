"""Code that may move the stack pointer to another stack: fibers and coroutines that no name betrays.

Where in doubt code counts as if it did, since returns can be timed by return sites then.
"""

from __future__ import annotations

import numpy as np

from specmine.probes.arch.machine import machine

from .image import Image
from .unwind_rows import Frames

KNOWN = ("libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0")
"""Sonames of glibc: what switches stacks there (setcontext and its like) is known by name, longjmp is harmless."""
_LONGEST = 1 << 16
_CHUNK = 1 << 24
_CODE = machine().instruction_set()


def stack_switch(image: Image, frames: Frames, soname: str) -> int | None:
    """Return the file offset of an instruction that may switch to another stack, None if there is none.

    Parameters
    ----------
    image, frames
        The binary and its call frame information, which says where functions begin.
    soname : str
        Its name in DT_SONAME.
    """
    if soname in KNOWN:
        return None
    starts = np.asarray(frames.starts, dtype=np.int64)
    for at in _candidates(image):
        number = int(np.searchsorted(starts, at, side="right")) - 1
        start = int(starts[number]) if number >= 0 and at - int(starts[number]) < _LONGEST else at
        end = int(starts[number + 1]) if number + 1 < len(starts) else at + 16
        if _CODE.loads_foreign_stack(image.read(start, min(max(end, at + 16) - start, _LONGEST)), at - start):
            return at
    return None


def _candidates(image: Image) -> list[int]:
    """Return the file offsets of bytes that read as such an instruction."""
    found: list[int] = []
    data = image.view
    for segment in image.code:
        end = segment.offset + segment.file_size
        for begin in range(segment.offset, end, _CHUNK):
            code = data[begin : min(begin + _CHUNK + 3, end)]
            found += (begin + _CODE.stack_loads(code)).tolist()
    return found
