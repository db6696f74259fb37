"""What is said of a binary agrees with pyelftools and with how it was built; bad files lead to one clear error."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from specmine.model.errors import InputError
from specmine.probes.elf.facts import BinaryFacts
from specmine.probes.elf.parser.binary import read_facts
from specmine.probes.elf.parser.image import open_image
from tests.support.binary_samples import (
    C_SOURCE,
    CXX_SOURCE,
    LIBRARIES,
    RUST_SOURCE,
    SYSTEM,
    changed,
    compiled,
    image_of,
)


def facts_of(path: Path) -> BinaryFacts:
    """Return the facts of a file."""
    return read_facts(image_of(path))


@pytest.mark.parametrize("path", SYSTEM, ids=lambda path: path.name)
def test_facts_equal_pyelftools(path: Path) -> None:
    """Segments, build-id and soname are those an independent parser reads."""
    facts = facts_of(path)
    with path.open("rb") as file:
        elf = ELFFile(file)
        loads = [each.header for each in elf.iter_segments("PT_LOAD")]
        assert [
            (each.offset, each.address, each.file_size, each.memory_size, each.flags) for each in facts.segments
        ] == [(each.p_offset, each.p_vaddr, each.p_filesz, each.p_memsz, each.p_flags) for each in loads]
        notes = [note for each in elf.iter_segments() if isinstance(each, NoteSegment) for note in each.iter_notes()]
        assert facts.build_id == next(each["n_desc"] for each in notes if each["n_type"] == "NT_GNU_BUILD_ID")
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        assert facts.needed == tuple(tag.needed for tag in dynamic.iter_tags("DT_NEEDED"))  # type: ignore[attr-defined]
        assert (facts.soname or None) == next((tag.soname for tag in dynamic.iter_tags("DT_SONAME")), None)  # type: ignore[attr-defined]


def test_kinds_of_files(tmp_path: Path) -> None:
    """Position-independent or not, static or not, program or library: they are distinguished."""
    pie = facts_of(compiled(tmp_path, "pie", C_SOURCE, "-O2", "-pie", "-fPIE"))
    fixed = facts_of(compiled(tmp_path, "fixed", C_SOURCE, "-O2", "-no-pie"))
    static = facts_of(compiled(tmp_path, "static", C_SOURCE, "-O2", "-static"))
    static_pie = facts_of(compiled(tmp_path, "static_pie", C_SOURCE, "-O2", "-static-pie", "-fPIE"))
    library = facts_of(compiled(tmp_path, "library", C_SOURCE, "-O2", "-shared", "-fPIC"))
    assert [each.kind for each in (pie, fixed, static, static_pie, library)] == [
        "pie", "executable", "executable", "pie", "library",
    ]  # fmt: skip


def test_a_file_without_build_id_is_named_by_its_code(tmp_path: Path) -> None:
    """Without a build-id the hash of .text stands for it, stripped or not."""
    path = compiled(tmp_path, "anonymous", C_SOURCE, "-O2", "-Wl,--build-id=none")
    facts = facts_of(path)
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".text")
        assert section is not None
        text = section.data()
    assert facts.build_id == "sha256:" + hashlib.sha256(text).hexdigest()[:16]
    stripped = facts_of(changed(path, tmp_path / "bare", tool="strip"))
    assert stripped.build_id == facts.build_id


def test_unwinders_are_found(tmp_path: Path) -> None:
    """C++ programs can unwind however they are linked and stripped, C programs and libc itself cannot."""
    cxx = compiled(tmp_path, "cxx", CXX_SOURCE, "-O2", compiler="g++")
    assert "needs libstdc++.so.6" in facts_of(cxx).unwinder
    assert facts_of(changed(cxx, tmp_path / "cxx_bare", tool="strip")).unwinder
    inside = compiled(tmp_path, "inside", CXX_SOURCE, "-O2", "-static-libgcc", "-static-libstdc++", compiler="g++")
    bare = facts_of(changed(inside, tmp_path / "inside_bare", tool="strip"))
    assert bare.unwinder == ("has exception tables",)
    static = compiled(tmp_path, "static", CXX_SOURCE, "-O2", "-static", compiler="g++")
    assert facts_of(changed(static, tmp_path / "static_bare", tool="strip")).unwinder
    plain = facts_of(compiled(tmp_path, "plain", C_SOURCE, "-O2"))
    assert plain.unwinder == ()
    assert facts_of(LIBRARIES / "libc.so.6").unwinder == ()


@pytest.mark.parametrize(
    ("by", "call"), [("dlopen", "dlopen(v[1], RTLD_NOW)"), ("dlsym", 'dlsym(RTLD_DEFAULT, "dlopen")')]
)
def test_programs_that_load_code_are_found(tmp_path: Path, by: str, call: str) -> None:
    """What a program loads later may throw through its frames: that it calls dlopen shows, stripped or not."""
    source = f"#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(int c, char **v) {{ return v[1] && !{call}; }}"
    path = compiled(tmp_path, "loads", source, "-O2", "-ldl")
    assert facts_of(path).unwinder == (f"may load code by {by}",)
    assert facts_of(changed(path, tmp_path / "loads_bare", tool="strip")).unwinder == (f"may load code by {by}",)


def test_rust_can_unwind(tmp_path: Path) -> None:
    """Panics pass frames of a Rust program."""
    facts = facts_of(compiled(tmp_path, "rusty", RUST_SOURCE, "-O", compiler="rustc"))
    assert facts.unwinder


def test_go_is_told(tmp_path: Path) -> None:
    """A file with Go's build information is a Go program."""
    plain = compiled(tmp_path, "plain", C_SOURCE, "-O2")
    info = tmp_path / "info"
    info.write_bytes(b"\xff Go buildinf:" + bytes(18))
    path = changed(plain, tmp_path / "go", "--add-section", f".go.buildinfo={info}")
    assert facts_of(path).is_go
    assert not facts_of(plain).is_go


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an ELF file: too short"),
        (b"#!/bin/sh\n" * 20, "not an ELF file: no ELF signature"),
        (b"\x7fELF\x01\x01\x01" + bytes(100), "not an x86-64 program: class 1, machine 0"),
        (
            b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\xb7\0" + bytes(60),
            "not an x86-64 program: class 2, machine 183",
        ),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\0\x3e\0" + bytes(60), "neither a program nor a shared library"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    """Whatever is not a 64-bit x86 program or library is refused in one sentence."""
    with pytest.raises(InputError) as error:
        open_image(data)
    assert str(error.value).startswith(message)


def test_a_file_cut_short_is_refused() -> None:
    """A file that ends before its segments do is refused."""
    data = Path("/bin/bash").read_bytes()
    with pytest.raises(InputError, match="not an ELF file: cut short"):
        open_image(data[: len(data) // 2])
