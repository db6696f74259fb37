"""Record stacks of real processes, with the unwind rows they need and what elfutils makes of them: data/stacks.npz.

    .venv/bin/python tests/support/record_stacks.py

For maintainers, when the rows' format changes; needs root, libdw-dev, openssl and python3. test_walk_host.py uses it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.probes.kernel.loader import map_sizes
from specmine.probes.kernel.maps import map_array
from specmine.probes.kernel.structs import LAYOUT, RANGE_ROWS
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.stackdump import DUMP, Dumper

TARGET = Path(__file__).parent / "data" / "stacks.npz"
STACKS = 60
BYTES = 16384
"""Of each stack at most so much is kept; deeper ones are not taken."""
PYTHON = (
    "import json, re\nwhile True: json.loads(json.dumps([{'a': [1, 2, {'b': 3}]}] * 9)); re.findall('[a-z]+', 'a b')"
)
ODD = r"""
#include <alloca.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
static volatile long sum;
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 3000; i++) { sum += time(0); } }
static void handler(int n) { (void)n; for (int i = 0; i < 9; i++) spin(); }
__attribute__((noinline)) static void aligned(int n) {
	volatile char a[100] __attribute__((aligned(128))); char *b = alloca(n + 8);
	memset(b, n, n); a[n & 63] = b[0]; spin(); sum += a[n & 63];
}
__attribute__((noinline)) static void deeper(int n) { if (n) deeper(n - 1); else aligned(20); sum++; }
int main(void) {
	struct itimerval often = { { 0, 200 }, { 0, 200 } };
	signal(SIGALRM, handler); setitimer(ITIMER_REAL, &often, 0);
	for (int n = 0;; n = (n + 1) % 30) deeper(n);
}
"""


def recorded(command: list[str]) -> list[tuple[np.void, list[int], np.void, dict[str, Any]]]:
    """Return stacks of a program: (dump, libdw's addresses, layout, the arrays that it needs)."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    source = BpfSource([Selection(pid=child.pid)], SourceSettings(watch=("no such function",)))
    found: list[tuple[np.void, list[int], np.void, dict[str, Any]]] = []
    try:
        source.start()
        end = time.monotonic() + 20
        while source.parts.modules.busy or time.monotonic() < end - 18:
            source.poll(time.monotonic_ns())
            time.sleep(0.02)
        loaded = source.parts.loaded
        sizes = map_sizes(64 << 20, BUCKETS)
        layouts = map_array(loaded.maps["layouts"], sizes["layouts"], LAYOUT)
        arrays = {name: map_array(loaded.maps[name], sizes[name], "<u8").copy() for name in ("rows", "page_index")}
        dumper = Dumper(loaded)
        dumper.sample(199)
        assert dumper._oracle.stdin is not None and dumper._oracle.stdout is not None
        while len(found) < STACKS and time.monotonic() < end:
            time.sleep(0.05)
            for data in dumper._ring.read(64):
                record = np.frombuffer(data, DUMP, count=1)[0]
                dumper._oracle.stdin.write(data[: DUMP.itemsize])
                dumper._oracle.stdin.flush()
                word, *addresses = dumper._oracle.stdout.readline().decode().split()
                number = source.parts.programs.members[child.pid].layout
                if word == "end" and len(found) < STACKS:
                    found.append((record, [int(a, 16) for a in addresses], layouts[number].copy(), arrays))
        dumper.close()
    finally:
        source.close()
        child.kill()
        child.wait()
    return found


def needed(layout: np.void, addresses: list[int], arrays: dict[str, Any]) -> set[tuple[int, int]]:
    """Return the (index entry, first row .. last row) that looking the addresses up may touch."""
    entries = set()
    for address in addresses:
        for look in (address, address - 1):
            for each in layout["ranges"]:
                if int(each["start"]) <= look < int(each["end"]) and int(each["flags"]) & RANGE_ROWS:
                    place = look - int(each["start"]) + int(each["file_offset"])
                    entries.add(int(each["index"]) + (place >> 8))
    return {(entry, int(arrays["page_index"][entry])) for entry in entries}


def main() -> None:
    """Record and write."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("/tmp")
    (folder / "odd.c").write_text(ODD)
    subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", "-o", folder / "odd", folder / "odd.c"], check=True)
    # without the instructions for SHA: the code for AVX2 has the rules that are meant
    openssl = [
        "env",
        "OPENSSL_ia32cap=:~0x20000000",
        "/usr/bin/openssl",
        "speed",
        "-seconds",
        "60",
        "sha256",
        "aes-128-cbc",
    ]
    programs = {"openssl": openssl, "python3": ["/usr/bin/python3", "-c", PYTHON], "odd": [str(folder / "odd")]}
    out: dict[str, Any] = {}
    for name, command in programs.items():
        stacks = recorded(command)
        arrays, layout = stacks[0][3], stacks[0][2]
        rows, index = np.zeros_like(arrays["rows"]), np.zeros_like(arrays["page_index"])
        for _, addresses, own, _ in stacks:
            for entry, first in needed(own, addresses, arrays):
                last = int(arrays["page_index"][entry + 1])
                rows[first : last + 1] = arrays["rows"][first : last + 1]
                index[entry : entry + 2] = arrays["page_index"][entry : entry + 2]
        out[f"{name}.rows"] = rows[: int(np.flatnonzero(rows)[-1]) + 1]
        out[f"{name}.index"] = index[: int(np.flatnonzero(index)[-1]) + 2]
        out[f"{name}.layout"] = np.array([layout])
        usable = [s for s in stacks if s[2] == layout]
        memory, heads, truth = [], [], []
        for record, addresses, _, _ in usable:
            sp = int(record["regs"][7])
            whole = record["stack"][sp - int(record["base"]) - 128 :][:BYTES]
            memory.append(np.pad(whole, (0, BYTES - len(whole))))
            heads.append((int(record["regs"][16]), sp, int(record["regs"][6]), sp - 128))
            truth.append(np.pad(np.array(addresses, np.uint64), (0, 64 - len(addresses))))
        out[f"{name}.memory"], out[f"{name}.heads"] = np.array(memory), np.array(heads, np.uint64)
        out[f"{name}.truth"] = np.array(truth)
        print(name, len(usable), "stacks,", len({t.tobytes() for t in truth}), "different")
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(TARGET, **out)
    print(TARGET, TARGET.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
