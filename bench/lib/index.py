"""The list of benches: each with the question that its docstring begins with.

.venv/bin/python -m bench.lib.index
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
NO_BENCHES = ("lib", "targets")


def benches() -> dict[str, str]:
    """Return the docstring of each bench, by the name that ``make bench BENCHES=NAME`` takes."""
    paths = [path for path in sorted(FOLDER.glob("*/*.py")) if path.parent.name not in NO_BENCHES]
    return {
        f"{path.parent.name}.{path.stem}": ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for path in paths
    }


def main() -> None:
    """Print the list, two lines a bench at most."""
    for name, text in benches().items():
        print(name)
        print(textwrap.fill(text.splitlines()[0], 100, initial_indent="    ", subsequent_indent="    "))


if __name__ == "__main__":
    main()
