"""Unwind rows say what readelf says, for Debian's binaries and for rules that compilers seldom write."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specmine.probes.elf.facts import RowTable
from specmine.probes.elf.parser.cfa_program import Cie, expression_info, run_program
from specmine.probes.elf.parser.unwind_rows import ENTRY_ROW, read_frames
from tests.support.binary_samples import C_SOURCE, SYSTEM, assembled, changed, compiled, image_of, table_of

NONE, RSP, RBP, PLT, DEREF_RBP, DEREF_RSP, END, SIGNAL = range(8)


def described(info: int) -> tuple[int, int, int, int]:
    """Take a row apart: kind, rule of rbp, k, n."""
    n = info >> 13
    return info & 7, info >> 3 & 3, info >> 5 & 255, 8 * (n - (1 << 19) if n >> 18 else n)


def readelf_rows(path: Path) -> Iterator[tuple[int, str, str, str, bool]]:
    """Yield (address, CFA, rbp, ra, signal frame) of each row as binutils understands it."""
    # N: it must not go on with a separate debug file
    shown = subprocess.run(["readelf", "-wFN", str(path)], capture_output=True, text=True, check=True).stdout
    signal_cies: set[str] = set()
    columns: list[str] = []
    signal, ends = False, 0
    for line in shown.splitlines():
        words = re.sub(r"(r\d+) \(\w+\)", r"\1", line).split()  # another register holds it
        if len(words) > 3 and words[3] == "CIE":
            if "S" in words[4]:
                signal_cies.add(words[0])
            columns, ends = [], 0
        elif len(words) > 3 and words[3] == "FDE":
            signal = words[4].removeprefix("cie=") in signal_cies
            columns = []
            ends = int(words[5].rpartition("..")[2], 16)
        elif words[:2] == ["LOC", "CFA"]:
            columns = words
        elif columns and re.fullmatch("[0-9a-f]{16}", words[0] if words else ""):
            row = dict(zip(columns, words, strict=True))
            if int(row["LOC"], 16) < ends:
                yield int(row["LOC"], 16), row["CFA"], row.get("rbp", "u"), row.get("ra", "u"), signal


def expected(cfa: str, rbp: str, ra: str, signal: bool) -> set[tuple[int, int, int, int]]:
    """Return what a row of readelf may become."""
    if signal:
        return {(SIGNAL, 0, 0, 0)}
    if ra == "u":
        return {(END, 0, 0, 0)}
    if ra != "c-8":
        return {(NONE, 0, 0, 0)}
    rule, k = 2, 0
    if rbp in ("u", "s"):
        rule = 0
    elif rbp.startswith("c-"):
        rule, k = 1, int(rbp[2:]) // 8
    if cfa == "exp":
        return {(NONE, 0, 0, 0), (PLT, rule, k, 0)}
    register, _, offset = cfa.partition("+")
    if register not in ("rsp", "rbp") or int(offset) % 8:
        return {(NONE, 0, 0, 0)}
    return {(RSP if register == "rsp" else RBP, rule, k, int(offset))}


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
@pytest.mark.parametrize("path", SYSTEM, ids=lambda path: path.name)
def test_rows_of_debian_binaries_equal_readelf(path: Path) -> None:
    """Every row that binutils sees holds in our table, at its first byte and at the last before the next."""
    image = image_of(path)
    rows = read_frames(image).rows
    compared = 0
    for address, cfa, rbp, ra, signal in readelf_rows(path):
        offset = image.file_offset(address)
        assert offset is not None
        assert described(rows.at(offset)) in expected(cfa, rbp, ra, signal), hex(address)
        compared += 1
    assert compared > 1000


@pytest.mark.parametrize("path", SYSTEM[:2], ids=lambda path: path.name)
def test_rows_are_sorted_merged_and_closed(path: Path) -> None:
    """Places ascend, no two neighbours say the same, and behind the last function nothing is claimed."""
    rows = read_frames(image_of(path)).rows
    assert (np.diff(rows.pc.astype(np.int64)) > 0).all()
    assert (rows.info[1:] != rows.info[:-1]).all()
    assert rows.info[-1] == 0
    assert rows.at(0) == 0


@pytest.mark.parametrize("path", SYSTEM[:2], ids=lambda path: path.name)
def test_the_page_index_brackets_every_search(path: Path) -> None:
    """A search between two neighbours of the page index finds the row that a search of all rows finds."""
    image = image_of(path)
    rows = read_frames(image).rows
    end = max(each.offset + each.file_size for each in image.code)
    offsets = np.random.default_rng(1).integers(0, end, 20_000)
    offsets = np.concatenate((offsets, rows.pc.astype(np.int64), [0, end - 1]))
    found = np.searchsorted(rows.pc, offsets, side="right").astype(np.int64) - 1
    low, high = rows.pages[offsets >> 8], rows.pages[(offsets >> 8) + 1]
    inside = (low <= found) & (found <= high)
    assert (inside | (found < 0)).all()
    assert (rows.pc[low[found < 0]] > offsets[found < 0]).all()


def rows_at(rows: RowTable, start: int, size: int) -> list[tuple[int, tuple[int, int, int, int]]]:
    """Return the rows of one function, relative to its start."""
    inside = (rows.pc > start) & (rows.pc < start + size)
    found = [(0, described(rows.at(start)))]
    return found + [
        (int(pc) - start, described(int(info))) for pc, info in zip(rows.pc[inside], rows.info[inside], strict=True)
    ]


def test_debug_frame_alone_gives_the_same_rows(tmp_path: Path) -> None:
    """A program with .debug_frame instead of .eh_frame unwinds alike in its own functions."""
    usual = compiled(tmp_path, "usual", C_SOURCE, "-O2")
    debug = compiled(tmp_path, "debug", C_SOURCE, "-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    found = []
    for path in (usual, debug):
        rows = read_frames(image_of(path)).rows
        table = table_of(path)
        facts = {each.name: each for each in table.match(["with_array", "of_any_size", "visible", "main"])}
        found.append({name: rows_at(rows, each.offset, each.size) for name, each in facts.items()})
    assert found[0] == found[1]
    assert {kind for rows in found[0].values() for _, (kind, *_) in rows} >= {RSP, RBP}


RARE = """
.text
.globl realigned, saved, foreign, odd, far, lost_rbp, ends
.type realigned,@function
realigned: .cfi_startproc
  nop
  .cfi_escape 0x0f,3,0x76,0x78,0x06
  .cfi_escape 0x10,6,2,0x76,0
  nop
  .cfi_endproc
