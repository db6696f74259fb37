"""Is a function that is 10 % slower in a new build judged rightly live, with runs in turns and in blocks?

    .venv/bin/python -m bench.regression.live_order [LIFETIMES]

Two builds of a program that counts in loops run under probes: what other programs do to the CPU shows in its durations.
Functions are found by sampling, so that callers and callees are known. Needs root and gcc.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.regression.live import SPECMINE

CALLS = 8_000
CHANGED, THROUGH = "checksum", "handle"
TRIES = 5
SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
static volatile uint64_t sink;
__attribute__((noinline)) void checksum(int n) { for (int i = 0; i < n / 100 * PERCENT; i++) sink += i; }
__attribute__((noinline)) void parse(int n) { for (int i = 0; i < n; i++) sink ^= i; }
__attribute__((noinline)) void render(int n) { for (int i = 0; i < n; i++) sink += 2 * i; }
__attribute__((noinline)) void handle(void) { checksum(200000); parse(200000); sink++; }
int main(int argc, char **argv)
{
    for (int left = argc > 1 ? atoi(argv[1]) : 0; left > 0; left--) { handle(); render(150000); usleep(300); }
    return 0;
}
"""


def built(folder: Path, name: str, percent: int) -> Path:
    """Compile a build; both are called app, so that functions of both have one name."""
    source, program = folder / f"{name}.c", folder / name / "app"
    program.parent.mkdir()
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", f"-DPERCENT={percent}", "-o", program,
                    source], check=True)  # fmt: skip
    return program


def lived(program: Path, store: Path) -> None:
    """Let one lifetime pass under probes; again if another mining on this host was in the way."""
    command = [SPECMINE, "mine", "--duration", "120", "--budget", "50%", "--store", str(store), "--", str(program),
               str(CALLS)]  # fmt: skip
    for _ in range(TRIES):
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode in (0, 3):
            return
        time.sleep(5.0)


def repetition(folder: Path, lifetimes: int, *, turns: bool) -> None:
    """Run both builds and print what ``compare`` says."""
    programs = [built(folder, "base", 100), built(folder, "new", 110)]
    store = folder / "s.db"
    for number in range(2 * lifetimes):
        lived(programs[number % 2 if turns else number // lifetimes], store)
    ids = [_build_id(program) for program in programs]
    done = subprocess.run([SPECMINE, "compare", "--store", str(store), *ids, "--format", "json"], capture_output=True,
                          check=False)  # fmt: skip
    print(f"{'in turns' if turns else 'in blocks'}, {lifetimes} lifetimes a side: exit code {done.returncode}")
    if not done.stdout:
        print(done.stderr.decode())
        return
    document = json.loads(done.stdout)
    print(f"  order: {document['order']}")
    for each in document["functions"]:
        print(f"  {each['function']:16} {each['verdict']:11} {each['ratio']} {each['interval']} lifetimes"
              f" {each['lifetimes']}, left out {len(each['lifetimes_left_out'])}; code {each['machine_code']},"
              f" unchanged below {each['code_unchanged']}; {each['reason']}", flush=True)  # fmt: skip


def _build_id(program: Path) -> str:
    text = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return text.partition("Build ID: ")[2].split()[0]


def main() -> None:
    """Run both orders."""
    lifetimes = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for turns in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            repetition(Path(folder), lifetimes, turns=turns)


if __name__ == "__main__":
    main()
