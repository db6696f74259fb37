"""Of the functions of servers under load whose calls fall into classes, how many are explained, and by what?

    .venv/bin/python -m bench.evaluation.explained [PROGRAM...] [--seconds 600] [--budget 1%] [--folder DIR]

Programs as Debian built them, under the loads of bench/lib/server_load.py, are mined once. A function *has classes* if
borders were found in its durations and its call paths observed. It is explained by call paths, by callees that calls
reached, or by where calls were blocked. *By waiting* are functions that no expression explains, but whose classes
differ in what their calls waited for. Results found in the folder are used again. Needs root, gcc and the packages of
server_load.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.evaluation.models import mined
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


def main() -> int:
    """Mine and print a table; 0."""
    parser = argparse.ArgumentParser(description="How many functions with classes are explained, and by what.")
    parser.add_argument("program", nargs="*", help=f"of {', '.join(NAMES)}; default: {', '.join(DEFAULT)}")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--folder", type=Path, help="keeps the results, and has those of an earlier run")
    options = parser.parse_args()
    if unknown := set(options.program) - set(NAMES):
        parser.error(f"no program {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if os.geteuid() != 0:
        print("bench.evaluation.explained: needs root", file=sys.stderr)
        return 4
    rows = []
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in options.program or DEFAULT:
            store = mined(name, 1, folder, options.seconds, options.budget)
            functions = json.loads(store.with_suffix(".json").read_text())["functions"]
            single = sum(each["state"] == "single" for each in functions)
            found = Counter(filter(None, map(how, functions)))
            stated = sum(found[each] for each in HOW[:3])
            classes = sum(found.values())
            share = f"{stated / classes:.0%}" if classes else "-"
            rows.append([name, len(functions), single, classes, *(found[each] for each in HOW), share])
            for each in functions:
                if how(each) not in ("", "not yet"):
                    why = " / ".join(one["expression"] for one in each["behaviours"])
                    code = (each["reason"] or {}).get("code", "")
                    print(f"{name}: {each['function']}: {how(each)} {code} {why}", file=sys.stderr)
    table(("program", "functions", "one class", "have classes", *HOW, "explained"), rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
