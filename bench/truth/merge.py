"""Do models of several executions, and of differently compiled builds, agree?

    .venv/bin/python -m bench.truth.merge [--executions 5] [--seconds 75] [--only stock|builds] [--folder DIR]

A stock Debian apache2 is started anew for each execution and mined under a varied load: 43 kinds of requests, such as
static files, ranges, listings, CGI, uploads and errors (bench/truth/varied_site/). What was learned is merged as in
the first paper (Brünink and Rosenblum 2016, section 4.1): each execution with all before it. Then the same is done with
Apache httpd compiled twice from Debian's source package, -O2 and -O3 -march=native.

Needs root. apt downloads the server's packages and its source; they are unpacked and compiled in a temporary folder
(about a minute). What the compiler needs (gcc, make, dpkg-dev, -dev packages) is installed system-wide after a notice.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.truth.varied_site.builds import BUILDS, NEEDED, build, source
from bench.truth.varied_site.site import running
from examples.demo.server import SetupError, unpack

ROOT = Path(__file__).resolve().parents[2]
SPECMINE = Path(sys.executable).parent / "specmine"
ENOUGH, OF_FUNCTIONS, UNDECIDED = 0.95, 0.9, 0.5
Functions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Httpd:
    """A server that can be started."""

    name: str
    executable: Path
    root: Path | None = None
    """Where its packages were unpacked."""


def main() -> int:
    """Measure and print the tables; 0 if all reach the bar."""
    parser = argparse.ArgumentParser(description="Agreement of models of executions and builds.")
    parser.add_argument("--executions", type=int, default=5, help="of each server")
    parser.add_argument("--seconds", type=int, default=75, help="how long each is mined")
    parser.add_argument("--rate", type=int, default=250, help="requests a second")
    parser.add_argument("--budget", default="5%")
    parser.add_argument("--only", choices=("stock", "builds"))
    parser.add_argument("--folder", type=Path, help="kept afterwards; builds and stores found there are used again")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.merge: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        good = True
        try:
            if options.only != "builds":
                good &= executions(folder, options)
            if options.only != "stock":
                good &= builds(folder, options)
        except SetupError as error:
            print(f"bench.truth.merge: {error}", file=sys.stderr)
            return 4
    return 0 if good else 1


def executions(folder: Path, options: argparse.Namespace) -> bool:
    """Mine the stock server several times and compare."""
    root = folder / "root"
    if not root.exists():
        progress("downloading and unpacking Debian's apache2; nothing is installed")
        unpack(folder)
    server = Httpd(name="stock", executable=root / "usr/sbin/apache2", root=root)
    stores = [mined(folder, server, number + 1, options) for number in range(options.executions)]
    heading(f"{len(stores)} executions of a stock apache2, each with all before it")
    functions = merge_specifications(stores)
    for step in range(1, len(stores)):
        row(f"{step + 1} merged", functions, step_at(step - 1))
    share = row("the last of each function", functions, lambda steps: steps[-1])
    row("the worst of each function", functions, lambda steps: min(steps, key=lambda one: one["calls_ratio"]))
    for number in range(len(stores) - 1):
        other = merge_specifications([*stores[:number], *stores[number + 1 :], stores[number]])
        row(f"execution {number + 1} as the last", other, lambda steps: steps[-1])
    row(
        "as they were mined, the last",
        merge_specifications([in_json(each) for each in stores]),
        lambda steps: steps[-1],
    )
    each_function(functions)
    return share >= OF_FUNCTIONS


def builds(folder: Path, options: argparse.Namespace) -> bool:
    """Mine two builds several times and compare them."""
    servers = [Httpd(name=name, executable=folder / name / "httpd") for name in BUILDS]
    if not all(each.executable.is_file() for each in servers):
        subprocess.run([ROOT / ".ci" / "packages", *NEEDED], check=True)
        progress("downloading Debian's source of apache2 and compiling it twice")
        tree = source(folder)
        for name, flags in BUILDS.items():
            build(tree, folder / name, flags)
    stores: dict[str, list[Path]] = {each.name: [] for each in servers}
    for number in range(options.executions):
        for each in servers:
            stores[each.name].append(mined(folder, each, number + 1, options))
    heading(f"two builds, {' and '.join(BUILDS)}")
    together = [merged_into(folder / f"{name}-all.db", own) for name, own in stores.items()]
    functions = merge_specifications(together)
    share = row(f"{options.executions} executions of each, merged", functions, lambda steps: steps[-1])
    for number, pair in enumerate(zip(*stores.values(), strict=True)):
        row(f"execution {number + 1} of each", merge_specifications(pair), lambda steps: steps[-1])
    row(
        "as they were mined",
        merge_specifications([in_json(own[0]) for own in stores.values()]),
        lambda steps: steps[-1],
    )
    each_function(functions)
    return share >= OF_FUNCTIONS


def mined(folder: Path, server: Httpd, number: int, options: argparse.Namespace) -> Path:
    """Run the server once under load and mine it; return the store."""
    store = folder / f"{server.name}-{number}.db"
    if store.exists():
        return store
    with (
        tempfile.TemporaryDirectory(prefix="specmine-site-") as site,
        running(server.executable, Path(site), server.root) as (pid, addresses),
    ):
        ask: list[Any] = [sys.executable, "-m", "bench.truth.varied_site.load", *addresses]
        ask += ["--seconds", options.seconds + 15, "--rate", options.rate, "--seed", number]
        with subprocess.Popen(list(map(str, ask)), stdout=subprocess.DEVNULL, cwd=ROOT) as load:
            command: list[str | Path] = [SPECMINE, "mine", "-p", str(pid), "--duration", str(options.seconds)]
            command += ["--budget", options.budget, "--store", store, "--format", "json"]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            load.terminate()
    if done.returncode not in (0, 3):
        raise SetupError(f"specmine mine: {done.stderr.strip()}")
    document = json.loads(done.stdout)
    states = Counter(each["state"] for each in document["functions"])
    spent = document["collection"]["overhead_ratio"]
    progress(
        f"{server.name} {number}: {', '.join(f'{n} {state}' for state, n in states.most_common())}; spent {spent:.1%}"
    )
    return store


def progress(text: str) -> None:
    """Tell what happens."""
    print(f"bench.truth.merge: {text}", file=sys.stderr, flush=True)


def merged_into(target: Path, inputs: Sequence[Path]) -> Path:
    """Merge into a store and return it; a single input is itself."""
    if len(inputs) == 1:
        return inputs[0]
    subprocess.run([SPECMINE, "merge", *inputs, "--output", target], check=True, stdout=subprocess.DEVNULL)
    return target


def in_json(store: Path) -> Path:
    """Return a store's specification as JSON, which cannot be counted anew."""
    target = store.with_suffix(".json")
    with target.open("w") as file:
        subprocess.run([SPECMINE, "assertions", "--store", store, "--format", "json"], check=True, stdout=file)
    return target


