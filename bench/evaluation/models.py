"""Are the models of several executions of stock programs the same, how large are their assertions, what do they say?

    .venv/bin/python -m bench.evaluation.models [PROGRAM...] [--executions 5] [--seconds 60] [--budget 5%]
        [--folder DIR]

The first paper's questions 1, 3 and 4 (Brünink and Rosenblum 2016, sections 4.1, 4.3 and 4.4) for programs as Debian
built them, under the loads of bench/lib/server_load.py. Each program is started anew for each execution and mined. Each
execution is merged with all before it, as the paper does it: a call path is alike if both models put it into the same
group. ``alike`` is the share of the calls that lie on such paths. Functions with one behaviour agree trivially, so
those with *several* are counted apart. The second table has the functions that several executions explained, by any
expressions, and how many of them have the same ones each time. Atoms are those in all expressions
of a function. The overhead is what specmine reports of itself. The last table has the functions with several
behaviours, of each program those with most time. Results found in the folder are used again. Needs root, gcc and the
packages of server_load.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.lib.driver import table
from bench.lib.server_load import NAMES, loaded

SPECMINE = Path(sys.executable).parent / "specmine"
STABLE = ("single", "explained", "unexplained")
MOST_ALIKE = 0.95
NOTHING = ["0", "-", "-"]
CASES = 4
"""Functions of each program that the last table has, at most."""
Functions = Sequence[Mapping[str, Any]]


def mined(name: str, number: int, folder: Path, seconds: int, budget: str) -> Path:
    """Start a program under its load and mine it; return the store, beside which lies what was printed."""
    store = folder / f"{name}-{number}.db"
    if not store.exists():
        with (
            tempfile.TemporaryDirectory(prefix="specmine-bench-", dir="/var/tmp") as own,
            loaded(name, Path(own)) as program,
        ):
            chosen = ["-p", str(program.pid), "--duration", str(seconds), "--budget", budget]
            printed = answer_of("mine", *chosen, "--store", store)
        store.with_suffix(".json").write_text(json.dumps(printed))
    return store


def answer_of(*arguments: str | Path) -> Mapping[str, Any]:
    """Return what a command of the product prints as JSON; nothing learned is an answer as well."""
    command = [SPECMINE, *arguments, "--format", "json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"specmine {arguments[0]}: {done.stderr.strip()}")
    document: Mapping[str, Any] = json.loads(done.stdout)
    return document


def agreement(stores: Sequence[Path]) -> Functions:
    """Return the functions of which at least two executions have a model, with a step for each further model."""
    return [each for each in answer_of("merge", *stores)["functions"] if each["steps"]]


def step_cells(functions: Functions, step: int) -> list[str]:
    """Return what one column of the paper's figure 5 says: shares of calls alike when so many models were merged."""
    merged = [each for each in functions if len(each["steps"]) > step]
    cells = []
    for some in (merged, [each for each in merged if len(each["behaviours"]) > 1]):
        ratios = [each["steps"][step]["calls_ratio"] for each in some]
        good = sum(ratio >= MOST_ALIKE for ratio in ratios)
        cells += [str(len(ratios)), f"{min(ratios):.1%}", f"{good} ({good / len(ratios):.0%})"] if ratios else NOTHING
    return cells


def recurring(executions: Sequence[Functions]) -> list[str]:
    """Return how many functions were explained, how many of these several executions know, and with which agreement.

    An execution *knows* a function if it is stable there, explained or not.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for functions in executions:
        for each in functions:
            if each["state"] in STABLE:
                found.setdefault((each["function"], each["module"]), []).append(each)
    explained = [known for known in found.values() if any(map(_is_explained, known))]
    several = [known for known in explained if len(known) > 1]
    again = [known for known in several if all(map(_is_explained, known))]
    same = sum(len({_expressions(each) for each in known}) == 1 for known in again)
    return [str(len(explained)), str(len(several)), str(len(again)), str(same)]


def _is_explained(function: Mapping[str, Any]) -> bool:
    return bool(function["state"] == "explained")


def _expressions(function: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(each["expression"] for each in function["behaviours"])


def atoms(function: Mapping[str, Any]) -> int:
    """Return how many different atoms the expressions of a function have."""
    edges = {
        (literal["caller"], literal["callee"], literal.get("what"))
        for behaviour in function["behaviours"]
        for conjunction in behaviour["formula"]
        for literal in conjunction
    }
    return len(edges)


def sizes(functions: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return, by number of behaviours, how many functions there are and how many atoms they need."""
    by_number: dict[int, list[int]] = {}
    for each in functions:
        if each["state"] in ("single", "explained"):
            by_number.setdefault(len(each["behaviours"]), []).append(atoms(each))
    return [
        [str(number), str(len(found)), f"{statistics.median(found):g}", str(max(found))]
        for number, found in sorted(by_number.items())
    ]


