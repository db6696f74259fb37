"""Of faults that were tried several times: what was opened, how soon, named rightly, with which cause?

    .venv/bin/python -m bench.faults.score FILE... [--folder DIR]

The files are those that bench.faults.live or bench.faults.rounds kept. With ``--folder``, which holds what the daemons
learned, a simple rule is scored beside specmine (bench/faults/tries/rule.py). Misses come first. Needs no root.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.faults.tries.outcome import Outcome, is_slowed
from bench.faults.tries.rule import Named, named_in, windows_in
from bench.lib.driver import table
from bench.lib.proportion import interval

SOON_S, MEDIAN_S, CLOSED_S, FELT, NEAR = 120.0, 60.0, 300.0, 1.1, 0.2
"""Of what is asked: opened within so many seconds, half of it within so many, closed within so many.

Clients wait longer by this factor; a factor is right within this part of it.
"""
BARS = {"opened within 120 s": 0.9, "right function first": 0.8, "right function among the first three": 0.9,
        "right kind of cause": 0.8, "factor within 20 % of what was injected": 0.8,
        "factor within 20 % of what bpftrace measures": 0.8, "interval of the factor holds that": 0.95,
        "closed within 300 s": 1.0}  # fmt: skip


def read(paths: Iterable[Path]) -> list[Outcome]:
    """Return the outcomes that files hold."""
    return [Outcome(**json.loads(line)) for path in paths for line in path.read_text().splitlines()]


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; 0 if no bar is missed."""
    parser = argparse.ArgumentParser(description="Faults that were tried several times.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, help="what the daemons learned, for the rule")
    options = parser.parse_args(words)
    outcomes = read(options.files)
    ruled = by_rule(outcomes, options.folder) if options.folder else {}
    faults = [one for one in outcomes if not one.harmless]
    kinds = defaultdict[tuple[str, str], list[Outcome]](list)
    for one in faults:
        kinds[one.program, one.fault].append(one)
    rows = sorted(kinds.values(), key=lambda tries: (sum(map(_soon, tries)) / len(tries), tries[0].program))
    head = ["program", "fault", "felt", "opened", "after, s", "first", "of three", "named first",
            "factor", "injected, measured", "cause", "closed, s", "short of CPU time, s"]  # fmt: skip
    table(head, (_row(tries) for tries in rows))
    missed = _bars(faults)
    if ruled and faults:
        _rule(faults, ruled)
    _harmless([one for one in outcomes if one.harmless])
    return 1 if missed else 0


def by_rule(outcomes: Sequence[Outcome], folder: Path) -> dict[int, Named | None]:
    """Return what the rule says of each try, by when it began."""
    found = dict[int, Named | None]()
    for program in {one.program for one in outcomes}:
        tries = [one for one in outcomes if one.program == program]
        windows = windows_in(folder / program / "daemon" / "store.db")
        spans = [(one.began_ns, one.undone_ns) for one in tries]
        found |= {span[0]: named_in(windows, span, spans) for span in spans}
    return found


def _row(tries: Sequence[Outcome]) -> list[str]:
    opened = [one for one in tries if one.opened_s is not None]
    felt = [one.felt or one.true_factor for one in tries]
    return [
        tries[0].program,
        tries[0].fault,
        _range(felt),
        f"{len(opened)} of {len(tries)}",
        ", ".join(f"{one.opened_s:.0f}" for one in opened) or "-",
        f"{sum(one.right for one in opened)}",
        f"{sum(one.of_three for one in opened)}",
        _counted(f"`{one.first}`" for one in opened),
        _range([one.factor for one in opened]),
        f"{_range([one.true_factor for one in tries])}, {_range([one.measured_factor for one in opened])}",
        _counted(one.cause for one in opened),
        ", ".join("no" if one.closed_s is None else f"{one.closed_s:.0f}" for one in opened) or "-",
        ", ".join(f"{one.short_s:.0f}" for one in tries if one.short_s is not None) or "-",
    ]


def _bars(faults: Sequence[Outcome]) -> list[str]:
    """Print each bar with the share that reaches it; return those that are missed."""
    counted = [one for one in faults if _is_felt(one)]
    opened = [one for one in counted if one.opened_s is not None]
    known = [one for one in opened if one.true_factor and one.right and one.factor]
    measured = [one for one in opened if one.measured_factor and one.factor]
    by_host = [one for one in opened if one.by_host]
    found: dict[str, tuple[Sequence[Outcome], Callable[[Outcome], bool]]] = {
        "opened within 120 s": (counted, _soon),
        "right function first": (counted, lambda one: one.right),
        "right function among the first three": (counted, lambda one: one.of_three),
        "right kind of cause": (counted, lambda one: one.cause_right),
        "factor within 20 % of what was injected": (known, lambda one: _is_near(one, one.true_factor)),
        "factor within 20 % of what bpftrace measures": (measured, lambda one: _is_near(one, one.measured_factor)),
        "interval of the factor holds that": (measured, _is_held),
        "closed within 300 s": (opened, lambda one: one.closed_s is not None and one.closed_s <= CLOSED_S),
    }
    rows, missed = [], []
    for name, (of, holds) in found.items():
        hits = sum(map(holds, of))
        low, high = interval(hits, len(of))
        if hits < BARS[name] * len(of):
            missed.append(name)
        share = f"{hits} of {len(of)} ({low:.0%} to {high:.0%})"
        rows.append([name, share if name not in missed else f"**{share}**", f"{BARS[name]:.0%}"])
    delays = [math.inf if one.opened_s is None else one.opened_s for one in counted]
    median = statistics.median(delays) if delays else math.inf
    if median > MEDIAN_S:
        missed.append("median")
    wrong = sum(one.cause == "code" for one in by_host)
    rows.append(["median until opened, those not opened too", f"{median:.0f} s", f"{MEDIAN_S:.0f} s"])
    rows.append(["*code* for a fault of the host", f"{wrong} of {len(by_host)}", "0"])
    short = [one for one in counted if one.by_host and one.short_s is not None]
    silent = sum(one.opened_s is None for one in short)
    short_of = f"{len(short)} of {sum(one.by_host for one in counted)}; {silent} of them not opened"
    rows.append(["short of CPU time, said in faults of the host", short_of, ""])
    rows.append(["others opened", str(sum(one.others for one in opened)), ""])
    table([f"specmine: {len(counted)} of {len(faults)} tries that were felt", "share (95 %)", "asked"], rows)
    return missed


def _rule(faults: Sequence[Outcome], ruled: dict[int, Named | None]) -> None:
    """Print the same of the rule."""
    counted = [(one, ruled[one.began_ns]) for one in faults if _is_felt(one)]
    named = [(one, said) for one, said in counted if said is not None]
    right = sum(is_slowed(said.functions[0], one) for one, said in named)
    three = sum(any(is_slowed(name, one) for name in said.functions[:3]) for one, said in named)
    soon = sum(said.after_s <= SOON_S for _, said in named)
    delays = [math.inf if said is None else said.after_s for _, said in counted]
    rows = [
        ["something named within 120 s", f"{soon} of {len(counted)}"],
        ["median until then", f"{statistics.median(delays):.0f} s"],
        ["right function first", f"{right} of {len(counted)}"],
        ["right function among the first three", f"{three} of {len(counted)}"],
        ["functions named, mean of these", f"{sum(len(said.functions) for _, said in named) / max(1, len(named)):.1f}"],
    ]
    table(["the rule", "share"], rows)


def _harmless(tries: Sequence[Outcome]) -> None:
    if tries:
        opened = [one for one in tries if one.opened_s is not None]
        print(f"Harmless: {len(opened)} of {len(tries)} opened something: "
              f"{_counted(f'{one.program}, {one.fault}: `{one.first}`' for one in opened)}")  # fmt: skip


def _is_felt(one: Outcome) -> bool:
    """Tell whether clients felt it, or, where they keep no account, the function's own says so."""
    felt = one.felt or one.true_factor
    return felt is None or felt >= FELT


def _soon(one: Outcome) -> bool:
    return one.opened_s is not None and one.opened_s <= SOON_S


def _is_near(one: Outcome, true: float | None) -> bool:
    return bool(one.factor and true) and abs((one.factor or 0) / (true or 1) - 1) <= NEAR


def _is_held(one: Outcome) -> bool:
    low, high = one.interval or (math.inf, 0.0)
    return low <= (one.measured_factor or 0.0) <= high


def _range(values: Iterable[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "-"
    low, high = (f"{value:.2g}" if value < 100 else f"{value:.0f}" for value in (known[0], known[-1]))
    return low if low == high else f"{low} to {high}"


def _counted(words: Iterable[str]) -> str:
    every = list(words)
    first = sorted(set(every), key=lambda word: (-every.count(word), word))
    return ", ".join(f"{word} ({every.count(word)})" if len(every) > 1 else word for word in first) or "-"


if __name__ == "__main__":
    raise SystemExit(main())
