"""The values of x86-64 (System V ABI for AMD64; arch/x86/entry/syscalls/syscall_64.tbl of Linux)."""

from __future__ import annotations

from pathlib import Path

from specmine.probes.arch.interface import InstructionSet, Machine, UnwindRegisters

from .calibration_program import assemble


def _instruction_set() -> InstructionSet:
    from . import instruction_set  # noqa: PLC0415 (the daemon must not hold capstone)

    return instruction_set


X86_64 = Machine(
    name="x86_64",
    title="x86-64",
    elf=62,
    syscalls={"bpf": 321, "perf_event_open": 298, "ioprio_set": 251},
    bpf=Path(__file__).parent / "bpf",
    unwind=UnwindRegisters(
        stack_pointer=7,
        frame_pointer=6,
        return_address=16,
        pushed=8,
        # breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus: the second push of a stub is at its byte 11
        plt_expression=bytes((0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22)),
    ),
    breakpoint=b"\xcc",
    thread_features="x86_Thread_features",
    calibration_program=assemble,
    instruction_set=_instruction_set,
)
