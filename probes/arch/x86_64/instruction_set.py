"""How x86-64 code is taken apart: ``specmine.probes.arch.interface.InstructionSet`` as a module."""

from .branches import BRANCH_SIZE, CALL_SIZE, JUMP_SIZE, begins_with_branch, callee_before, direct_branches
from .disassembly import (
    FARTHEST,
    LONGEST,
    SHORT_JUMP,
    are_instructions,
    behind_stack_check,
    decode,
    first_emulated,
    may_jump_by_table,
    never_returns,
)
from .linked_text import TEXT_VERSION, text_of
from .stack_loads import loads_foreign_stack, stack_loads
from .unwinder_jumps import unwinder_jumps
from .uprobe_handling import handling, refusal

__all__ = (
    "BRANCH_SIZE",
    "CALL_SIZE",
    "FARTHEST",
    "JUMP_SIZE",
    "LONGEST",
    "SHORT_JUMP",
    "TEXT_VERSION",
    "are_instructions",
    "begins_with_branch",
    "behind_stack_check",
    "callee_before",
    "decode",
    "direct_branches",
    "first_emulated",
    "handling",
    "loads_foreign_stack",
    "may_jump_by_table",
    "never_returns",
    "refusal",
    "stack_loads",
    "text_of",
    "unwinder_jumps",
)
