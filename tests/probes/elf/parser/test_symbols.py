"""Functions are found where nm sees them, named as people read them, and known by their ranges without names."""

from __future__ import annotations

import lzma
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from specmine.model.errors import InputError
from specmine.probes.elf.demangle import display_name, printable, without_parameters, without_return_type
from specmine.probes.elf.facts import FunctionKind
from specmine.probes.elf.parser import function_table as function_table_module
from specmine.probes.elf.parser.binary import build_id_of
from specmine.probes.elf.parser.function_table import FunctionTable
from tests.support.binary_samples import (
    C_SOURCE,
    CXX_SOURCE,
    LIBRARIES,
    RUST_SOURCE,
    assembled,
    changed,
    compiled,
    image_of,
    table_of,
)


def names(table: FunctionTable, *globs: str) -> list[str]:
    """Return the names that match."""
    return [each.name for each in table.match(globs)]


def test_functions_are_where_nm_sees_them(tmp_path: Path) -> None:
    """Offsets and sizes are those of nm, for every defined function."""
    path = compiled(tmp_path, "prog", C_SOURCE, "-O2")
    image, table = image_of(path), table_of(path)
    known = {each.offset: each for each in (table.facts(i) for i in range(len(table.starts)))}
    shown = subprocess.run(["nm", "-S", str(path)], capture_output=True, text=True, check=True).stdout
    seen = 0
    for line in shown.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTi":
            offset = image.file_offset(int(words[0], 16))
            assert offset is not None
            facts = known[offset]
            assert display_name(words[3]) in (facts.name, *facts.aliases)
            assert (facts.kind is FunctionKind.FRAGMENT) == words[3].endswith(".cold")
            assert facts.size == int(words[1], 16)
            seen += 1
    assert seen >= 9


def test_lookup_finds_the_function_that_holds_a_place(tmp_path: Path) -> None:
    """First and last byte belong to a function, the byte before and the header to none or another."""
    table = table_of(compiled(tmp_path, "prog", C_SOURCE, "-O2"))
    (visible,) = table.match(["visible"])
    places = [visible.offset, visible.offset + visible.size - 1, visible.offset - 1, 0, 1 << 40]
    first, last, before, header, beyond = table.lookup(places)
    assert first == last == visible
    assert before != visible
    assert header is None
    assert beyond is None


def test_names_at_one_place(tmp_path: Path) -> None:
    """No leading underscore, then the shortest, then the alphabet decide; the others are aliases."""
    table = table_of(compiled(tmp_path, "prog", C_SOURCE, "-O2"))
    (facts,) = table.match(["other_name"])
    assert facts.name == "visible"
    assert facts.aliases == ("other_name", "_visible")


def test_exported_names_come_first(tmp_path: Path) -> None:
    """A name that others can link to is preferred to a shorter one that is not exported."""
    source = """
.text
.globl exported_name
.type exported_name,@function
.type short,@function
exported_name:
short: .cfi_startproc
 ret
 .cfi_endproc
.size short,.-short
.size exported_name,.-exported_name
"""
    table = table_of(assembled(tmp_path, "lib.so", source))
    (facts,) = table.match(["short"])
    assert (facts.name, facts.aliases) == ("exported_name", ("short",))


def test_ifuncs_are_marked(tmp_path: Path) -> None:
    """An ifunc is found by its name and told from a function."""
    table = table_of(compiled(tmp_path, "prog", C_SOURCE, "-O2"))
    (facts,) = table.match(["indirect"])
    assert facts.kind is FunctionKind.IFUNC


def test_stripped_functions_are_known_by_their_ranges(tmp_path: Path) -> None:
    """Without symbols the same functions are there, named by module and offset."""
    path = compiled(tmp_path, "prog", C_SOURCE, "-O2")
    whole, bare = table_of(path), table_of(changed(path, tmp_path / "bare", tool="strip"))
    for facts in whole.match(["visible", "leaf", "main", "with_array", "hidden"]):
        (found,) = bare.match([f"bare+0x{facts.offset:x}"])
        assert (found.offset, found.size, found.kind) == (facts.offset, facts.size, FunctionKind.FUNCTION)
    assert names(bare, "visible") == []


