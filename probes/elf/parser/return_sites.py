"""Where the return to a place is probed: the first emulated instruction there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.probes.arch.interface import Handling
from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import FunctionKind, Grade, Site

from .branches import Branches
from .function_table import FunctionTable
from .image import Image

_CODE = machine().instruction_set()


def return_sites(
    image: Image,
    table: FunctionTable,
    branches: Branches,
    offsets: Sequence[int],
    *,
    kernel_emulates_nops: bool,
) -> list[Site]:
    """Return where the return to each of these file offsets is probed: the first emulated instruction there.

    A place that other code jumps to would be passed without a return, in a loop very often, and is not used.

    Parameters
    ----------
    image, table, branches
        The binary, its functions and direct branches.
    offsets : sequence of int
        File offsets of return addresses, as calls left them on the stack.
    kernel_emulates_nops : bool
        As in ``find_sites``.

    Returns
    -------
    list of Site
        ``function`` is the return address. Stepped where no emulated instruction follows before the stack
        pointer changes; refused with code "no-return-site" if that cannot be probed either.
    """
    found = []
    for offset, number in zip(offsets, table.containing(offsets).tolist(), strict=True):
        code = image.read(offset, _CODE.FARTHEST + 16)
        first, callee = next(_CODE.decode(code[:16]), None), _callee(image, offset)
        nearest = _nearest_target(image, table, branches, offset, number)
        at = _CODE.first_emulated(code, kernel_emulates_nops=kernel_emulates_nops, first=True)
        if 0 <= at < nearest:
            found.append(Site(function=offset, offset=offset + at, grade=Grade.EMULATED, callee=callee))
        elif (
            first is not None
            and nearest > 0
            and _CODE.handling(code[: first.size], kernel_emulates_nops=kernel_emulates_nops) is Handling.STEPPED
        ):
            found.append(Site(function=offset, offset=offset, grade=Grade.STEPPED, callee=callee))
        else:
            found.append(_refused(offset))
    return found


def _callee(image: Image, offset: int) -> int:
    """Return the file offset that the direct call before a return address names, -1 if there is none.

    The bytes before it may look like a call by accident; then they name no function, let alone the one asked for.
    """
    size = _CODE.CALL_SIZE
    callee = _CODE.callee_before(image.read(offset - size, size)) if offset >= size else None
    if callee is None:
        return -1
    segment = next((each for each in image.code if each.offset <= offset < each.offset + each.file_size), None)
    if segment is None:
        return -1
    target = image.file_offset(offset - segment.offset + segment.address + callee)
    return -1 if target is None else target


def _nearest_target(image: Image, table: FunctionTable, branches: Branches, offset: int, number: int) -> int:
    """Return how far behind a place the first target of a branch is, 0 for the place itself."""
    there = branches.into(offset, offset + _CODE.FARTHEST + 1)
    into = branches.target[there][~_is_cold(table, branches.source[there])]
    nearest = int(into[0]) - offset if len(into) else _CODE.FARTHEST + 1
    if number < 0 or int(table.sizes[number]) > _CODE.LONGEST:
        return nearest
    start = int(table.starts[number])
    for step in _CODE.decode(image.read(start, int(table.sizes[number]))):
        if step.jumps and step.target is not None:
            behind = start + step.target - offset
            if 0 <= behind < nearest:
                nearest = behind
    return nearest


def _is_cold(table: FunctionTable, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which places lie in cold parts of functions: handlers of exceptions go on behind the call that threw."""
    parts = table.lookup(offsets.tolist())
    return np.array([each is not None and each.kind is FunctionKind.FRAGMENT for each in parts], np.bool_)


def _refused(offset: int) -> Site:
    text = "the instruction behind the call cannot be probed"
    return Site(function=offset, offset=offset, grade=Grade.REFUSED, code="no-return-site", text=text)
