"""The stack walk, compiled for the host with sanitizers, finds on recorded stacks what elfutils found there."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from specmine.probes.arch.machine import machine
from specmine.probes.kernel.structs import LAYOUT, WALKS
from tests.support.paths import SUPPORT

HERE = SUPPORT
HEADERS = HERE.parents[1] / "probes" / "bpf"
RECORDING = HERE / "data" / "stacks.npz"
NUMBER = {name: number for number, name in WALKS.items()}


@pytest.fixture(scope="module")
def walker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The walk as a program of its own."""
    target = tmp_path_factory.mktemp("walk") / "walk"
    flags = ["-O1", "-g", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-fsanitize=address,undefined"]
    flags += ["-fno-sanitize=alignment", "-fno-sanitize-recover=all"]
    subprocess.run(
        ["gcc", *flags, f"-I{HEADERS}", f"-I{machine().bpf}", "-o", target, HERE / "walk_host.c"], check=True
    )
    return target


def walked(walker: Path, rows: bytes, index: bytes, layouts: bytes, stacks: list[bytes]) -> list[tuple[int, list[int]]]:
    """Return (outcome, addresses) of each stack."""
    given = b"".join(
        struct.pack("<Q", len(array) // size) + array
        for array, size in ((rows, 8), (index, 8), (layouts, LAYOUT.itemsize))
    )
    done = subprocess.run([walker], input=given + b"".join(stacks), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    return [(int(outcome), [int(a, 16) for a in addresses]) for outcome, *addresses in lines]


def stacks_of(name: str) -> tuple[list[bytes], list[list[int]]]:
    """Return the recorded stacks of a program, and the addresses that elfutils found."""
    with np.load(RECORDING) as data:
        heads, memory, truth = data[f"{name}.heads"], data[f"{name}.memory"], data[f"{name}.truth"]
    stacks = []
    for (ip, sp, bp, base), content in zip(heads.tolist(), memory, strict=True):
        stacks.append(struct.pack("<QQQIIQQ", ip, sp, bp, 1, 1, base, content.nbytes) + content.tobytes())
    return stacks, [[int(a) for a in row if a] for row in truth]


def arrays_of(name: str) -> tuple[bytes, bytes, bytes]:
    """Return the recorded rows, page index and layouts (number 1 is the process's)."""
    with np.load(RECORDING) as data:
        layout = data[f"{name}.layout"]
        return (
            data[f"{name}.rows"].tobytes(),
            data[f"{name}.index"].tobytes(),
            bytes(LAYOUT.itemsize) + layout.tobytes(),
        )


@pytest.mark.parametrize("name", ["openssl", "python3", "odd"])
def test_recorded_stacks(walker: Path, name: str) -> None:
    """Each address is elfutils': in OpenSSL's assembler, an interpreter, signal handlers and realigned frames."""
    stacks, truth = stacks_of(name)
    assert len(stacks) >= 50
    found = walked(walker, *arrays_of(name), stacks)
    assert [addresses for _, addresses in found] == truth
    assert {outcome for outcome, _ in found} == {NUMBER["complete"]}


def test_damaged_stacks_end_the_walk(walker: Path) -> None:
    """Whatever stands on a stack, a walk ends within its limit, reads only what is there, and names how it ended."""
    stacks, _ = stacks_of("odd")
    chance = np.random.default_rng(1)
    damaged = []
    for stack in stacks * 4:
        content = np.frombuffer(stack, np.uint8).copy()
        words = content[48:].view(np.uint64)
        for _ in range(8):
            words[chance.integers(16, 200)] = chance.choice(words[:400])
        damaged.append(content.tobytes())
    found = walked(walker, *arrays_of("odd"), damaged)
    assert len(found) == len(damaged)
    assert all(outcome in WALKS and 0 < len(addresses) <= 64 for outcome, addresses in found)
    assert len({outcome for outcome, _ in found}) > 2


def test_damaged_rows_end_the_walk(walker: Path) -> None:
    """Rows that mean nothing lead nowhere, and no search runs out of its arrays."""
    stacks, _ = stacks_of("odd")
    rows, index, layouts = arrays_of("odd")
    chance = np.random.default_rng(2)
    for part in range(2):
        content = np.frombuffer((rows, index)[part], np.uint64).copy()
        used = np.flatnonzero(content)
        content[chance.choice(used, len(used) // 2)] = chance.integers(0, 1 << 62, len(used) // 2, dtype=np.uint64)
        given = (content.tobytes(), index) if part == 0 else (rows, content.tobytes())
        found = walked(walker, *given, layouts, stacks)
        assert len(found) == len(stacks)
        assert all(outcome in WALKS for outcome, _ in found)
