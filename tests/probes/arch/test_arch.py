"""What depends on the processor is in the folder of the machine and nowhere else in the product."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

FOLDERS = ("analysis", "cli", "daemon", "experiments", "mining", "model", "probes", "store")
WORDS = {
    "registers": r"\b[re](?:[abcd]x|[sd]i|[sb]p|ip)\b|\b(?:orig_ax|rflags|x86_\w+|CONFIG_X86\w*)\b",
    "fields of pt_regs": r"\b(?:regs|ctx)\b[^;\n]{0,12}(?:->|\.)(?:r?[abcd]x|[sd]i|[sb]p|ip|cs|ss|flags|r\d+)\b",
    "disassembler": r"\bcapstone\b|\bCS_ARCH\w*|\bX86_\w+",
    "numbers of machines": r"\bEM_[A-Z]\w*|\bR_(?:X86_64|AARCH64)_\w+",
    "numbers of system calls": r"\b__NR_\w+|\bsyscall\(\s*\d|\b_?SYS_[A-Z_]+\b[^=\n]*=\s*\d|\b\w*SYSCALL\w* = \d",
    "opcodes": r"\b0x(?:cc|e8|e9|eb|c3|c2|0f05)\b",
    "names of machines": r"""["']x86[-_]64["']|["']aarch64["']""",
}


def sources() -> list[str]:
    """Return the product's files outside the folder of the machines."""
    found = (path for folder in FOLDERS for kind in ("*.py", "*.c", "*.h") for path in (ROOT / folder).rglob(kind))
    paths = sorted(str(path.relative_to(ROOT)) for path in found)
    return [path for path in paths if not path.startswith("probes/arch/")]


@pytest.mark.parametrize("kind", WORDS)
def test_no_other_file_knows(kind: str) -> None:
    """Registers, instructions, numbers of system calls and the like stand in probes/arch/."""
    word = re.compile(WORDS[kind], re.IGNORECASE if kind == "opcodes" else 0)
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in sources()
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1)
        if word.search(line)
    ]
    assert not found


def test_the_words_are_those_of_the_machine() -> None:
    """The search itself works: the folder of a machine has these words."""
    folder = ROOT / "probes" / "arch" / "x86_64"
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in (".py", ".h"))
    for kind in ("registers", "fields of pt_regs", "disassembler", "opcodes", "names of machines"):
        assert re.search(WORDS[kind], text, re.IGNORECASE), kind
