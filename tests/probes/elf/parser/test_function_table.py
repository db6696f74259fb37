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


def named(table: FunctionTable) -> list[tuple[int, list[str]]]:
    """Return the offset of each function with all its names, every one being made."""
    every = [(number, table.facts(number)) for number in range(len(table.starts))]
    return [
        (facts.offset, list(table._callings(number, facts)))
        for number, facts in every
        if facts.kind in (FunctionKind.FUNCTION, FunctionKind.IFUNC)
    ]


@pytest.fixture(scope="module", params=["bash", "libc.so.6", "libstdc++.so.6", "prog"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C program, C and C++ libraries, and a small C++ program with its symbols."""
    if request.param == "prog":
        return compiled(tmp_path_factory.mktemp("cxx"), "prog", CXX_SOURCE, "-O1", compiler="g++")
    return Path("/bin/bash") if request.param == "bash" else LIBRARIES / str(request.param)


def test_no_function_is_overlooked(path: Path) -> None:
    """Words of a glob that no symbol holds rule out C functions only, whose names are their symbols."""
    every = named(table_of(path))
    expected = {
        glob: [offset for offset, names in every if any(fnmatchcase(name, glob) for name in names)] for glob in GLOBS
    }
    assert any(expected.values())
    asked = table_of(path)
    for glob in GLOBS:
        assert [each.offset for each in asked.match([glob])] == expected[glob], glob
    both = sorted({*expected["mem*"], *expected["main"]})
    assert [each.offset for each in table_of(path).match(["mem*", "main"])] == both
