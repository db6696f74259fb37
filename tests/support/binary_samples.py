"""Binaries for the tests of the readers: Debian's own, and small ones compiled on the spot."""

from __future__ import annotations

import mmap
import shutil
import subprocess
from pathlib import Path

import pytest

from specmine.probes.elf.parser.branches import find_branches
from specmine.probes.elf.parser.function_table import FunctionTable
from specmine.probes.elf.parser.image import Image, open_image
from specmine.probes.elf.parser.symbols import function_table
from specmine.probes.elf.parser.unwind_rows import read_frames

LIBRARIES = Path("/lib/x86_64-linux-gnu")
SYSTEM = tuple(
    each
    for each in (
        LIBRARIES / "libc.so.6",
        Path("/lib64/ld-linux-x86-64.so.2"),
        Path("/bin/bash"),
        Path("/usr/bin/python3"),
        LIBRARIES / "libstdc++.so.6",
    )
    if each.exists()
)

C_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int leaf(int n) { asm volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) static int hidden(int n) { asm volatile("" : "+r"(n)); return leaf(n) * 2; }
int visible(int n) { return hidden(n) + 1; }
extern int other_name(int n) __attribute__((alias("visible")));
extern int _visible(int n) __attribute__((alias("visible")));
int with_array(int n) { volatile int a[64]; a[n & 63] = n; return a[0] + leaf(n); }
int of_any_size(int n) { volatile char *p = __builtin_alloca(n + 16); p[n] = 1; return p[0] + leaf(n); }
__attribute__((noreturn)) void dies(void) { abort(); }
static int chosen(void) { return 1; }
static void *resolve(void) { return chosen; }
int indirect(void) __attribute__((ifunc("resolve")));
int main(int argc, char **argv) { printf("%d\n", visible(argc) + with_array(argc) + of_any_size(argc) + indirect());
                                  if (argc > 9) dies(); return 0; }
"""
CXX_SOURCE = r"""
#include <stdexcept>
#include <string>
#include <vector>
namespace shop {
struct Basket {
	std::vector<int> items;
	__attribute__((noinline)) int total(const std::string &name) const;
	Basket(int);
};
Basket::Basket(int n) : items(n) {}
int Basket::total(const std::string &name) const
{
	int sum = 0;
	for (int each : items) sum += each;
	if (name.empty()) throw std::runtime_error("no name");
	return sum;
}
template <class T> __attribute__((noinline)) T twice(T value) { asm volatile("" : "+r"(value)); return value + value; }
}
int main(int argc, char **)
{
	shop::Basket basket(argc);
	try {
		return basket.total(argc > 5 ? "" : "x") + shop::twice<int>(argc);
	} catch (const std::exception &) {
		return 1;
	}
}
"""
RUST_SOURCE = r"""
#[inline(never)]
pub fn work<T: std::fmt::Debug>(x: &T) -> usize { format!("{:?}", x).len() }
mod shop {
    pub struct Basket(pub u32);
    impl Basket { #[inline(never)] pub fn total(&self) -> u32 { std::process::id() ^ self.0 } }
}
fn main() {
    let caught = std::panic::catch_unwind(|| { if work(&vec![1u8]) > 100 { panic!("x") } });
    println!("{} {}", caught.is_ok(), shop::Basket(3).total());
}
"""


def compiled(folder: Path, name: str, source: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compile a source text, the test is skipped if there is no compiler."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    suffix = {"gcc": ".c", "g++": ".cc", "rustc": ".rs"}[compiler]
    text = folder / f"{name}{suffix}"
    text.write_text(source)
    subprocess.run([compiler, str(text), "-o", str(folder / name), *flags], check=True, capture_output=True)
    return folder / name


def assembled(folder: Path, name: str, source: str, *flags: str) -> Path:
    """Make a shared library of assembler text."""
    text = folder / f"{name}.s"
    text.write_text(source + '\n.section .note.GNU-stack,"",@progbits\n')
    target = folder / name
    subprocess.run(
        ["gcc", "-shared", "-nostdlib", str(text), "-o", str(target), *flags], check=True, capture_output=True
    )
    return target


def changed(path: Path, target: Path, *flags: str, tool: str = "objcopy") -> Path:
    """Make another file of one, by objcopy or strip."""
    command = (
        [tool, *flags, str(path), str(target)] if tool == "objcopy" else [tool, *flags, str(path), "-o", str(target)]
    )
    subprocess.run(command, check=True, capture_output=True)
    return target


def image_of(path: Path) -> Image:
    """Map a file and read its headers."""
    with path.open("rb") as file:
        return open_image(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def table_of(path: Path, *, debug: Path | None = None) -> FunctionTable:
    """Return the functions of a file."""
    image = image_of(path)
    names = open_image(debug.read_bytes(), names_only=True) if debug is not None else None
    return function_table(image, read_frames(image), find_branches(image), path.name, debug=names)
