"""A bounded load of all the kinds of requests to the site of site.py.

    python -m bench.truth.varied_site.load 127.0.0.1:8080 127.0.0.1:8081 --seconds 60 --rate 300 --clients 4 --seed 1

Prints one line of JSON: how many answers of each status.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import threading
import time
from collections import Counter
from contextlib import suppress

from bench.truth.varied_site.site import REQUESTS

TIMEOUT_S = 10.0


def ask(address: tuple[str, int], method: str, path: str, headers: tuple[str, ...], body: int) -> str:
    """Ask once; return the status of the answer."""
    length = (
        () if any(each.startswith("Content-Length") for each in headers) or not body else (f"Content-Length: {body}",)
    )
    head = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers, *length])
    with socket.create_connection(address, TIMEOUT_S) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was sent whole
            connection.sendall(head.encode() + b"\r\n\r\n" + b"x" * body)
        first = connection.recv(65536)
        while connection.recv(65536):
            pass
    return first[9:12].decode("ascii", "replace")


def client(addresses: list[tuple[str, int]], rate: float, end: float, found: Counter[str], seed: int) -> None:
    """Ask at random times until the end."""
    chance = random.Random(seed)
    weights, kinds = [weight for weight, _ in REQUESTS], [kind for _, kind in REQUESTS]
    due = time.monotonic()
    while True:
        due = max(due + chance.expovariate(rate), time.monotonic() - 1)
        if due >= end:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            found[ask(chance.choice(addresses), *chance.choices(kinds, weights)[0])] += 1
        except OSError:
            found["error"] += 1


def main() -> int:
    """Run the load."""
    parser = argparse.ArgumentParser(description="A varied load of HTTP requests.")
    parser.add_argument("addresses", nargs="+")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=300)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    addresses = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in options.addresses)]
    end = time.monotonic() + options.seconds
    found: list[Counter[str]] = [Counter() for _ in range(options.clients)]
    threads = [
        threading.Thread(
            target=client, args=(addresses, options.rate / options.clients, end, counts, 100 * options.seed + n)
        )
        for n, counts in enumerate(found)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    print(json.dumps(dict(sorted(sum(found, Counter()).items()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
