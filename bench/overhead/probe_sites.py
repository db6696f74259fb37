"""What does a call cost with the probe where specmine puts it, and at the first byte, by how its function begins?

    .venv/bin/python -m bench.overhead.probe_sites [--rounds 15] [--calls 20000]

One program holds functions that begin in different ways and do the same work. In every round each is called with its
probe on, in random order. The price is what a call takes then, less what it takes without a probe; both are minima of
all rounds. The bench prints prices and their ratio to the function that begins with push. It ends with 1 if a function
whose probe could be moved costs more than 1.1 times that. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from specmine.model.buckets import BUCKETS
from specmine.model.observation import Kind
from specmine.probes.elf.facts import Grade, Site
from specmine.probes.elf.parser.branches import find_branches
from specmine.probes.elf.parser.image import open_image
from specmine.probes.elf.parser.probe_sites import find_sites
from specmine.probes.elf.parser.symbols import function_table
from specmine.probes.elf.parser.unwind_rows import read_frames
from specmine.probes.kernel.links import Links
from specmine.probes.kernel.loader import load
from specmine.probes.kernel.maps import kernel_at_least, map_array
from specmine.probes.kernel.structs import MAX_SLOTS, SLOT

PROMISE = 1.1
FEWER = 10
"""A single-stepped probe is so much more expensive: so many times fewer calls are made."""
STARTS = {
    "push": "push %rbx; pop %rbx; ret",
    "endbr64, push": "endbr64; push %rbx; pop %rbx; ret",
    "mov, push": "mov %edi, %eax; push %rbx; pop %rbx; ret",
    "mov, test, js": "mov %edi, %eax; test %eax, %eax; js 1f; nop; 1: ret",
    "xor, cmp, jg": "xor %eax, %eax; cmp $3, %edi; jg 1f; nop; 1: ret",
    "nop of 5 bytes, push": ".byte 0x0f,0x1f,0x44,0,0; push %rbx; pop %rbx; ret",
    "sub rsp (no better site)": "sub $24, %rsp; add $24, %rsp; ret",
}
DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <time.h>
extern void (*const starts[])(int);
static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
int main(void)
{
	int which;
	long calls;
	while (scanf("%d %ld", &which, &calls) == 2) {
		uint64_t t = now();
		for (long i = 0; i < calls; i++)
			starts[which](7);
		printf("%f\n", (double)(now() - t) / calls);
		fflush(stdout);
	}
	return 0;
}
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One function with its probe at one place."""

    start: str
    number: int
    offset: int
    moved: bool
    stepped: bool


def main() -> int:
    """Measure; 0 if moved probes keep the promise."""
    parser = argparse.ArgumentParser(description="What a call costs by how its function begins.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.probe_sites: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        program = built(Path(folder))
        return report(*measure(program, places_of(program), options.rounds, options.calls))


def built(folder: Path) -> Path:
    """Compile the program."""
    text = [".text"]
    for number, body in enumerate(STARTS.values()):
        text += [".p2align 6", f".globl start_{number}", f".type start_{number},@function", f"start_{number}:"]
        text += [each.strip() for each in body.replace("1: ", "1:; ").split(";")]
        text += [f".size start_{number}, . - start_{number}"]
    table = "\n".join(f".quad start_{number}" for number in range(len(STARTS)))
    text += [".data", ".globl starts", "starts:", table, '.section .note.GNU-stack,"",@progbits']
    (folder / "starts.s").write_text("\n".join(text) + "\n")
    (folder / "driver.c").write_text(DRIVER)
    command = ["gcc", "-O2", "-no-pie", "-o", "starts", "driver.c", "starts.s"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "starts"


def places_of(program: Path) -> list[Place]:
    """Return where specmine probes each function, and its first byte where that is another place."""
    with program.open("rb") as file:
        image = open_image(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    frames, branches = read_frames(image), find_branches(image)
    table = function_table(image, frames, branches, program.name)
    at = [table.match([f"start_{number}"])[0].offset for number in range(len(STARTS))]
    emulates = kernel_at_least(6, 16)
    sites: list[Site] = find_sites(image, table, frames.rows, branches, at, kernel_emulates_nops=emulates)
    found = []
    for number, (start, site) in enumerate(zip(STARTS, sites, strict=True)):
        assert site.grade is not Grade.REFUSED, (start, site)
        moved = site.offset != site.function
        stepped = site.grade is Grade.STEPPED
        found.append(Place(start=start, number=number, offset=site.offset, moved=moved, stepped=stepped))
        if moved and "nop of 5" not in start:  # there the kernel would rewrite the program
            found.append(Place(start=start, number=number, offset=site.function, moved=False, stepped=True))
    return found


def measure(
    program: Path, places: list[Place], rounds: int, calls: int
) -> tuple[str, dict[Place, tuple[float, float]]]:
    """Return the kind of link, and for each place the least ns that a counted and a timed call took more."""
    loaded = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, sampling=False)
    map_array(loaded.maps["slots"], MAX_SLOTS, SLOT, writable=True)["limit"] = 1 << 62
    links, chance = Links(loaded), random.Random(0)
    least: dict[tuple[Place, Kind | None], float] = {}
    command = ["taskset", "-c", str((os.cpu_count() or 1) - 1), str(program)]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            with program.open("rb") as file:
                for _ in range(rounds):
                    jobs = [(place, kind) for place in places for kind in (None, Kind.COUNT, Kind.TIME)]
                    chance.shuffle(jobs)
                    for place, kind in jobs:
                        number = 0
                        if kind is not None:
                            number = links.attach(file.fileno(), [place.offset], [0], kind, child.pid)
                            wait_for(links, "made")
                        assert child.stdin is not None and child.stdout is not None
                        child.stdin.write(f"{place.number} {calls // FEWER if place.stepped and kind else calls}\n")
                        child.stdin.flush()
                        took = float(child.stdout.readline())
                        least[place, kind] = min(took, least.get((place, kind), took))
                        if number:
                            links.close(number)
                            wait_for(links, "closed")
            assert child.stdin is not None
            child.stdin.close()
    finally:
        links.shut()
        loaded.close()
    prices = {
        place: (least[place, Kind.COUNT] - least[place, None], least[place, Kind.TIME] - least[place, None])
        for place in places
    }
    return loaded.mode, prices


def wait_for(links: Links, what: str) -> None:
    """Wait until the holder reports it."""
    while all(each.what != what for each in links.news(5)):
        pass


def report(mode: str, prices: dict[Place, tuple[float, float]]) -> int:
    """Print the table; 0 if the promise is kept."""
    plain = next(price for place, price in prices.items() if place.start == "push")
    print(f"| the function begins with | probe at | counted, ns | ratio | timed ({mode}), ns | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    worst = 0.0
    for place, (counted, timed) in prices.items():
        where = "a later instruction" if place.moved else "its first byte"
        grade = "single-stepped" if place.stepped else "emulated"
        ratios = counted / plain[0], timed / plain[1]
        print(
            f"| {place.start} | {where}, {grade} | {counted:,.0f} | {ratios[0]:.2f} | {timed:,.0f} | {ratios[1]:.2f} |"
        )
        if place.moved:
            worst = max(worst, *ratios)
    kept = worst <= PROMISE
    print(f"\nMoved probes cost at most {worst:.2f} times the plain one: {'kept' if kept else 'NOT kept'} ({PROMISE})")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