def test_a_separate_debug_file_gives_names(tmp_path: Path) -> None:
    """What strip took comes back from the file that --only-keep-debug makes."""
    path = compiled(tmp_path, "prog", C_SOURCE, "-O2")
    debug = changed(path, tmp_path / "prog.debug", "--only-keep-debug")
    bare = changed(path, tmp_path / "bare", tool="strip")
    assert sorted(names(table_of(bare, debug=debug), "visible", "hidden")) == ["hidden", "visible"]


def test_mini_debug_information_gives_names(tmp_path: Path) -> None:
    """A compressed symbol table in .gnu_debugdata names functions; a broken one does no harm."""
    path = compiled(tmp_path, "prog", C_SOURCE, "-O2")
    debug = changed(path, tmp_path / "debug", "--only-keep-debug")
    bare = changed(path, tmp_path / "bare", tool="strip")
    packed = tmp_path / "packed"
    packed.write_bytes(lzma.compress(debug.read_bytes()))
    mini = changed(bare, tmp_path / "mini", "--add-section", f".gnu_debugdata={packed}")
    assert names(table_of(mini), "visible") == ["visible"]
    packed.write_bytes(packed.read_bytes()[:40] + b"garbage")
    broken = changed(bare, tmp_path / "broken", "--add-section", f".gnu_debugdata={packed}")
    assert names(table_of(broken), "visible") == []


def test_globs(tmp_path: Path) -> None:
    """A glob is tried, with its case, on the name, without parameters, on the symbol and with the module."""
    table = table_of(compiled(tmp_path, "cxx", CXX_SOURCE, "-O2", compiler="g++"))
    (total,) = table.match(["shop::Basket::total"])
    assert total.name.startswith("shop::Basket::total(std::")
    assert total.name.endswith(") const")
    for glob in ("shop::Basket::t*", "_ZNK4shop6Basket5total*", "shop::Basket::total* (cxx)", "*total*const"):
        assert total in table.match([glob])
    assert table.match(["SHOP::*", "shop::Basket::total (other)"]) == []
    assert names(table, "shop::twice<int>") == ["int shop::twice<int>(int)"]


def test_rust_names_lose_their_hash(tmp_path: Path) -> None:
    """Both of Rust's ways to write names become paths without hashes."""
    for scheme in ("legacy", "v0"):
        flags = ["-O", "-C", f"symbol-mangling-version={scheme}"]
        if scheme == "legacy":
            flags += ["-Z", "unstable-options"]
        try:
            path = compiled(tmp_path, scheme, RUST_SOURCE, *flags, compiler="rustc")
        except subprocess.CalledProcessError:  # the old scheme is no longer offered by every rustc
            continue
        found = names(table_of(path), "*Basket*total*")
        assert found
        assert found[0].endswith("Basket>::total" if scheme == "v0" else "Basket::total")
        assert names(table_of(path), "*::work*")


def test_a_static_program_names_its_library(tmp_path: Path) -> None:
    """In a static program the C library's functions are functions of the program."""
    table = table_of(compiled(tmp_path, "static", C_SOURCE, "-O2", "-static"))
    assert "malloc" in names(table, "malloc")


