"""Damaged recordings of a mining, replayed."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

from specmine.daemon.config.settings import Settings
from specmine.daemon.loop import run
from specmine.daemon.replay import recorder
from specmine.daemon.worker.process import InlineWorker
from tests.support.fuzz.attempt import FINE, TOO_LITTLE, WRONG, Attempt
from tests.support.fuzz.mutation import damaged_bytes, damaged_json_text
from tests.support.planted import paper_program, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

_LIVED_S = 14


def attempts(folder: Path, chance: random.Random) -> Iterator[Attempt]:
    """Record a simulated program, damage the recording, and replay its beginning."""
    clock = FakeClock()
    source = SimulatedSource([*paper_program(), unimodal()], clock)
    settings = Settings(window_ns=SECOND // 2, limit_ns=10 * SECOND)
    recording, listener = recorder(folder / "whole.jsonl", "0")
    with recording:
        run(source, settings, clock, InlineWorker(), listeners=[listener], deadline_ns=_LIVED_S * SECOND)
    lines = (folder / "whole.jsonl").read_text().splitlines()
    while True:
        some = lines[: chance.choice((3, 10, 30, len(lines)))]
        if chance.random() < 0.7:
            for _ in range(chance.choice((1, 1, 2, 5))):
                at = chance.randrange(len(some))
                some[at] = damaged_json_text(some[at], chance)
        data = "\n".join(some).encode() + b"\n"
        if chance.random() < 0.4:
            data = damaged_bytes(data, chance)
        name = "damaged.jsonl"
        if chance.random() < 0.2:
            name, data = "damaged.jsonl.gz", gzip.compress(data, 1)
            data = damaged_bytes(data, chance) if chance.random() < 0.5 else data
        (folder / name).write_bytes(data)
        form = ("--format", chance.choice(("text", "json")))
        yield Attempt(arguments=("replay", str(folder / name), *form), codes=(FINE, WRONG, TOO_LITTLE))
