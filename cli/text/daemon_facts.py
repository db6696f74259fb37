"""What a status says below what is wrong: programs, functions and cost, on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from specmine.analysis.documents import Document
from specmine.analysis.wording.own_cost import own_limit, up_s
from specmine.model.text import age, cells, count, escaped, listed, share

from .suggestions import suggestion

SILENT_S = 180.0
"""A program that runs is not seen once no call was counted for so long."""
_STEPS = (
    (("timing", "explaining"), "being learned"),
    (("waiting", "candidate"), "waiting"),
    (("unstable",), "unstable"),
    (("refused",), "cannot be timed"),
    (("excluded",), "left out"),
)


def not_seen(status: Document) -> list[str]:
    """Return a line for each program that runs and of which no call was counted lately."""
    now = _seconds(status.get("updated"))
    lines = []
    for each in status.get("watched") or ():
        last, number = _seconds(each.get("last_call")), int(each.get("processes") or 0)
        silent = now is not None and last is not None and now - last > SILENT_S
        if number and silent and now is not None and last is not None:
            lines.append(
                f"Not seen: {escaped(str(each['program']))} ({_processes(number)}) made no call in {age(now - last)};"
                " whether it is slow is not known. Next: specmine doctor -p PID"
            )
    return lines


def short_of_cpu(status: Document) -> list[str]:
    """Return a line for each program that more than usual keeps from CPU time."""
    return [
        f"Short of CPU time: {escaped(str(each['program']))}: {escaped(str(each['short_of_cpu']))}."
        for each in status.get("watched") or ()
        if each.get("short_of_cpu")
    ]


def unmatched_names(status: Document) -> list[str]:
    """Return a line for each name in ``functions.watch`` that names no function of the programs."""
    lines = []
    for each in status.get("unmatched_names") or ():
        programs, alike = listed(map(escaped, each["programs"])), list(map(escaped, each.get("alike") or ()))
        said = f"no function of {programs} matches {escaped(str(each['name']))}{suggestion(alike)}"
        lines.append(f"Not watched: {said}{'?' if alike else '.'} Next: correct functions.watch")
    return lines


def facts(status: Document, found_when: str = "") -> Iterator[str]:
    """Yield what would be found, what nothing is asserted of, the programs, what specmine costs, and its notes."""
    if found_when:
        yield f"{found_when}."
    states: Mapping[str, int] = status.get("functions") or {}
    parts = [f"{count(number)} {words}" for names, words in _STEPS if (number := sum(states.get(n, 0) for n in names))]
    if parts:
        yield f"Not asserted: {', '.join(parts)}."
    if status.get("probes") == "off":
        yield f"All probes are off: {escaped(str(status.get('kill_switch')))}. Next: specmine on"
    rows = list(_programs(status))
    if len(rows) > 1:
        yield ""
        yield from _table(rows)
    yield ""
    yield from _cost(status)
    yield from _fleet(status.get("fleet") or {}, _seconds(status.get("updated")))
    store = status.get("store") or {}
    if store.get("failures"):
        yield f"The store fails: {count(store['failures'])} attempts to write to {escaped(str(store.get('path')))}"
    for note in status.get("notes") or ():
        yield f"Note: {escaped(str(note))}"
    yield "More: specmine status --verbose"


def _fleet(fleet: Mapping[str, Any], now: float | None) -> Iterator[str]:
    """Say what hosts of a fleet do together, if this one is of one."""
    told = _seconds(fleet.get("told"))
    if not fleet.get("shares"):
        return
    if not fleet.get("in_force"):
        if told is None or now is None:
            yield "Fleet: not reached yet; five minutes after its start this host observes all by itself"
        else:
            yield f"Fleet: not reached for {age(now - told)}; this host observes all by itself"
        return
    duties: Mapping[str, int] = fleet.get("duties") or {}
    asked = ", ".join(f"{count(number)} as {name}" for name, number in duties.items() if number) or "nothing"
    left, inherited = int(fleet.get("left_to_others") or 0), int(fleet.get("inherited") or 0)
    yield f"Fleet: it asks for {asked}; {count(left)} left to other hosts; {count(inherited)} inherited"


def _programs(status: Document) -> Iterator[tuple[str, ...]]:
    yield "PROGRAM", "BUILD", "PROCESSES", "LAST CALL COUNTED"
    now = _seconds(status.get("updated"))
    builds: dict[str, list[str]] = {}
    for each in status.get("lifetimes") or ():
        builds.setdefault(str(each.get("program")), []).append(str(each.get("build_id") or "")[:8])
    for each in status.get("watched") or ():
        last, number = _seconds(each.get("last_call")), int(each.get("processes") or 0)
        told = "-" if last is None or now is None else "now" if now - last < 1.5 else f"{age(now - last)} ago"
        known = list(dict.fromkeys(builds.get(str(each["program"]), ())))
        build = known[0] + (f" +{len(known) - 1}" if len(known) > 1 else "") if known else "-"
        yield escaped(str(each["program"])), build, count(number) if number else "not running", told


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    sizes = [max(cells(row[at]) for row in rows) for at in range(4)]
    for name, build, number, last in rows:
        yield f"{name.ljust(sizes[0])}  {build.ljust(sizes[1])}  {number.rjust(sizes[2])}  {last.rjust(sizes[3])}"


def _cost(status: Document) -> Iterator[str]:
    budget = status.get("budget") or {}
    inside, own = budget.get("overhead") or {}, budget.get("agent") or {}
    if inside.get("spent_ratio") is not None:
        floor = f", or {1000 * inside['floor_seconds']:.3g} ms/s" if inside.get("floor_seconds") else ""
        yield f"Overhead: {share(inside['spent_ratio'])} of the programs' CPU time (limit {_limit(inside)}{floor})"
    said = []
    if own.get("spent_ratio") is not None:
        said.append(f"{share(own['spent_ratio'])} of one CPU ({own_limit(status)})")
    if status.get("resident_bytes"):
        said.append(f"{status['resident_bytes'] / 1e6:.0f} MB")
    seconds = up_s(status)
    if seconds is not None:
        said.append(f"up {age(seconds)}")
    if said:
        yield f"specmine {escaped(str(status.get('version') or ''))}: {', '.join(said)}"
    yield from _held_back(inside, own)


def _held_back(inside: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[str]:
    """Say which limit keeps functions from being learned, and what more of it would bring."""
    waiting = int(own.get("waiting_functions") or 0)
    if waiting:
        limit = float(own.get("promised_ratio") or 0.0)
        twice = f"; with {share(2 * limit)} they are learned about twice as fast" if limit else ""
        yield f"{_functions(waiting)} for specmine's own CPU time (budget.agent){twice}"
    waiting, seconds = int(inside.get("waiting_functions") or 0), inside.get("waiting_seconds")
    if waiting and seconds:
        half = f"with twice the budget {age(seconds / 2)}"
        yield f"{_functions(waiting)} for the overhead budget: some {age(seconds)} more, {half}"


def _functions(number: int) -> str:
    return "1 function waits" if number == 1 else f"{count(number)} functions wait"


def _limit(part: Mapping[str, Any]) -> str:
    return share(float(part.get("promised_ratio") or 0.0))


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{count(number)} processes"


def _seconds(moment: object) -> float | None:
    return datetime.fromisoformat(moment).timestamp() if isinstance(moment, str) else None
