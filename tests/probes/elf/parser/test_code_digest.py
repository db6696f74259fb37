"""Digests of machine code stay when a program is linked anew, and differ where it was compiled to something else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from specmine.mining.regression.code_diff import same_code
from specmine.model.errors import InputError
from specmine.probes.elf.client import Reader
from specmine.probes.elf.parser.code_digest import code_digests
from specmine.probes.elf.protocol import decode
from tests.support.binary_samples import image_of, table_of

PARTS = {
    "work": r"""
extern int seen; int step(int); extern int table[];
__attribute__((noinline)) static int local(int n) { asm volatile("" : "+r"(n)); return n * 3; }
int work(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += step(i) ^ table[i & 3] ^ local(i);
  seen++; return sum; }
""",
    "step": "int step(int n) { switch (n & 7) { case 0: return n * 5; case 1: return n ^ 9; case 2: return n / 3;"
    " case 3: return n % 11; case 4: return -n; case 5: return n << 3; } return n + 1; }",
    "data": 'int seen = 1; int table[4] = {1, 2, 3, 4}; const char *name = "a name";',
    "main": r"""
#include <stdio.h>
int work(int); int other(int); extern const char *name;
int main(int argc, char **argv) { printf("%s %d %d\n", name, work(argc), other(argc)); return 0; }
""",
    "other": "int step(int); extern int seen; int other(int n) { return step(n) + seen; }",
}
NAMES = ("work", "local", "step", "other", "main")


def built(folder: Path, order: list[str], *flags: str, **changed: str) -> Path:
    """Compile each part on its own and link them in this order."""
    folder.mkdir()
    objects = []
    for part in order:
        source = folder / f"{part}.c"
        source.write_text(changed.get(part, PARTS[part]))
        objects.append(folder / f"{part}.o")
        subprocess.run(["gcc", "-O2", *flags, "-c", str(source), "-o", str(objects[-1])], check=True)
    target = folder / "app"
    subprocess.run(["gcc", *flags, *map(str, objects), "-o", str(target)], check=True)
    return target


def digests(path: Path) -> dict[str, tuple[int, str]]:
    """Return offset and digest of the functions by name."""
    table = table_of(path)
    found = {each.name: each.offset for each in table.match(NAMES)}
    codes = code_digests(image_of(path), table, list(found.values()))
    return {name: (found[name], code) for name, code in zip(found, codes, strict=True)}


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie"), ("-fcf-protection=none", "-falign-functions=64")])
def test_another_order_of_linking_changes_no_digest(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Every function lies elsewhere, and every digest is as it was."""
    one = digests(built(tmp_path / "one", list(PARTS), *flags))
    other = digests(built(tmp_path / "two", list(reversed(PARTS)), *flags))
    assert set(one) == set(other) == set(NAMES)
    assert sum(one[name][0] != other[name][0] for name in NAMES) >= 4
    assert {name: same_code(one[name][1], other[name][1]) for name in NAMES} == dict.fromkeys(NAMES, True)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"step": PARTS["step"].replace("n % 11", "n % 13")}, {"step"}),
        ({"work": PARTS["work"].replace("n * 3", "n * 7")}, {"local"}),
        ({"work": PARTS["work"].replace("seen++", "seen += 2")}, {"work"}),
        ({"data": PARTS["data"].replace("a name", "another, much longer name").replace("{1", "{9")}, set()),
    ],
)
def test_only_what_was_changed_differs(tmp_path: Path, changed: dict[str, str], expected: set[str]) -> None:
    """A constant in one function makes that one differ and no other; data are not code."""
    one = digests(built(tmp_path / "one", list(PARTS)))
    other = digests(built(tmp_path / "two", list(PARTS), **changed))
    assert {name for name in NAMES if not same_code(one[name][1], other[name][1])} == expected


def test_a_call_of_another_function_is_a_change(tmp_path: Path) -> None:
    """The same instructions that call something else are different code; without names that is not seen."""
    another = PARTS["other"].replace("step", "work")
    files = [built(tmp_path / "one", list(PARTS)), built(tmp_path / "two", list(PARTS), other=another)]
    named = [digests(each)["other"] for each in files]
    assert same_code(named[0][1], named[1][1]) is False
    found = []
    for path, (offset, _) in zip(files, named, strict=True):
        bare = path.with_name("bare")
        subprocess.run(["strip", str(path), "-o", str(bare)], check=True)
        found += code_digests(image_of(bare), table_of(bare), [offset])
    assert same_code(*found) is True
    assert same_code(found[0], named[0][1]) is True, "stripping changes no code"


def test_the_child_answers_and_a_place_inside_a_function_has_no_digest(tmp_path: Path) -> None:
    """Nor has one outside of all code; the answer that comes back is what was computed."""
    path = built(tmp_path / "one", list(PARTS))
    offset, code = digests(path)["work"]
    fd = os.open(path, os.O_RDONLY)
    with Reader(niceness=0) as reader:
        assert reader.code(fd, [offset, offset + 1, 1 << 40, 0], "app") == [code, "", "", ""]
    os.close(fd)
    assert isinstance(decode("code", b'{"answer": ["rm -rf"]}'), InputError)
