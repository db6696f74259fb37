"""Build the hostile targets: each once, several at a time, with the library it needs beside it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.chaos_hostile import Target
from tests.support.paths import TESTS

TARGETS = TESTS / "chaos" / "targets"
_FLAGS = {"static": ["-static"], "static-pie": ["-static-pie"]}


def build(targets: Iterable[Target], folder: Path) -> dict[str, Path]:
    """Compile targets into a folder; return the path of each by its name."""
    wanted = list(targets)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda target: _build(target, folder), wanted)
        return {target.name: path for target, path in zip(wanted, made, strict=True)}


def _build(target: Target, folder: Path) -> Path:
    path = folder / target.name
    stems = (target.source, f"{target.source}_functions")
    sources = sorted(each for each in TARGETS.iterdir() if each.stem in stems and each.suffix != ".h")
    # functions are known by build-id and offset: two targets from one source must differ
    build_id = "0x" + hashlib.sha1(target.name.encode()).hexdigest()
    match sources[0].suffix:
        case ".rs":
            id_flags = ["-C", f"link-arg=-Wl,--build-id={build_id}"]
            _run("rustc", "-O", "--edition", "2021", *id_flags, "-o", path, sources[0])
        case ".go":
            _run("go", "build", f"-ldflags=-B {build_id}", "-o", path, sources[0])
        case _:
            extra = [*_library(target, folder), *_FLAGS.get(target.variant, []), *target.flags]
            identified = ("-I", TARGETS, f"-Wl,--build-id={build_id}")
            _compile(path, sources, *identified, *extra, compiler=target.compiler)
    if target.variant == "stripped":
        shutil.copy2(path, path.with_suffix(".whole"))
        _run("strip", path)
    return path


def _library(target: Target, folder: Path) -> list[str]:
    """Build the library of a target, if it has one; return the flags to link with it if it is there at the start."""
    source = next(TARGETS.glob(f"{target.library or target.source}_library.*"), None)
    if source is None:
        return []
    path = folder / f"{target.name}_library"
    build_id = "0x" + hashlib.sha1(path.name.encode()).hexdigest()
    _compile(path, [source], "-shared", "-fPIC", f"-Wl,-soname,{path.name}", f"-Wl,--build-id={build_id}")
    return (
        [str(path), f"-Wl,-rpath,{folder}"] if source.suffix == ".cc" else []
    )  # those of C targets are opened by name


def _compile(path: Path, sources: list[Path], *flags: object, compiler: str = "") -> None:
    cxx = any(each.suffix == ".cc" for each in sources)
    command = [compiler or "g++"] if cxx else [compiler or "gcc", "-std=gnu11"]
    _run(*command, "-O2", "-Wall", "-Wextra", "-Werror", "-o", path, *sources, *flags, "-lpthread")


def _run(*command: object) -> None:
    done = subprocess.run([str(each) for each in command], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def offsets(path: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Return the file offsets of functions of a program (text is where its address says in what gcc links here)."""
    listed = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    found = {line.split()[-1]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    return {name: found[name] for name in names}
