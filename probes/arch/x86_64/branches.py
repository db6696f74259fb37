"""Direct branches with 32-bit displacements, found by their opcode bytes without disassembling.

A byte of an operand may look like an opcode, so this finds a little more than there is and never less. That
is the safe side: a place that nothing here reaches is reached by no such branch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from specmine.probes.arch.interface import Branch, Bytes, Places

BRANCH_SIZE = 6
JUMP_SIZE = CALL_SIZE = 5
_CALL, _JUMP, _SHORT_JUMP = 0xE8, 0xE9, 0xEB


def direct_branches(code: Bytes) -> Iterator[tuple[Branch, Places, Places]]:
    """Yield (kind, places, targets) of what may be a call, jmp or jcc with a 32-bit displacement."""
    second = np.flatnonzero((code[1:] & 0xF0) == 0x80)
    for kind, found, length in (
        (Branch.CALL, np.flatnonzero(code == _CALL), CALL_SIZE),
        (Branch.JUMP, np.flatnonzero(code == _JUMP), JUMP_SIZE),
        (Branch.CONDITIONAL, second[code[second] == 0x0F], BRANCH_SIZE),
    ):
        places = found[found + length <= len(code)]
        operand = places + length - 4
        low = code[operand].astype(np.uint32) | code[operand + 1].astype(np.uint32) << 8
        high = code[operand + 2].astype(np.uint32) | code[operand + 3].astype(np.uint32) << 8
        yield kind, places, places + length + (low | high << 16).astype(np.int32)


def begins_with_branch(data: Bytes, places: Places) -> NDArray[np.bool_]:
    """Return which places of a file hold a call, jmp or jcc."""
    byte = data[places]
    after = data[np.minimum(places + 1, len(data) - 1)]
    near = np.isin(byte, (_CALL, _JUMP, _SHORT_JUMP)) | ((byte & 0xF0) == 0x70)
    far = (byte == 0x0F) & ((after & 0xF0) == 0x80)
    return np.asarray(near | far, dtype=np.bool_)


def callee_before(code: bytes) -> int | None:
    """Return the target, relative to their end, of the call that these bytes are; None for no call."""
    if len(code) < CALL_SIZE or code[0] != _CALL:
        return None
    return int.from_bytes(code[1:CALL_SIZE], "little", signed=True)
