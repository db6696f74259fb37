"""Damaged ELF files for the reader: none may crash it, hang it, or cost it more than bounded memory.

    .venv/bin/python -m tests.support.fuzz.elf --files 10000 [--seed 1]

Files of several kinds (C, C++, .debug_frame, symbols in .gnu_debugdata, compressed sections, a library of the system)
are changed where structures are: headers, call frame information, symbol tables, notes, compressed data. Each is asked
everything that the reader can be asked, once with a separate debug file that is damaged too. A file that ended the
child, or took it more than ``SLOW_S``, is written to the folder named by ``--keep``.
"""

from __future__ import annotations

import argparse
import lzma
import os
import random
import select
import struct
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from specmine.model.errors import InputError
from specmine.probes.elf.client import Reader
from specmine.probes.elf.facts import BinaryFacts, FunctionFacts, RowTable
from specmine.probes.elf.protocol import Answer
from tests.support.binary_samples import C_SOURCE, CXX_SOURCE, LIBRARIES, changed, compiled

SLOW_S = 5.0
"""CPU limit of the child is 15 s; a file this slow is worth a look."""
_TELLING = (
    ".eh_frame",
    ".debug_frame",
    ".symtab",
    ".dynsym",
    ".strtab",
    ".gnu_debugdata",
    ".note",
    ".dynamic",
    ".text",
)
_EDGES = (0, 1, 0x3F, 0x7F, 0x80, 0xFF)
_Question = tuple[str, dict[str, object]]


@dataclass
class Result:
    """What a run found."""

    files: int = 0
    children: set[int] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    peak_bytes: int = 0
    """Resident memory of the child at most, of the maps of files too."""
    faults: list[str] = field(default_factory=list)
    """Files that broke a rule, by what they broke."""