def test_cold_parts_belong_to_their_function() -> None:
    """In libc, of nameless ranges the cold parts are told from functions and named after their parents."""
    debug_folder = Path("/usr/lib/debug/.build-id")
    path = LIBRARIES / "libc.so.6"
    build = build_id_of(image_of(path))
    debug = debug_folder / build[:2] / f"{build[2:]}.debug"
    if not debug.exists():
        pytest.skip("libc6-dbg is not installed")
    bare, named = table_of(path), table_of(path, debug=debug)
    truth = {int(start): named.facts(i) for i, start in enumerate(named.starts)}
    wrong = right = adopted = 0
    for facts in (bare.facts(i) for i in range(len(bare.starts))):
        if facts.mangled and facts.kind is not FunctionKind.FRAGMENT:
            continue
        told = truth[facts.offset]
        if FunctionKind.FRAGMENT in (facts.kind, told.kind):
            right += facts.kind is told.kind
            wrong += facts.kind is not told.kind
            adopted += facts.parent >= 0
    assert right > 60
    assert wrong < right / 5
    assert adopted > right / 2


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("foo.part.0", "foo"),
        ("foo.constprop.3.isra.0", "foo"),
        ("foo.lto_priv.12.cold", "foo"),
        ("foo.llvm.1234567", "foo"),
        ("_ZN4shop6Basket5totalEi.cold", "shop::Basket::total(int)"),
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
        ("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE", "<&T as core::fmt::Debug>::fmt"),
        ("_RNvC1a1b", "a::b"),
        ("_Znot_mangled", "_Znot_mangled"),
        ("_ZN9999", "_ZN9999"),
        ("_R", "_R"),
        (".cold", ".cold"),
        ("@plain", "@plain"),
        ("evil\x1b[31m\n\x7f", "evil\\x1b[31m\\x0a\\x7f"),
        ("right\u202eleft", "right\\u202eleft"),
    ],
)
def test_displayed_names(symbol: str, shown: str) -> None:
    """Versions, clone suffixes and hashes go, nothing that does not print stays, the rest is kept."""
    assert display_name(symbol) == shown


def test_endless_names_are_cut() -> None:
    """A name of a megabyte is cut, and two of them stay different."""
    one, two = printable("a" * 1_000_000), printable("a" * 999_999 + "b")
    assert len(one) < 5000
    assert one != two
    assert display_name("_Z" + "N" * 100_000).startswith("_ZNNN")


def test_deep_names_do_no_harm() -> None:
    """Names nested thousands of levels deep neither crash nor hang a demangler."""
    for symbol in (
        "_Z" + "1a" * 1500,
        "_ZN" + "1aI" * 1300 + "E" * 100,
        "_R" + "IC1a" * 900,
        "_Z1f" + "P" * 3000 + "i",
    ):
        assert display_name(symbol)


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("shop::total(int, char const*)", "shop::total"),
        ("shop::total(void (*)(int)) const", "shop::total"),
        ("shop::operator()(int)", "shop::operator()"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ("main", "main"),
        ("(anonymous namespace)::value", "(anonymous namespace)::value"),
    ],
)
def test_names_without_parameters(name: str, bare: str) -> None:
    """The last pair of parentheses goes, with what follows it."""
    assert without_parameters(name) == bare


def test_names_without_return_type() -> None:
    """What C++ shows before a template's name goes; spaces inside brackets do not count."""
    assert without_return_type("std::vector<int, a b> shop::twice<int>") == "shop::twice<int>"
    assert without_return_type("operator new") == "operator new"


@pytest.mark.parametrize(
    "glob",
    [
        "vis[a-z]*",
        "[!a-u]isible",
        "*[_h]idden*",
        "visible (prog)",
        "*(prog)",
        "*.part*",
        "other_name",
        "[",
        "*[]",
        "?ain",
        "x",
    ],
)
def test_a_glob_finds_what_all_names_would_show(tmp_path: Path, glob: str) -> None:
    """Functions are left out by their symbols alone only if none of their names fits."""
    path = compiled(tmp_path, "prog", C_SOURCE, "-O2")
    table, every = table_of(path), table_of(path)
    fitting = []
    for number in range(len(every.starts)):
        facts = every.facts(number)
        shown = [facts.name, *facts.aliases]
        names = {*shown, *(f"{name} (prog)" for name in shown), *(symbol for _, symbol in every._symbols(number))}
        if facts.kind in (FunctionKind.FUNCTION, FunctionKind.IFUNC) and any(fnmatchcase(n, glob) for n in names):
            fitting.append(facts)
    assert table.match([glob]) == fitting
    plain = [n for n in range(len(table.starts)) if all(s[0] != "_" for _, s in table._symbols(n))]
    assert len(plain) > len(table._known) or len(table._known) > 5


def test_a_glob_that_names_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A binary may have a million functions; the list of all of them is no answer."""
    monkeypatch.setattr(function_table_module, "MOST_MATCHES", 3)
    table = table_of(compiled(tmp_path, "prog", C_SOURCE, "-O2"))
    with pytest.raises(InputError, match="more than 3 functions"):
        table.match(["*"])
    assert len(table.match(["visible"])) == 1
