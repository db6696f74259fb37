"""What the folder of a machine provides: values for the daemon, functions on code for the parser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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
    audit: int
    """The machine's number where a seccomp filter reads it (AUDIT_ARCH_*)."""
    parser_calls: Mapping[str, int]
    """Numbers of the system calls that the parser of foreign files may make."""
    blocking_calls: Mapping[int, BlockingCall]
    """Number -> system call in which threads wait."""
    signal_calls: Mapping[int, str]
    """Number -> system call that sends a signal, and so may end a wait."""
    bpf: Path
    """Folder of arch.h, the part of the BPF programs that reads registers."""
    unwind: UnwindRegisters
    breakpoint: bytes
    """What the kernel writes over a probed instruction."""
    thread_features: str
    """Line of ``/proc/PID/status`` that lists ``shstk`` while the process has a shadow stack."""
    calibration_program: Callable[[int], CalibrationProgram]
    """Assemble the program for so many calls of the empty (deep) or outer (wide) function."""
    instruction_set: Callable[[], InstructionSet]
    """Load what takes its code apart. It needs a disassembler: for the parser child alone."""


class BlockingCall(NamedTuple):
    """A system call in which threads wait."""

    name: str
    kind: str
    """What for, a word of ``model.inside.waits.WaitKind``; '': the kind of the descriptor in its first argument."""


class Handling(Enum):
    """What the kernel's uprobes make of an instruction."""

    EMULATED = "emulated"
    STEPPED = "stepped"
    REFUSED = "refused"
    UNSAFE = "unsafe"
    """The kernel would take it, but the program would not run as before."""


class Instruction(NamedTuple):
    """One instruction of a function."""

    at: int
    """Distance from the function's first byte."""
    size: int
    mnemonic: str
    operands: str
    target: int | None
    """Of a direct branch, likewise; other instructions may have one by accident (an immediate operand)."""
    jumps: bool
    """True for branches that are neither calls nor returns."""


class Branch(IntEnum):
    """Kinds of direct branches."""

    CALL = 0
    JUMP = 1
    CONDITIONAL = 2


Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


class InstructionSet(Protocol):
    """How a machine's code is taken apart. Code comes from files that nobody vouches for: nothing here may trust it."""

    FARTHEST: int
    """Bytes behind an entry or a return that a probe may move: a few ns of straight-line code."""
    LONGEST: int
    """Functions of more bytes are not disassembled whole."""
    SHORT_JUMP: int
    """Bytes behind a place from which a jump that ``direct_branches`` does not list may come back to it."""
    BRANCH_SIZE: int
    """Bytes of the longest direct branch."""
    JUMP_SIZE: int
    CALL_SIZE: int
    """Bytes of a direct jump, and of a direct call."""
    TEXT_VERSION: str
    """Of the disassembler behind ``text_of``."""

    def decode(self, code: bytes) -> Iterator[Instruction]:
        """Yield the instructions of a function up to the first bytes that are none."""

    def handling(self, code: bytes, *, kernel_emulates_nops: bool) -> Handling:
        """Return how the kernel handles one instruction, given by its bytes."""

    def first_emulated(self, code: bytes, *, kernel_emulates_nops: bool, first: bool) -> int:
        """Return where the first emulated instruction with an unchanged stack pointer is.

        Without ``first`` the first instruction does not count, and 0 stands for none; with it, -1.
        """

    def refusal(self, entry: Instruction, code: bytes, how: Handling) -> tuple[str, str]:
        """Return code and text of why a function's first instruction cannot be probed."""

    def never_returns(self, code: bytes) -> bool:
        """Return whether a function has neither a return nor a way out into another one."""

    def may_jump_by_table(self, code: bytes) -> bool:
        """Return whether a function may jump to an address in a register, or out of an indexed table."""

    def behind_stack_check(self, code: bytes) -> int:
        """Return where a function goes on that begins by checking its stack and begins anew with a larger one.

        0 if it does not begin so. Go's functions do; only what follows the check runs once a call.
        """

    def direct_branches(self, code: Bytes) -> Iterator[tuple[Branch, Places, Places]]:
        """Yield (kind, places, targets), relative to the code's first byte, of what may be direct branches.

        More may be listed than there is, never less; branches that reach only SHORT_JUMP bytes are left out.
        """

    def begins_with_branch(self, data: Bytes, places: Places) -> NDArray[np.bool_]:
        """Return which places of a file hold a direct branch."""

    def callee_before(self, code: bytes) -> int | None:
        """Return the target, relative to their end, of the call that these CALL_SIZE bytes are; None for no call."""

    def stack_loads(self, code: Bytes) -> Places:
        """Return the places that read as an instruction that loads the stack pointer from elsewhere than its frame."""

    def loads_foreign_stack(self, code: bytes, at: int) -> bool:
        """Return whether the instruction at a place of a function loads a stack that the function did not save.

        True as well if the function cannot be decoded up to there; False if no instruction begins there.
        """

    def unwinder_jumps(self, code: bytes) -> Iterator[tuple[int, int]]:
        """Yield (begin, jump) of what reads as: load the stack pointer, restore registers, jump to a register."""

    def are_instructions(self, code: bytes, places: Collection[int]) -> bool:
        """Return whether disassembling the code from its start meets an instruction at each of these places."""

    def text_of(self, code: bytes, address: int, fixed: tuple[int, int]) -> tuple[list[str], list[int]]:
        """Return the instructions of a function without what linking changes, and the addresses that they call.

        Parameters
        ----------
        code : bytes
            The whole function.
        address : int
            Of its first byte.
        fixed : (int, int)
            Range of the addresses of a program that is linked for one place, (0, 0) for all others.
        """
