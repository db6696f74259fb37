"""The load of docs/tutorial.md: a client of redis that has a list sorted, some 400 times a second.

usage: load.py [PORT] [ITEMS]; ITEMS is the length of the list that is sorted, 300 by default. Standard library only.
"""

from __future__ import annotations

import socket
import sys
import time

RATE = 400.0
"""Requests a second."""


def encoded(*words: object) -> bytes:
    """Return a command as redis reads it."""
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def main() -> None:
    """Run until the server ends or ^C."""
    given = [int(each) for each in sys.argv[1:]]
    port, items = [*given, 6379, 300][:2] if len(given) != 1 else (given[0], 300)
    with socket.create_connection(("127.0.0.1", port)) as server:

        def ask(*words: object) -> None:
            server.sendall(encoded(*words))
            answer = server.recv(1 << 20)
            if not answer:
                raise SystemExit(0)
            time.sleep(1 / RATE)

        ask("DEL", "queue")
        for item in range(items):
            server.sendall(encoded("RPUSH", "queue", item * 7919 % 10007))
            server.recv(1 << 16)
        while True:
            ask("SORT", "queue", "LIMIT", 0, 1)


if __name__ == "__main__":
    main()
