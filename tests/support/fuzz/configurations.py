"""Damaged configurations, and what YAML can do to its readers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import yaml

from specmine.daemon.config.tree import default_text
from tests.support.fuzz.attempt import FINE, WRONG, Attempt
from tests.support.fuzz.mutation import damaged_bytes, damaged_json, damaged_lines

_WORDS = (
    "a: &a [x, x]\nb: &b [*a, *a, *a]\nprograms: [*b, *b]\n",
    "functions: {watch: " + "[" * 5000 + "]" * 5000 + "}\n",
    "programs: " + "{exe: " * 900 + "x" + "}" * 900 + "\n",
    "functions: !!python/object/apply:os.system ['touch /tmp/specmine-was-here']\n",
    "functions: !!python/name:os.system\n",
    "<<: {budget: {overhead: 100%}}\n",
    "budget: &b {overhead: *b}\n",
    "programs: [{pid: 0x" + "f" * 4000 + "}]\n",
    "programs: [{pid: " + "9" * 50_000 + "}]\n",
    "windows: {length: " + "1" * 5000 + "s}\n",
    "budget: {overhead: .nan}\n",
    "budget: {overhead: 1e400%}\n",
    "windows: {length: 1:30:00}\n",
    "store: {path: !!binary aGVsbG8=}\n",
    "programs: 2001-01-01\n",
    "programs: [~, ~]\n",
    "? [a, b]\n: c\n",
    "%YAML 9.9\n---\nbudget: {}\n",
    "--- {}\n--- {}\n",
    "functions: {watch: [" + "'*', " * 100_000 + "]}\n",
    "programs:\n" + "- {unit: a}\n" * 20_000,
)


_TAGS = ("int", "float", "bool", "null", "timestamp", "binary", "str", "seq", "map", "set", "omap", "pairs", "merge")
_SHORT = ('""', '"-"', '"0x_"', '":"', "zz", "~", "2001-99-99", "9" * 60_000, '"\\ud800"', '"\\UFFFFFFFF"')


def attempts(folder: Path, chance: random.Random) -> Iterator[Attempt]:
    """Damage the default configuration, or write what is no configuration at all, and check it."""
    text = default_text()
    tree = yaml.safe_load(text)
    file = folder / "damaged.yaml"
    while True:
        match chance.randrange(6):
            case 0:
                data = damaged_bytes(text.encode(), chance)
            case 1:
                data = damaged_lines(text, chance, separators=" :#{,").encode("utf-8", "backslashreplace")
            case 2:
                data = (chance.choice(_WORDS) + damaged_lines(text, chance)).encode("utf-8", "backslashreplace")
            case 3:
                data = chance.choice(_WORDS).encode()
            case 4:
                section = chance.choice([key for key, value in tree.items() if isinstance(value, dict)])
                tagged = f"!!{chance.choice(_TAGS)} {chance.choice(_SHORT)}"
                data = f"{section}: {{{chance.choice(list(tree[section]))}: {tagged}}}\n".encode()
            case _:
                data = damaged_json(tree, chance).encode()  # which is YAML
        file.write_bytes(data)
        yield Attempt(arguments=("--config", str(file), "--check-config"), codes=(FINE, WRONG))
