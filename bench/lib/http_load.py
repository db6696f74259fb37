"""A bounded load of HTTP requests, with nothing but the standard library.

    python -m bench.lib.http_load 127.0.0.1:8080 127.0.0.1:8081 --seconds 60 --rate 1500 --clients 12

Each client asks one request per connection, at random times (exponential gaps) so that requests sometimes
meet and sometimes do not, and never more than its share of the rate. Ends after the seconds given or at
SIGTERM, and prints one line of JSON. ``--account FILE`` holds, each second, the requests answered and their seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REQUEST = b"GET /index.html HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
TIMEOUT_S = 5.0


@dataclass(slots=True)
class Counts:
    """What one client saw."""

    latencies_s: list[float] = field(default_factory=list)
    errors: int = 0


def ask(address: tuple[str, int]) -> bool:
    """Ask once; True if the answer has status 200 and came whole."""
    with socket.create_connection(address, TIMEOUT_S) as connection:
        connection.sendall(REQUEST)
        first = connection.recv(65536)
        while connection.recv(65536):
            pass
    return first.startswith(b"HTTP/1.1 200 ")


def client(
    addresses: list[tuple[str, int]], rate: Callable[[], float], end: threading.Event, counts: Counts, seed: int
) -> None:
    """Ask until the end, at most ``rate`` times a second on average."""
    chance = random.Random(seed)
    due = time.monotonic()
    while True:
        due = max(due + chance.expovariate(rate()), time.monotonic() - 1)  # after a stall no burst of its length
        if end.wait(max(0.0, due - time.monotonic())):
            return
        start = time.monotonic()
        try:
            good = ask(chance.choice(addresses))
        except OSError:
            good = False
        if good:
            counts.latencies_s.append(time.monotonic() - start)
        else:
            counts.errors += 1


def write_account(path: Path, everyone: Sequence[Counts]) -> None:
    """Write how many requests were answered, and their seconds."""
    answered = [len(counts.latencies_s) for counts in everyone]
    seconds = sum(sum(counts.latencies_s[:number]) for counts, number in zip(everyone, answered, strict=True))
    path.with_suffix(".new").write_text(f"{sum(answered)} {seconds}")
    path.with_suffix(".new").replace(path)


def read_account(path: Path) -> tuple[float, float]:
    """Return the requests answered so far, and their seconds."""
    requests, seconds = path.read_text().split()
    return float(requests), float(seconds)


class Rate:
    """The rate that is wanted: a constant, or what a file says now."""

    def __init__(self, rate: float, path: Path | None) -> None:
        """Read it for the first time."""
        self._rate, self._path, self._read = rate, path, 0.0

    def now(self) -> float:
        """Return it; the file is read once a second."""
        if self._path is not None and time.monotonic() - self._read > 1:
            self._rate, self._read = float(self._path.read_text()), time.monotonic()
        return self._rate


def address(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> int:
    """Run the load; 0 if some request was answered."""
    parser = argparse.ArgumentParser(description="A bounded load of HTTP requests.")
    parser.add_argument("addresses", nargs="+", type=address, metavar="HOST:PORT")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=1000, help="requests a second, all clients together")
    parser.add_argument("--rate-in", type=Path, help="a file that holds the rate, read again and again")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--account", type=Path, help="a file for what was answered so far")
    options = parser.parse_args()

    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    everyone = [Counts() for _ in range(options.clients)]
    rate = Rate(options.rate, options.rate_in)

    def share() -> float:
        return rate.now() / float(options.clients)

    threads = [
        threading.Thread(target=client, args=(options.addresses, share, end, counts, seed), daemon=True)
        for seed, counts in enumerate(everyone)
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + options.seconds
    while not end.wait(min(1.0, max(0.0, until - time.monotonic()))) and time.monotonic() < until:
        if options.account is not None:
            write_account(options.account, everyone)
    end.set()
    for thread in threads:
        thread.join(2 * TIMEOUT_S)
    latencies = [s for counts in everyone for s in counts.latencies_s]
    errors = sum(counts.errors for counts in everyone)
    median_ms = round(statistics.median(latencies) * 1000, 3) if latencies else None
    print(json.dumps({"requests": len(latencies), "errors": errors, "median_ms": median_ms}))
    return 0 if latencies else 1


if __name__ == "__main__":
    raise SystemExit(main())
