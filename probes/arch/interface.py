"""What the folder of a machine provides: values for the daemon, functions on code for the parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

DEPTH = 20
"""Frames above the empty function of the calibration program."""
INNER = 8
"""Calls of its empty function within one call of its outer function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationProgram:
    """A program of a few hundred bytes whose functions and stacks are known.

    For each grade of probe site (emulated, stepped) there are two entries. ``deep_*`` calls the empty function in a
    loop under a stack of DEPTH frames; ``wide_*`` calls an outer function, which calls the empty one INNER times.
    """

    image: bytes
    """An ELF file; its entry point is to be filled in."""
    base: int
    """Address at which the file is mapped."""
    places: Mapping[str, int]
    """File offsets: of functions and ``start_*`` entries by name, ``return_*`` of return addresses."""
    rows: tuple[tuple[int, int], ...]
    """Unwind rows: file offset and rule."""
    emulated_after: Mapping[str, int]
    """Distance from a return address (``return``, ``inner_return``, ``outer_return``) to an emulated instruction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwindRegisters:
    """What DWARF call frame information means on a machine (numbers of its registers in the ABI's mapping)."""

    stack_pointer: int
    frame_pointer: int
    return_address: int
    pushed: int
    """Bytes that a call pushes: the return address stands so far below the CFA."""
    plt_expression: bytes
    """CFA expression that linkers write for lazy PLT stubs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine, as far as the daemon and the children must know it."""

    name: str
    """As ``uname -m`` says it."""
    title: str
    """As people write it."""
    elf: int
    """e_machine of its programs."""
    syscalls: Mapping[str, int]
    """Numbers of the system calls that libc has no function for."""
    bpf: Path
    """Folder of arch.h, the part of the BPF programs that reads registers."""
    unwind: UnwindRegisters
    thread_features: str
    """Line of ``/proc/PID/status`` that lists ``shstk`` while the process has a shadow stack."""
    calibration_program: Callable[[int], CalibrationProgram]
    """Assemble the program for so many calls of the empty (deep) or outer (wide) function."""
