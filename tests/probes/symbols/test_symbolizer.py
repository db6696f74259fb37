"""Edges of a path are named so that the same source, built again, gives the same ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from specmine.model.call_path import Frame
from specmine.model.function import Function
from specmine.probes.elf.facts import BinaryFacts, FunctionFacts, FunctionKind
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.symbolizer import Symbolizer, without_clones
from tests.support.binary_samples import compiled, table_of

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
extern int (*volatile go)(int);
%s
static __attribute__((noinline)) int rare(int n, int k) { for (int i = 0; i < k; i++) n += printf("%%d", n); return n; }
static __attribute__((noinline)) int often(int n, int *p) {
	if (__builtin_expect(!p, 0)) { rare(n, 3); rare(n, 4); puts("null"); abort(); }
	return rare(n + *p, 5);
}
int run(int n) { int k = n; return often(n, &k) + often(n + 1, &k); }
int (*volatile go)(int) = run;
int main(int argc, char **argv) { (void)argv; return go(argc); }
"""


def function(name: str, offset: int, mangled: str = "") -> Function:
    """Return a function of one module."""
    return Function(build_id="b", offset=offset, name=name, module="app", mangled=mangled or name)


def test_parts_of_a_function_are_one_frame() -> None:
    """foo that calls its own .part, .constprop or .isra is foo once, whichever of them is timed."""
    foo, part, main = function("foo", 16), function("foo", 64, "foo.part.0"), function("main", 0)
    for stack in ([part, foo, main], [foo, part, main]):
        assert [f.name for f in without_clones(stack) if isinstance(f, Function)] == ["foo", "main"]


def test_recursion_stays() -> None:
    """A function that calls itself, and one that calls a namesake of its own right, keep both frames."""
    foo, part, main = function("foo", 16), function("foo", 64, "foo.isra.0"), function("main", 0)
    other = function("foo", 128)
    nameless = Frame("[unknown]", "")
    assert without_clones([foo, foo, main]) == [foo, foo, main]
    assert without_clones([foo, other, main]) == [foo, other, main]
    assert without_clones([part, foo, part, foo, main]) == [part, part, main]
    assert without_clones([foo, nameless, foo]) == [foo, nameless, foo]


def test_two_builds_name_alike(tmp_path: Path) -> None:
    """Other places, other clones and a cold part more: the names that edges are made of are the same."""
    found = []
    for number, (extra, flags) in enumerate(
        [
            ("", ["-O2", "-fno-ipa-cp-clone", "-fno-partial-inlining"]),
            ("int unused(int n) { return n * 7; }", ["-O3", "-fipa-cp-clone"]),
            ("", ["-O2", "-fno-ipa-sra", "-falign-functions=64"]),
        ]
    ):
        table = table_of(
            compiled(tmp_path, f"build{number}", SOURCE % extra, "-fno-inline-functions-called-once", *flags)
        )
        found.append({each.name for each in table.match(["rare*", "often*", "run*", "main*"])})
    assert found[0] == found[1] == found[2] == {"rare", "often", "run", "main"}


def opened(build: str, number: int) -> Module:
    """Return a file of a build."""
    return Module(
        file=(1, number), path=f"/app{number}", fd=-1, facts=BinaryFacts(build_id=build, kind="pie", segments=())
    )


def test_functions_end_with_the_last_file_of_their_build() -> None:
    """A thousand builds come and go: of two files of one build the functions stay until the second is closed."""
    by_file: dict[object, Module] = {}
    symbolizer = Symbolizer(cast("Modules", SimpleNamespace(by_file=by_file)))
    facts = FunctionFacts(offset=16, size=8, name="f", module="app", kind=FunctionKind.FUNCTION)
    for number in range(1000):
        files = [opened(f"b{number}", 2 * number + which) for which in (0, 1)]
        by_file |= {each.file: each for each in files}
        key = symbolizer.admit(files[0], facts).key
        for each, forgotten in zip(files, (frozenset(), frozenset({key})), strict=True):
            del by_file[each.file]
            each.gone = True
            assert symbolizer.forget({each}) == forgotten
            assert symbolizer.module_of == ({} if forgotten else {key: files[1]})
        symbolizer.take_functions()
    assert not any((symbolizer.functions, symbolizer.undigested, symbolizer.unread()))


def test_an_answer_that_comes_after_the_file_was_closed_is_not_kept() -> None:
    """The reader may be asked about a file of which the last process ends meanwhile."""
    symbolizer = Symbolizer(cast("Modules", SimpleNamespace(by_file={})))
    late = opened("b", 1)
    late.gone = True
    facts = FunctionFacts(offset=16, size=8, name="f", module="app", kind=FunctionKind.FUNCTION)
    assert symbolizer.admit(late, facts).name == "f"
    assert symbolizer.functions == {} and symbolizer.take_functions() == ()
