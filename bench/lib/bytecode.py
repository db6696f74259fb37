"""Python's bytecode of specmine, as an installation has it: without it each process compiles what it imports."""

from __future__ import annotations

import compileall
from pathlib import Path

import specmine


def compiled() -> None:
    """Compile what is not, also where the environment keeps Python from writing bytecode."""
    for folder in Path(specmine.__file__).parent.iterdir():
        if folder.is_dir():
            compileall.compile_dir(folder.resolve(), quiet=2)
