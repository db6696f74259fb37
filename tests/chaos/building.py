"""Build the hostile targets: each once, with the library it needs beside it."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

TARGETS = Path(__file__).parent / "targets"
MANY = 50_000
"""Functions of the generated program."""
HOT = 8
"""How many of them are called while it is watched."""
_FLAGS = {"": [], "static": ["-static"], "stripped": []}


class Builder:
    """Compiles targets into one folder."""

    def __init__(self, folder: Path) -> None:
        """Build nothing yet."""
        self._folder = folder
        self.build = functools.cache(self._build)

    def _build(self, name: str, variant: str = "") -> Path:
        target = self._folder / f"{name}{variant and '-' + variant}"
        if name == "many":
            source = self._folder / "many.c"
            source.write_text(many())
        else:
            source = next(path for path in TARGETS.glob(f"{name}.*"))
        if source.suffix == ".rs":
            subprocess.run(["rustc", "-O", "--edition", "2021", "-o", target, source], check=True)
            return target
        extra = _FLAGS[variant] + [f"-I{TARGETS}"]
        libraries = list(TARGETS.glob(f"{name}_library.*"))
        for library in libraries:
            beside = self._folder / f"{name}_library"
            _compile(library, beside, "-shared", "-fPIC", "-Wl,-soname,chaos_library")
            if name == "throws":  # found at its start; the others open theirs by name
                extra += [str(beside)]
                link = self._folder / "chaos_library"
                link.unlink(missing_ok=True)
                link.symlink_to(beside.name)
                extra += [f"-Wl,-rpath,{self._folder}"]
        _compile(source, target, *extra)
        if variant == "stripped":
            whole = target.with_suffix(".whole")
            shutil.copy2(target, whole)
            subprocess.run(["strip", target], check=True)
        return target


def _compile(source: Path, target: Path, *flags: str) -> None:
    compiler = ["g++"] if source.suffix == ".cc" else ["gcc", "-std=gnu11"]
    command = [*compiler, "-O1" if source.stem == "many" else "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-Wl,--build-id", "-o", target, source, *flags, "-lpthread"], check=True)


def offsets(path: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Return the file offsets of functions of a program (text is where its address says in what gcc links here)."""
    listed = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    found = {line.split()[-1]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    return {name: found[name] for name in names}


def many() -> str:
    """Write a program of 50,000 functions, all called at its start and a few while it is watched."""
    functions = "\n".join(f"FUNCTION int f{n}(int x) {{ KEEP_FRAME(); return x + {n}; }}" for n in range(MANY))
    table = ", ".join(f"f{n}" for n in range(MANY))
    hot = " ".join(f"sum += f{n}(i);" for n in range(HOT))
    counts = ", ".join(f'\\"f{n}\\": 1500' for n in range(HOT))
    return f"""#include "steps.h"
{functions}
static int (*const all[])(int) = {{ {table} }};
int main(void)
{{
    long sum = 0;
    for (int n = 0; n < {MANY}; n++)
        sum += all[n](n);
    await_line();
    for (int i = 0; i < 1500; i++) {{
        {hot}
        pause_us(300);
    }}
    printf("{{{counts}, \\"sum\\": %ld}}", sum);
    said();
    return 14;
}}
"""
