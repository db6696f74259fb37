"""Does a glob of the user name this function?"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from .observation import Function


def bare_name(name: str) -> str:
    """Return a C++ name without its parameter list: ``ns::f(int)`` becomes ``ns::f``."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0 and name[at] == "(":
            return name[:at] if at > 0 else name
    return name


def matches(function: Function, globs: Collection[str]) -> bool:
    """Tell whether any glob fits a name of the function.

    Tried are display name and aliases, these without parameters, mangled name and ``name (module)``.
    """
    if not globs:
        return False
    plain = (function.name, *function.aliases)
    shown = f"{function.name} ({function.module})"
    names = {*plain, *map(bare_name, plain), function.mangled, shown} - {""}
    return any(fnmatchcase(name, glob) for glob in globs for name in names)
