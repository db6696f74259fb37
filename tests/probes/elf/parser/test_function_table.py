"""A glob finds the same functions whether or not symbols are sorted out before their names are made."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from specmine.probes.elf.facts import FunctionKind
from specmine.probes.elf.parser.function_table import FunctionTable
from tests.support.binary_samples import CXX_SOURCE, LIBRARIES, compiled, table_of

GLOBS = (
    "main", "mem*", "*cpy*", "*alloc", "_*", "__libc_start_main*", "[a-c]*", "?ead", "std::*", "*operator*", "*(int)",
    "f*(*)", "* (prog)", "read (*)", "*0x*", "prog+0x*", "nothing", "*string*::*find*",
)  # fmt: skip


def plainly(table: FunctionTable, glob: str) -> list[int]:
    """Return the offsets of what a glob matches, every name being made and tried."""
    found = []
    for number in range(len(table.starts)):
        facts = table.facts(number)
        if facts.kind in (FunctionKind.FUNCTION, FunctionKind.IFUNC) and any(
            fnmatchcase(name, glob) for name in table._callings(number, facts)
        ):
            found.append(facts.offset)
    return found


@pytest.fixture(scope="module", params=["bash", "libc.so.6", "libstdc++.so.6", "prog"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C program, C and C++ libraries, and a small C++ program with its symbols."""
    if request.param == "prog":
        return compiled(tmp_path_factory.mktemp("cxx"), "prog", CXX_SOURCE, "-O1", compiler="g++")
    return Path("/bin/bash") if request.param == "bash" else LIBRARIES / str(request.param)


def test_no_function_is_overlooked(path: Path) -> None:
    """Words of a glob that no symbol holds rule out C functions only, whose names are their symbols."""
    slow = table_of(path)
    expected = {glob: plainly(slow, glob) for glob in GLOBS}
    assert any(expected.values())
    for glob in GLOBS:
        assert [each.offset for each in table_of(path).match([glob])] == expected[glob], glob
    both = sorted({*expected["mem*"], *expected["main"]})
    assert [each.offset for each in table_of(path).match(["mem*", "main"])] == both