.size realigned,.-realigned
.type saved,@function
saved: .cfi_startproc
  .cfi_escape 0x0f,6,0x77,0xd0,0x00,0x06,0x23,0x08
  nop
  .cfi_endproc
.size saved,.-saved
.type foreign,@function
foreign: .cfi_startproc
  .cfi_def_cfa_register r10
  nop
  .cfi_def_cfa rsp, 24
  .cfi_offset rbp, -24
  nop
  .cfi_endproc
.size foreign,.-foreign
.type odd,@function
odd: .cfi_startproc
  .cfi_def_cfa_offset 12
  nop
  .cfi_endproc
.size odd,.-odd
.type far,@function
far: .cfi_startproc
  .cfi_def_cfa_offset 2097144
  nop
  .cfi_def_cfa_offset 2097152
  nop
  .cfi_endproc
.size far,.-far
.type lost_rbp,@function
lost_rbp: .cfi_startproc
  .cfi_undefined rbp
  nop
  .cfi_remember_state
  .cfi_def_cfa_offset 32
  .cfi_restore rbp
  nop
  .cfi_restore_state
  nop
  .cfi_register rip, rdi
  nop
  .cfi_endproc
.size lost_rbp,.-lost_rbp
.type ends,@function
ends: .cfi_startproc
  .cfi_undefined rip
  nop
  .cfi_endproc