def merge_specifications(inputs: Sequence[Path]) -> Functions:
    """Return the results of merging for the functions that could be compared."""
    out = subprocess.run([SPECMINE, "merge", *inputs, "--format", "json"], check=False, capture_output=True, text=True)
    if out.returncode not in (0, 3):  # 3: nothing that could be compared
        raise SetupError(f"specmine merge: {out.stderr.strip()}")
    document = json.loads(out.stdout)
    progress(", ".join(f"{name} {value}" for name, value in document["summary"].items()))
    return [each for each in document["functions"] if each["steps"]]


def heading(text: str) -> None:
    """Begin a table."""
    print(f"\n{text}\n")
    print(
        "| merged | functions | several behaviours | alike, least | >= 95 % | of several | undecided, most "
        "| >= 95 % if undecided calls disagreed | pairs | others |"
    )
    print(f"|{' --- |' * 10}", flush=True)


def step_at(number: int) -> Callable[[list[dict[str, Any]]], dict[str, Any] | None]:
    """Return what chooses one step of the merged ones, None where there are fewer."""
    return lambda steps: steps[number] if len(steps) > number else None


def row(name: str, functions: Functions, chosen: Callable[[list[dict[str, Any]]], dict[str, Any] | None]) -> float:
    """Print one row; return the share of functions that agree enough."""
    found = [(each, step) for each in functions if (step := chosen(each["steps"])) is not None]
    if not found:
        return 0.0
    several = [step for each, step in found if len(each["behaviours"]) > 1]
    good = [good_enough(step) for _, step in found]
    strictly = sum(step["consistent_calls"] >= ENOUGH * step["shared_calls"] for _, step in found)
    pairs = sum(step["pairs_ratio"] >= ENOUGH for _, step in found)
    others = [each["function"] for each, step in found if not good_enough(step)]
    print(
        f"| {name} | {len(found)} | {len(several)} | {min(step['calls_ratio'] for _, step in found):.3f} "
        f"| {sum(good)} ({sum(good) / len(found):.0%}) | {sum(map(good_enough, several))} "
        f"| {max(step['undecided_ratio'] for _, step in found):.3f} | {strictly} ({strictly / len(found):.0%}) "
        f"| {pairs} | {', '.join(others)} |",
        flush=True,
    )
    return sum(good) / len(found)


def good_enough(step: Mapping[str, Any]) -> bool:
    """Return whether two models agree on 95 % of what is decided, which must be half of the calls."""
    return bool(step["calls_ratio"] >= ENOUGH and step["undecided_ratio"] <= UNDECIDED)


def each_function(functions: Functions) -> None:
    """Print all steps of each function."""
    print("\n| function | models | behaviours | paths | calls | calls alike at each step | undecided at the last |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for each in sorted(
        functions, key=lambda one: (-len(one["behaviours"]), min(s["calls_ratio"] for s in one["steps"]))
    ):
        steps = " ".join(f"{step['calls_ratio']:.3f}" for step in each["steps"])
        name = f"{each['function']} ({each['module']})"
        paths = max(step["shared_paths"] for step in each["steps"])
        print(
            f"| {name} | {each['models']} | {len(each['behaviours'])} | {paths} | {each['calls']:,} | {steps} "
            f"| {each['steps'][-1]['undecided_ratio']:.3f} |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
