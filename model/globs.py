"""Does a glob of the user name this function?"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from .function import Function
from .text import title


def bare_name(name: str) -> str:
    """Return a C++ name without its parameter list: ``ns::f(int)`` becomes ``ns::f``."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0 and name[at] == "(":
            return name[:at] if at > 0 else name
    return name


def names_of(name: str, module: str) -> set[str]:
    """Return the names by which a user may mean a function: with and without parameters, and with its module."""
    return {name, bare_name(name), title(name, module)}


def fits(name: str, module: str, glob: str) -> bool:
    """Return whether a glob names a function; an exact name counts too, so ``operator[]`` matches itself."""
    return any(known == glob or fnmatchcase(known, glob) for known in names_of(name, module))


def matches(function: Function, globs: Collection[str]) -> bool:
    """Return whether any glob fits a name of the function.

    Tried are display name and aliases, these without parameters, mangled name and ``name (module)``.
    """
    if not globs:
        return False
    plain = (function.name, *function.aliases)
    names = {*plain, *map(bare_name, plain), function.mangled, function.title} - {""}
    return any(fnmatchcase(name, glob) for glob in globs for name in names)
