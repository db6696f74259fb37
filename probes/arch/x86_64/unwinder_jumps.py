"""The last jump of longjmp, and of an unwinder.

Both set the stack pointer from a register, then jump to an address in a register. glibc's ``__longjmp`` and the
``eh_return`` of GCC's unwinder have this form in every build; code of another form is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# mov rsp, reg (not rbp: that is an epilogue), then pops and moves between registers, then jmp reg
_JUMP = re.compile(
    rb"(?:[\x48\x4c]\x89[\xc4\xcc\xd4\xdc\xf4\xfc]|\x4c\x89[\xe4\xec]|\x48\x8b[\xe0-\xe3\xe6\xe7]|\x49\x8b[\xe0-\xe7])"
    rb"(?:\x41?[\x58-\x5f]|[\x48\x49\x4c\x4d]\x89[\xc0-\xff]|\x90){0,8}?"
    rb"(\x3e?\x41?\xff[\xe0-\xe7])",
    re.DOTALL,
)


def unwinder_jumps(code: bytes) -> Iterator[tuple[int, int]]:
    """Yield (begin, jump) of each place that reads so."""
    for match in _JUMP.finditer(code):
        yield match.start(), match.start(1)
