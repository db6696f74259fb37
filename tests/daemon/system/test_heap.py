"""The daemon's threads share one heap, and what is free in it goes back to the host."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, os, sys, threading
from specmine.daemon.system.heap import TRIM_NS, HeapTrim, settle_heap

if len(sys.argv) > 1:
    settle_heap()
ready, end = threading.Barrier(9), threading.Event()

def run():
    held = [bytearray(20_000) for _ in range(20)]
    ready.wait()
    end.wait()

for _ in range(8):
    threading.Thread(target=run, daemon=True).start()
ready.wait()

read, write = os.pipe()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fdopen(write, b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
print(os.read(read, 1 << 16).decode().count("<heap nr="))

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

blocks = [bytearray(20_000) for _ in range(2_000)]
kept = blocks[::20]
del blocks
trim, before = HeapTrim(), resident()
trim.turn(1)
assert resident() > before - 5_000_000
trim.turn(1 + TRIM_NS)
print(before - resident())
end.set()
"""


def heaps(*arguments: str) -> tuple[int, int]:
    """Return how many heaps eight threads use, and the bytes that a trim gives back of 38 MB that are free."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split())
    return first, second


def test_threads_share_one_heap() -> None:
    """Each scrape is a thread: what one of them frees serves the next."""
    try:
        before, _ = heaps()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no glibc here: {error.stderr[-200:]}")
    after, given_back = heaps("settled")
    assert (before > 1, after) == (True, 1)
    assert given_back > 30_000_000
