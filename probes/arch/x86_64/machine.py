"""The values of x86-64 (System V ABI for AMD64; arch/x86/entry/syscalls/syscall_64.tbl of Linux)."""

from __future__ import annotations

from pathlib import Path

from specmine.probes.arch.interface import InstructionSet, Machine, UnwindRegisters

from .blocking_calls import BLOCKING_CALLS, SIGNAL_CALLS
from .calibration_program import assemble


def _instruction_set() -> InstructionSet:
    from . import instruction_set  # noqa: PLC0415 (the daemon must not hold capstone)

    return instruction_set


X86_64 = Machine(
    name="x86_64",
    title="x86-64",
    elf=62,
    syscalls={"bpf": 321, "perf_event_open": 298, "ioprio_set": 251},
    audit=0xC000_003E,
    parser_calls={
        "read": 0,
        "write": 1,
        "close": 3,
        "fstat": 5,
        "lseek": 8,
        "mmap": 9,
        "mprotect": 10,
        "munmap": 11,
        "brk": 12,
        "rt_sigaction": 13,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "pread64": 17,
        "sched_yield": 24,
        "mremap": 25,
        "madvise": 28,
        "dup": 32,
        "setitimer": 38,
        "getpid": 39,
        "sendmsg": 46,
        "recvmsg": 47,
        "exit": 60,
        "fcntl": 72,
        "gettimeofday": 96,
        "gettid": 186,
        "futex": 202,
        "restart_syscall": 219,
        "clock_gettime": 228,
        "exit_group": 231,
        "newfstatat": 262,
        "getrandom": 318,
        "memfd_create": 319,
    },
    blocking_calls=BLOCKING_CALLS,
    signal_calls=SIGNAL_CALLS,
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