def samples(folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Return files to damage, each with its separate debug file, b'' for none."""
    c = compiled(folder, "c", C_SOURCE, "-O2", "-Wl,--build-id")
    debug = changed(c, folder / "c.debug", "--only-keep-debug")
    bare = changed(c, folder / "bare", "--strip-all", f"--add-gnu-debuglink={debug}")
    packed = folder / "packed"
    packed.write_bytes(lzma.compress(debug.read_bytes()))
    mini = changed(bare, folder / "mini", "--add-section", f".gnu_debugdata={packed}")
    frames = ("-O2", "-g", "-gz=zlib", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    found = {
        "c": (c, None),
        "c++": (compiled(folder, "cxx", CXX_SOURCE, "-O2", compiler="g++"), None),
        "debug link": (bare, debug),
        "gnu_debugdata": (mini, None),
        "debug_frame": (compiled(folder, "frames", C_SOURCE, *frames), None),
        "library": ((LIBRARIES / "libz.so.1").resolve(), None),
    }
    return {name: (path.read_bytes(), other.read_bytes() if other else b"") for name, (path, other) in found.items()}


def places(data: bytes) -> list[range]:
    """Return where structures are: headers, their tables, and the sections that are read."""
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phnum, _, shnum, names = struct.unpack_from("<HHHH", data, 56)
    found = [range(64), range(phoff, phoff + 56 * phnum), range(shoff, shoff + 64 * shnum)]
    strings = struct.unpack_from("<Q", data, shoff + 64 * names + 24)[0]
    for number in range(shnum):
        name, _, _, _, offset, size = struct.unpack_from("<IIQQQQ", data, shoff + 64 * number)
        text = data[strings + name : data.index(b"\0", strings + name)].decode()
        if text.startswith(_TELLING) and size and offset + size <= len(data):
            found.append(range(offset, offset + size))
    return [each for each in found if len(each) and each.stop <= len(data)]


def damaged(data: bytes, where: list[range], chance: random.Random) -> bytes:
    """Return the file with some bytes changed, mostly where structures are; at times cut, filled or shifted."""
    new = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16, 64))):
        at = chance.choice(chance.choice(where)) if chance.random() < 0.9 else chance.randrange(len(new))
        if chance.random() < 0.2:  # a number of 4 or 8 bytes that is huge, or negative, or nearly right
            width = chance.choice((4, 8))
            value = chance.choice((0, 1, (1 << 8 * width) - 1, 1 << (8 * width - 1), chance.getrandbits(24)))
            new[at : at + width] = value.to_bytes(width, "little")
        else:
            new[at] = chance.choice((*_EDGES, chance.randrange(256)))
    del new[len(data) :]
    if chance.random() < 0.05:
        del new[chance.randrange(len(new)) :]
    if chance.random() < 0.05:
        at = chance.randrange(len(new) + 1)
        new[at : at + 512] = bytes([chance.choice((0, 0xFF))]) * 512
    if chance.random() < 0.05:
        at = chance.randrange(len(new) + 1)
        new[at:at] = chance.randbytes(chance.choice((1, 8, 64)))
    return bytes(new)


def run(files: int, seed: int, folder: Path, keep: Path | None = None) -> Result:
    """Feed damaged files to a reader."""
    result, chance = Result(), random.Random(f"specmine {seed}")
    whole = [(name, data, debug, places(data)) for name, (data, debug) in samples(folder).items()]
    with Reader(niceness=0) as reader:
        for number in range(files):
            name, data, debug, where = whole[number % len(whole)]
            file = damaged(data, where, chance)
            other = damaged(debug, [range(len(debug))], chance) if debug else b""
            begun = time.monotonic()
            said, broken = _asked(reader, file, other, name)
            took = time.monotonic() - begun
            result.files += 1
            result.slowest_s = max(result.slowest_s, took)
            result.answers.update(said)
            result.children.update(reader.pids())
            if took > SLOW_S:
                broken = broken or f"took {took:.1f} s"
            if broken:
                result.faults.append(f"{name} {number}: {broken}")
                if keep is not None:
                    (keep / f"{seed}-{number}").write_bytes(file)
            if number % 50 == 0 or number == files - 1:
                result.peak_bytes = max(result.peak_bytes, *(_peak(pid) for pid in reader.pids()), 0)
    return result


def _asked(reader: Reader, file: bytes, debug: bytes, name: str) -> tuple[list[str], str]:
    """Ask everything about one file; return the kinds of answers, and what was wrong ('' if nothing)."""
    fds = [os.memfd_create("damaged") for _ in range(2)]
    try:
        for fd, content in zip(fds, (file, debug), strict=True):
            os.write(fd, content)
        if debug:
            reader.accompany(fds[0], fds[1])
        asked: list[_Question] = [("facts", {}), ("rows", {}), ("find", {"globs": ["*"], "module": name})]
        answers = _answers(reader, fds[0], asked)
        functions = (
            [f.offset for f in answers[2] if isinstance(f, FunctionFacts)] if isinstance(answers[2], list) else []
        )
        if functions:
            kind: dict[str, object] = {"kernel_emulates_nops": True}
            more: list[_Question] = [
                ("functions_at", {"offsets": [o + 3 for o in functions], "module": name}),
                ("wrappers", {"offsets": functions, "module": name}),
                ("sites", {"offsets": functions, **kind}),
                ("return_sites", {"offsets": [o + 5 for o in functions], **kind}),
            ]
            answers += _answers(reader, fds[0], more)
        return [_kind(each) for each in answers], next(filter(None, map(_wrong, answers)), "")
    finally:
        reader.accompany(fds[0], -1)
        for fd in fds:
            os.close(fd)


def _answers(reader: Reader, fd: int, asked: list[_Question]) -> list[Answer]:
    numbers = [reader.request(op, fd, **arguments) for op, arguments in asked]
    found: dict[int, Answer] = {}
    while len(found) < len(numbers):
        select.select([reader], [], [], 60)
        found.update(reader.ready())
    return [found[number] for number in numbers]


def _kind(answer: Answer) -> str:
    if isinstance(answer, InputError):
        return "refused"
    return {BinaryFacts: "facts", RowTable: "rows"}.get(type(answer), "functions")


def _wrong(answer: Answer) -> str:
    """Return which rule an answer breaks: a refusal says why in words, not as an error of the parser."""
    text = str(answer) if isinstance(answer, InputError) else ""
    return text if "Error:" in text or "ended" in text or "makes no sense" in text or "too long" in text else ""


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 0


def main() -> int:
    """Run and print; 0 if no file broke a rule."""
    parser = argparse.ArgumentParser(description="Feed damaged ELF files to the reader.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the files that broke a rule")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="specmine-fuzz-") as folder:
        result = run(options.files, options.seed, Path(folder), options.keep)
    print(f"{result.files:,} files in {time.monotonic() - begun:.0f} s; answers: {dict(result.answers)}")
    print(f"children used: {len(result.children)}; slowest file: {result.slowest_s:.2f} s")
    print(f"resident memory of the child at most: {result.peak_bytes / 2**20:.0f} MB")
    print(f"files that broke a rule: {len(result.faults)}", *result.faults[:20], sep="\n")
    return 1 if result.faults or len(result.children) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
