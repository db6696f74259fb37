"""Functions that end in a jump to another function, as ``semop`` does in glibc: no stack ever shows them.

What is sampled below such a wrapper is the function that it jumps to. So whoever is hot has its wrappers named as
well, and whether they are called is told by counting.
"""

from __future__ import annotations

from collections.abc import Sequence

from specmine.probes.arch.interface import Branch
from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import FunctionFacts, FunctionKind

from .branches import Branches
from .function_table import FunctionTable

LONGEST = 64
"""Bytes of a function that does nothing but pass its arguments on."""
_CODE = machine().instruction_set()


def wrappers(table: FunctionTable, branches: Branches, offsets: Sequence[int]) -> list[FunctionFacts]:
    """Return the short functions whose last instruction jumps to the start of one of these functions.

    Parameters
    ----------
    offsets : sequence of int
        File offsets of functions' first bytes.
    """
    found: list[FunctionFacts] = []
    for offset in sorted(set(offsets)):
        into = branches.into(offset, offset + 1)
        sources = branches.source[into][branches.kind[into] == Branch.JUMP]
        numbers = table.containing(sources.tolist())
        for source, number in zip(sources.tolist(), numbers.tolist(), strict=True):
            if number < 0 or int(table.sizes[number]) > LONGEST:
                continue
            last = int(table.starts[number] + table.sizes[number]) - _CODE.JUMP_SIZE
            facts = table.facts(number)
            if source == last and facts.offset != offset and facts.kind is FunctionKind.FUNCTION:
                found.append(facts)
    return found
