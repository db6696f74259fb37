"""Damaged recordings of durations, in all formats that ``analyze`` and ``compare`` read."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

from tests.support.fuzz.attempt import FINE, TOO_LITTLE, VIOLATED, WRONG, Attempt
from tests.support.fuzz.mutation import damaged_bytes, damaged_json, damaged_lines
from tests.support.paths import ROOT
from tests.support.recordings import calls, csv_text

_SAMPLES = ROOT / "tests" / "analysis" / "importers" / "data"


def attempts(folder: Path, chance: random.Random) -> Iterator[Attempt]:
    """Damage a sample of some format and read it."""
    samples = _samples()
    while True:
        name = chance.choice(sorted(samples))
        data = _damaged(samples[name], chance)
        file = folder / f"damaged-{name}"
        if chance.random() < 0.1:
            data = gzip.compress(data, 1)
            data = damaged_bytes(data, chance) if chance.random() < 0.5 else data
        file.write_bytes(data)
        form = ("--format", chance.choice(("text", "json")))
        skip = ("--skip-bad",) if chance.random() < 0.5 else ()
        if name == "lifetimes.csv":
            words = ("compare", str(file), "--base", "old", "--new", "fresh", *skip, *form)
        else:
            said = ("--from", name.partition(".")[0]) if chance.random() < 0.5 else ()
            words = ("analyze", str(file), *said, *skip, *form)
        yield Attempt(arguments=words, codes=(FINE, VIOLATED, WRONG, TOO_LITTLE))


def _samples() -> dict[str, str]:
    """Return the text of a sample of each format, by a name that begins with what ``--from`` calls it."""
    some = calls(2400)
    found = {path.name: path.read_text() for path in _SAMPLES.iterdir()}
    lines = [
        {"function": "z", "path": path, "duration_ns": duration, "time_ns": at * 10**7}
        for at, (path, duration) in enumerate(some)
    ]
    found["ndjson.ndjson"] = "\n".join(map(json.dumps, lines)) + "\n"
    found["csv.csv"] = csv_text(some)
    rows = [f"{'old' if at % 2 else 'fresh'},{at % 12},{duration},z" for at, (_, duration) in enumerate(some)]
    found["lifetimes.csv"] = "\n".join(["build,lifetime,duration_ns,function", *rows]) + "\n"
    found["otlp.json"] = json.dumps(_spans(some[:100]))
    return found


def _spans(some: list[tuple[str, int]]) -> object:
    spans = []
    for at, (path, duration) in enumerate(some):
        above = ""
        for depth, name in enumerate(path.split(";")):
            own, start = f"{at * 16 + depth + 1:016x}", at * 10**6 + depth
            ends = str(start + duration - 2 * depth)
            spans.append(
                {"traceId": f"{at:032x}", "spanId": own, "parentSpanId": above, "name": name,
                 "startTimeUnixNano": str(start), "endTimeUnixNano": ends}
            )  # fmt: skip
            above = own
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _damaged(text: str, chance: random.Random) -> bytes:
    kind = chance.randrange(3)
    if kind == 0:
        return damaged_bytes(text.encode(), chance)
    if kind == 1 or text[:1] not in "{[":
        return damaged_lines(text, chance).encode("utf-8", "backslashreplace")
    try:
        return damaged_json(json.loads(text), chance).encode()
    except ValueError:  # an object a line, or one whose end was never written
        lines = text.splitlines()
        at = chance.randrange(len(lines))
        lines[at] = damaged_json(json.loads(lines[at].strip("[],") or "{}"), chance)
        return "\n".join(lines).encode()
