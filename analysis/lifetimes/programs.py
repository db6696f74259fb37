"""The programs that a store knows, by build: two builds can be compared only if they are of one program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from specmine.model.errors import InputError
from specmine.model.text import listed
from specmine.store import Where, read_store

IN_EVERY_PROGRAM = frozenset({"main", "_start", "_init", "_fini", "usage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProgram:
    """What is known of the program that a build is of."""

    files: frozenset[str] = field(default_factory=frozenset)
    """Base names of what was executed."""
    functions: frozenset[str] = field(default_factory=frozenset)
    """Names of the functions of its own file, timed or only sampled."""


def programs_in_store(path: Where) -> dict[str, KnownProgram]:
    """Return the program of each build."""
    with read_store(path) as store:
        contents = store.load(newest=0)
    files, functions = defaultdict(set), defaultdict(set)
    for lifetime in contents.lifetimes:
        files[lifetime.build_id].add(PurePosixPath(lifetime.executable).name)
    for function in contents.functions:
        if not function.name.startswith(f"{function.module}+0x"):
            functions[function.build_id].add(function.name)
    return {
        build: KnownProgram(files=frozenset(names), functions=frozenset(functions[build]) - IN_EVERY_PROGRAM)
        for build, names in files.items()
    }


def check_same_program(
    names: tuple[str, str], sides: tuple[Collection[KnownProgram], Collection[KnownProgram]]
) -> None:
    """Raise InputError if both sides are surely of different programs.

    The next version of a program may have another file name, as ``app-1.3``; but it has functions of the same names.
    """
    files, functions = zip(*(_together(side) for side in sides), strict=True)
    if files[0] & files[1] or functions[0] & functions[1] or not all(functions):
        return
    of = [f"{name} is of {listed(sorted(each)[:3])}" for name, each in zip(names, files, strict=True)]
    raise InputError(f"{listed(of)}: no function of a program is in both", remedy="choose two sides of one program")


def _together(programs: Collection[KnownProgram]) -> tuple[frozenset[str], frozenset[str]]:
    files = frozenset(name for each in programs for name in each.files)
    return files, frozenset(name for each in programs for name in each.functions)


def of_builds(known: Mapping[str, KnownProgram], builds: Collection[str]) -> list[KnownProgram]:
    """Return the programs of some builds."""
    return [known[build] for build in sorted(builds) if build in known]
