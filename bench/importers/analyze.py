"""How fast, and in how much memory, are recorded durations mined?

    .venv/bin/python -m bench.importers.analyze [--records 10000000] [--folder DIR] [--formats csv,quoted,ndjson,...]

It writes recordings of the same calls in several formats, and runs ``specmine analyze`` on each, start and mining
included. It compares that with what anybody would write first: Python's csv module, with the durations gathered by
function and path. Both run one after the other on the same file. ``--generate csv`` only writes a recording to standard
output. Needs no root.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from bench.lib.tools.child_usage import child_usage

SPECMINE = Path(sys.executable).parent / "specmine"
CHUNK = 1 << 16
FUNCTIONS = ("ap_process_request", "apr_brigade_write(apr_bucket_brigade*, char const*, unsigned long)", "z")
CALLERS = ("main;run;accept;read", "main;run;accept;write", "main;run;close", "main;signal;close;flush")

_BASELINE = """
import csv, sys
from collections import defaultdict
groups = defaultdict(list)
with open(sys.argv[1], newline="") as file:
    rows = csv.reader(file)
    header = next(rows)
    function, path, duration = (header.index(name) for name in ("function", "path", "duration_ns"))
    for row in rows:
        groups[row[function], row[path]].append(float(row[duration]))
print(len(groups), sum(map(len, groups.values())))
"""

Rows = Iterator[list[tuple[str, str, int, int]]]


def calls(records: int) -> Rows:
    """Yield function, path, duration and time of calls: two classes, one of them rarer over some callers."""
    random = np.random.default_rng(1)
    done = 0
    while done < records:
        number = min(CHUNK, records - done)
        functions, callers = random.integers(0, len(FUNCTIONS), number), random.integers(0, len(CALLERS), number)
        slow = random.random(number) < np.array([0.1, 0.1, 0.5, 0.5])[callers]
        durations = (random.lognormal(np.log(2e4), 0.15, number) * np.where(slow, 4, 1) * (1 + functions)).astype(int)
        yield [
            (FUNCTIONS[f], f"{CALLERS[c]};{FUNCTIONS[f]}", d, (done + at) * 6000)
            for at, (f, c, d) in enumerate(zip(functions.tolist(), callers.tolist(), durations.tolist(), strict=True))
        ]
        done += number


def write_csv(rows: Rows, file: IO[str]) -> None:
    """Write CSV as most would: names that need quotes have them."""
    file.write("function,path,duration_ns\n")
    for some in rows:
        file.write("".join(f"{_quoted(f)},{_quoted(p)},{d}\n" for f, p, d, _ in some))


def write_timed(rows: Rows, file: IO[str]) -> None:
    """Write CSV with times."""
    file.write("function,path,duration_ns,time_ns\n")
    for some in rows:
        file.write("".join(f"{_quoted(f)},{_quoted(p)},{d},{t}\n" for f, p, d, t in some))


def write_shuffled(rows: Rows, file: IO[str]) -> None:
    """Write CSV with the numbers first, which goes through the csv module."""
    file.write("time_ns,duration_ns,function,path\n")
    for some in rows:
        file.write("".join(f"{t},{d},{_quoted(f)},{_quoted(p)}\n" for f, p, d, t in some))


def write_ndjson(rows: Rows, file: IO[str]) -> None:
    """Write NDJSON."""
    for some in rows:
        file.write("".join(f'{{"function": "{f}", "path": "{p}", "duration_ns": {d}}}\n' for f, p, d, _ in some))


def write_chrome(rows: Rows, file: IO[str]) -> None:
    """Write what ``uftrace dump --chrome`` does; the callers are entered and left around each call."""
    file.write('{"traceEvents":[\n')
    for some in rows:
        for _, path, duration, at in some:
            frames = path.split(";")
            start, end = at * 100, at * 100 + len(frames) + duration
            events = [("B", start + n, each) for n, each in enumerate(frames)]
            events += [("E", end + n, each) for n, each in enumerate(frames[::-1])]
            file.write(
                "".join(f'{{"ts":{t / 1000:.3f},"ph":"{ph}","pid":1,"name":"{each}"}},\n' for ph, t, each in events)
            )
    file.write('{"ts":0,"ph":"M","pid":1,"name":"process_name"}\n]}\n')


def write_spans(rows: Rows, file: IO[str]) -> None:
    """Write OTLP JSON: a span for each frame, ten calls an export."""
    number = 0
    for some in rows:
        for start in range(0, len(some), 10):
            spans = []
            for _, path, duration, at in some[start : start + 10]:
                number += 1
                for depth, name in enumerate(path.split(";")):
                    spans.append({"traceId": f"{number:032x}", "spanId": f"{depth + 1:016x}", "name": name,
                                  "parentSpanId": f"{depth:016x}", "startTimeUnixNano": str(10**18 + at),
                                  "endTimeUnixNano": str(10**18 + at + duration)})  # fmt: skip
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n")


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text


FORMATS: dict[str, tuple[Callable[[Rows, IO[str]], None], int]] = {
    "csv": (write_csv, 1),
    "csv-times": (write_timed, 1),
    "csv-other-order": (write_shuffled, 1),
    "ndjson": (write_ndjson, 1),
    "uftrace": (write_chrome, 10),
    "otlp": (write_spans, 10),
}
"""Each with by how much fewer calls are written: a call with its callers is several events."""


def main() -> int:
    """Measure and print a table; 0 if analyze found a model in every recording."""
    parser = argparse.ArgumentParser(description="Speed and memory of specmine analyze.")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the recordings are written; by default a temporary folder")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--generate", choices=FORMATS, help="write this recording to standard output and end")
    options = parser.parse_args()
    if options.generate:
        FORMATS[options.generate][0](calls(options.records), sys.stdout)
        return 0
    good = True
    print("| recording | calls | MB | csv module, grouped | analyze | ratio | memory of analyze | found |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="specmine-bench-", dir=options.folder) as folder:
        for name in options.formats.split(","):
            good &= measured(Path(folder) / name, name, options.records)
    return 0 if good else 1


def measured(file: Path, name: str, records: int) -> bool:
    """Write a recording, measure, print a row of the table."""
    write, fewer = FORMATS[name]
    with file.open("w") as stream:
        write(calls(records // fewer), stream)
    size = file.stat().st_size
    base_s = None
    if name.startswith("csv"):
        base_s = child_usage([sys.executable, "-c", _BASELINE, file], stderr=subprocess.DEVNULL).seconds
    used = child_usage([SPECMINE, "analyze", file, "--format", "json"], stderr=subprocess.DEVNULL)
    seconds, out = used.seconds, used.out
    functions = json.loads(out)["functions"]
    read = json.loads(out)["collection"]["source"]["records"]
    found = ", ".join(
        f"{sum(each['state'] == state for each in functions)} {state}" for state in ("explained", "single")
    )
    speed = (
        [f"{base_s:.1f} s", f"{seconds:.1f} s", f"{base_s / seconds:.2f}"] if base_s else ["-", f"{seconds:.1f} s", "-"]
    )
    print(
        f"| {name} | {read:,} | {size / 1e6:.0f} | {' | '.join(speed)} | {used.peak_mb:.0f} MB | {found} |", flush=True
    )
    file.unlink()
    return any(each["state"] == "explained" for each in functions)


if __name__ == "__main__":
    raise SystemExit(main())
