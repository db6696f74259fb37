"""Damaged specifications and formulas: what ``check`` and ``merge`` read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from tests.support.fuzz.attempt import FINE, TOO_LITTLE, VIOLATED, WRONG, Attempt
from tests.support.fuzz.mutation import damaged_bytes, damaged_json, damaged_lines
from tests.support.paths import ROOT

_SAMPLE = ROOT / "tests" / "support" / "data" / "cli" / "app.json"
_FORMULAS = """# what must hold
p99(z) < 1 ms
z@new <= 1.1 * z@base
share(z, > 40 us | b->c) <= 0.1
rate(z) >= 1/s and not (p90(cpu(z)) < 1 s or `a b`(libc.so.6) < 3 us)
"""
_DEEP = (
    "(" * 5000 + "z < 1 s" + ")" * 5000,
    "not " * 20_000 + "z < 1 s",
    "z < 1 s and " * 20_000 + "z < 1 s",
    "p" + "9" * 5000 + "(z) < 1 s",
    "z < 1e999999 s",
    "z <= " + "1 + " * 3000 + "1 s",
)


def attempts(folder: Path, chance: random.Random) -> Iterator[Attempt]:
    """Damage a specification or a file of formulas; check the one against the other, or merge."""
    sample = json.loads(_SAMPLE.read_text())
    whole = folder / "whole.json"
    whole.write_text(json.dumps(sample))
    specification, formulas = folder / "damaged.json", folder / "damaged.spl"
    while True:
        data = damaged_json(sample, chance).encode()
        specification.write_bytes(damaged_bytes(data, chance) if chance.random() < 0.2 else data)
        text = chance.choice(_DEEP) if chance.random() < 0.1 else damaged_lines(_FORMULAS, chance, " ()<=*@")
        formulas.write_bytes(text.encode("utf-8", "backslashreplace"))
        form = ("--format", chance.choice(("text", "json")))
        words = chance.choice(
            [
                ("check", str(specification), "--against", str(whole), *form),
                ("check", str(whole), "--against", str(specification), *form),
                ("check", str(formulas), "--against", str(whole), *form),
                ("merge", str(specification), str(whole), *form),
            ]
        )
        yield Attempt(arguments=words, codes=(FINE, VIOLATED, WRONG, TOO_LITTLE))
