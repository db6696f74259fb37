"""Of the functions of servers under load whose calls fall into classes, how many are explained, and by what?

    .venv/bin/python -m bench.evaluation.explained [PROGRAM...] [--seconds 600] [--budget 1%] [--folder DIR]
        [--store FILE]...

Programs as Debian built them, under the loads of bench/lib/server_load.py, are mined once. A function *has classes* if
borders were found in its durations and its call paths observed. It is explained by call paths, by callees that calls
reached, or by where calls were blocked. *By waiting* are functions that no expression explains, but whose classes
differ in what their calls waited for. Results found in the folder are used again. With ``--store`` nothing is mined:
the programs are those that daemons learned, such as those of bench.faults.live with ``--folder``. Needs root, gcc and
the packages of server_load.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.evaluation.models import answer_of, mined
from bench.lib.driver import table
from bench.lib.server_load import NAMES

DEFAULT = ("postgres", "mariadbd", "nginx", "redis-server")
HOW = ("paths", "callees", "blocked", "waiting", "nothing", "not yet")


def how(function: Mapping[str, Any]) -> str:
    """Return what explains the classes of a function: a word of ``HOW``; '' where it has none."""
    match function["state"]:
        case "explained":
            words = {
                literal.get("what", "paths")
                for behaviour in function["behaviours"]
                for conjunction in behaviour["formula"]
                for literal in conjunction
            }
            return "blocked" if "blocked" in words else "callees" if "calls" in words else "paths"
        case "unexplained":
            by_waiting = (function["reason"] or {}).get("code") == "waiting"
            return "waiting" if by_waiting else "nothing"
        case "explaining":
            return "not yet"
    return ""


def row_of(name: str, functions: Sequence[Mapping[str, Any]]) -> list[object]:
    """Return a row of the table, and tell of each function on stderr."""
    single = sum(each["state"] == "single" for each in functions)
    found = Counter(filter(None, map(how, functions)))
    for each in functions:
        if how(each) not in ("", "not yet"):
            why = " / ".join(one["expression"] for one in each["behaviours"])
            code = (each["reason"] or {}).get("code", "")
            print(f"{name}: {each['function']}: {how(each)} {code} {why}", file=sys.stderr)
    classes, told = sum(found.values()), sum(found[each] for each in HOW[:4])
    share = f"{told} of {classes}, {told / classes:.0%}" if classes else "-"
    return [name, len(functions), single, classes, *(found[each] for each in HOW), share]


def learned(stores: Iterable[Path]) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Yield each program of some stores with its functions."""
    for store in stores:
        functions = answer_of("assertions", "--store", store)["functions"]
        for program in sorted({each["program"] for each in functions}):
            yield program, [each for each in functions if each["program"] == program]


def main() -> int:
    """Mine and print a table; 0."""
    parser = argparse.ArgumentParser(description="How many functions with classes are explained, and by what.")
    parser.add_argument("program", nargs="*", help=f"of {', '.join(NAMES)}; default: {', '.join(DEFAULT)}")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--folder", type=Path, help="keeps the results, and has those of an earlier run")
    parser.add_argument("--store", type=Path, action="append", help="take what is in this store; mine nothing")
    options = parser.parse_args()
    if unknown := set(options.program) - set(NAMES):
        parser.error(f"no program {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if not options.store and os.geteuid() != 0:
        print("bench.evaluation.explained: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if options.store:
            rows = [row_of(name, functions) for name, functions in learned(options.store)]
        else:
            rows = []
            for name in options.program or DEFAULT:
                store = mined(name, 1, folder, options.seconds, options.budget)
                rows.append(row_of(name, json.loads(store.with_suffix(".json").read_text())["functions"]))
    table(("program", "functions", "one class", "have classes", *HOW, "explained"), rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