def cases(name: str, executions: Sequence[Functions]) -> Iterator[list[str]]:
    """Yield rows for functions that have several behaviours: in how many executions, and the newest of them."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for functions in executions:
        for each in functions:
            if len(each["behaviours"]) > 1:
                found.setdefault((each["function"], each["module"]), []).append(each)
    order = sorted(found, key=lambda key: (-len(found[key]), -float(found[key][-1]["calls"]), key))
    for key in order[:CASES]:
        newest = found[key][-1]
        borders = ", ".join(f"{seconds * 1e6:.3g}" for seconds in newest["borders_seconds"])
        for number, one in enumerate(newest["behaviours"]):
            shares = " ".join(f"{share:.0%}" for share in one["shares"])
            head = [name, f"{key[0]} ({key[1]})", f"{len(found[key])} of {len(executions)}", borders]
            yield [*(head if number == 0 else [""] * 4), f"`{one['expression']}`", f"{one['calls']:,}", shares]


def overheads(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the least and the largest share of the program's CPU time that the probes took."""
    spent = [float(each["collection"]["overhead_ratio"] or 0.0) for each in documents]
    return f"{min(spent):.2%} to {max(spent):.2%}"


def main() -> int:
    """Mine, merge and print the tables."""
    parser = argparse.ArgumentParser(description="Agreement and size of models of stock programs.")
    parser.add_argument("program", nargs="*", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--executions", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--budget", default="5%")
    parser.add_argument("--folder", type=Path, help="keeps the stores, and has those of an earlier run")
    options = parser.parse_args()
    if unknown := set(options.program) - set(NAMES):
        parser.error(f"no program {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if os.geteuid() != 0:
        print("bench.evaluation.models: needs root", file=sys.stderr)
        return 4
    rows, again, every, named = [], list[list[str]](), list[Mapping[str, Any]](), list[list[str]]()
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in options.program or NAMES:
            numbers = range(1, options.executions + 1)
            stores = [mined(name, number, folder, options.seconds, options.budget) for number in numbers]
            known = [answer_of("assertions", "--store", store)["functions"] for store in stores]
            printed = [json.loads(store.with_suffix(".json").read_text()) for store in stores]
            every += [function for functions in known for function in functions]
            named += cases(name, known)
            again.append([name, *recurring(known)])
            states = Counter(each["state"] for functions in known for each in functions)
            settled = sum(states[state] for state in STABLE) / len(stores)
            print(f"{name}: {dict(states)}", file=sys.stderr, flush=True)
            functions = agreement(stores)
            merged = max((len(each["steps"]) for each in functions), default=0)
            cells = [[f"{step + 2}", *step_cells(functions, step)] for step in range(merged)]
            cells = cells or [["-", *NOTHING, *NOTHING]]
            said = [name, f"{settled:.0f}", f"{states['explained'] / len(stores):.1f}", overheads(printed)]
            rows += [[*(said if at == 0 else [""] * 4), *row] for at, row in enumerate(cells)]
    stable = ("program", "stable an execution", "explained", "overhead")
    alike = ("alike, least", ">= 95 %")
    table((*stable, "models merged", "functions", *alike, "of these with several behaviours", *alike), rows)
    table(("program", "explained", "known to several executions", "explained by all of them", "alike"), again)
    table(("behaviours", "functions", "atoms, median", "atoms, most"), sizes(every))
    table(("program", "function", "executions", "borders, us", "behaviour", "calls", "in each class"), named)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
