"""How long does the page of a host with 5,000 functions take to its first byte, and how large is it?

    .venv/bin/python -m bench.page.first_byte [--functions 5000] [--requests 40]

`specmine web` serves a store: 5,000 functions in all states, two hours of windows of one of them. Each page is asked
for one request after the other. The documents are read anew every 3 s, in a thread of the same process; requests that
came meanwhile are in the figures. Times are from the request to the first byte of the answer, over an open connection.
Needs no root.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]

from specmine.store import Document, Writes, open_store  # noqa: E402
from tests.support.web_documents import sample, sample_windows  # noqa: E402


def main() -> int:
    """Print a row a page; 0 if every page kept the limits of 100 ms and 200 kB."""
    parser = argparse.ArgumentParser(description="Time to first byte and size of each page.")
    parser.add_argument("--functions", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-page-") as folder:
        store = Path(folder) / "s.db"
        name = fill(store, options.functions)
        Path(folder).chmod(0o755)
        store.chmod(0o644)
        failed = 0
        print("| page | first byte: median | p95 | longest | size |\n| --- | --- | --- | --- | --- |")
        with serving(store) as port:
            for page in ("/", "/functions", f"/function?name={quote(name)}", "/builds", "/hosts"):
                times, size = asked(port, page, options.requests)
                median, tail = statistics.median(times), statistics.quantiles(times, n=20)[-1]
                failed += tail >= 0.1 or size >= 200_000
                shown = page.partition("?")[0]
                print(f"| `{shown}` | {1e3 * median:.0f} ms | {1e3 * tail:.0f} ms | {1e3 * max(times):.0f} ms | "
                      f"{size / 1e3:.0f} kB |", flush=True)  # fmt: skip
    return 1 if failed else 0


def fill(path: Path, functions: int) -> str:
    """Write the store; return the name of the function that has windows."""
    documents = sample(copies=-(-functions // len(sample().functions)))
    first = documents.functions[0]
    now = datetime.now(UTC)
    with open_store(path) as store:
        sample_windows(store, str(first["key"]), now, 2.0)
        document = Document(name="specification", document=dict(documents.specification))
        store.write(Writes((document,)), round(now.timestamp() * 1e9))
    return str(first["function"])


@contextmanager
def serving(store: Path) -> Iterator[int]:
    """Run the page in a process of its own; yield its port."""
    command = [sys.executable, "-m", "specmine.cli", "web", "--store", str(store), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, cwd="/"
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r":(\d+)/", said)
        if found is None:
            raise RuntimeError(said)
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()


def asked(port: int, page: str, requests: int) -> tuple[list[float], int]:
    """Return the times to the first byte in s, and the largest answer in bytes; the first request is not counted."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times, size = [], 0
    for number in range(requests + 1):
        began = time.perf_counter()
        connection.request("GET", page)
        answer = connection.getresponse()
        took = time.perf_counter() - began
        size = max(size, len(answer.read()))
        if answer.status != 200:
            raise RuntimeError(f"{page}: {answer.status}")
        if number:
            times.append(took)
        time.sleep(0.25)
    return times, size


if __name__ == "__main__":
    sys.exit(main())