.size ends,.-ends
"""


def test_rare_rules(tmp_path: Path) -> None:
    """Saved stack pointers, other registers, odd and far offsets and unknown registers are told apart."""
    path = assembled(tmp_path, "rare.so", RARE)
    rows = read_frames(image_of(path)).rows
    found = {each.name: rows_at(rows, each.offset, each.size) for each in table_of(path).match(["*"])}
    assert found["realigned"] == [(0, (RSP, 0, 0, 8)), (1, (DEREF_RBP, 2, 0, -8))]
    assert found["saved"] == [(0, (DEREF_RSP, 0, 0, 80))]
    assert found["foreign"] == [(0, (NONE, 0, 0, 0)), (1, (RSP, 1, 3, 24))]
    assert found["odd"] == [(0, (NONE, 0, 0, 0))]
    assert found["far"] == [(0, (RSP, 0, 0, 2097144)), (1, (NONE, 0, 0, 0))]
    assert found["lost_rbp"] == [
        (0, (RSP, 2, 0, 8)),
        (1, (RSP, 0, 0, 32)),
        (2, (RSP, 2, 0, 8)),
        (3, (NONE, 0, 0, 0)),
    ]
    assert found["ends"] == [(0, (END, 0, 0, 0))]


def test_eh_frame_is_found_without_section_headers(tmp_path: Path) -> None:
    """A file whose section headers are gone unwinds by its program headers alone."""
    path = compiled(tmp_path, "whole", C_SOURCE, "-O2")
    data = bytearray(path.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[60:64] = bytes(4)  # e_shnum, e_shstrndx
    bare = tmp_path / "bare"
    bare.write_bytes(data)
    whole, alone = read_frames(image_of(path)), read_frames(image_of(bare))
    assert len(image_of(bare).sections) == 0
    assert np.array_equal(whole.rows.pc, alone.rows.pc)
    assert np.array_equal(whole.rows.info, alone.rows.info)


def test_stripping_leaves_the_rows(tmp_path: Path) -> None:
    """strip takes names, not unwind rows."""
    path = compiled(tmp_path, "named", C_SOURCE, "-O2")
    bare = changed(path, tmp_path / "bare", tool="strip")
    assert np.array_equal(read_frames(image_of(path)).rows.info, read_frames(image_of(bare)).rows.info)


USUAL = Cie(
    code_align=1, data_align=-8, encoding=0x1B, augmented=True, signal=False, personality=False,
    initial=bytes((0x0C, 7, 8, 0x90, 1)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("program", "info"),
    [
        (b"", [ENTRY_ROW]),
        (b"\x41\x0e\x10\x86\x02", [ENTRY_ROW, 1 | 1 << 3 | 2 << 5 | 2 << 13]),
        (b"\x0b", [0]),  # restore_state without remember_state
        (b"\x41\x3f", [ENTRY_ROW, 0]),  # no such instruction
        (b"\x41\x0e", [ENTRY_ROW, 0]),  # operand missing
        (b"\x41\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", [ENTRY_ROW, 0]),
        (b"\x04\xff\xff\xff\xff\x41\x0e\x10", [ENTRY_ROW, 1 | 2 << 13]),
    ],
)
def test_programs_good_and_bad(program: bytes, info: list[int]) -> None:
    """A program runs as far as it makes sense; from there on nothing is claimed."""
    assert run_program(USUAL, program).info == info


def test_a_program_cannot_make_endless_rows() -> None:
    """A hostile program of many advances is cut at the limit, and its rows ascend."""
    found = run_program(USUAL, b"\x41\x0e\x10\x41\x0e\x18" * 100_000)
    assert len(found.location) <= 1 << 16
    assert found.info[-1] == 0
    assert all(a < b for a, b in zip(found.location, found.location[1:], strict=False))


def test_expressions() -> None:
    """The linker's PLT expression and loads from the stack are known, all else is no rule."""
    plt = bytes((0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22))
    assert described(expression_info(plt)) == (PLT, 0, 0, 0)
    assert described(expression_info(b"\x76\x78\x06")) == (DEREF_RBP, 0, 0, -8)
    assert described(expression_info(b"\x77\xd0\x00\x06\x23\x08")) == (DEREF_RSP, 0, 0, 80)
    assert expression_info(b"\x77\xd0\x00\x06") == 0
    assert expression_info(b"\x77\xd0\x00\x06\x23\x10") == 0
    assert expression_info(b"\x77\x81\x00\x06\x23\x08") == 0
    assert expression_info(b"") == 0
