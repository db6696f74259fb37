"""A fleet as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.model.text import age, cells, escaped, plural, size


def status_text(document: Mapping[str, Any]) -> str:
    """Return ``specmine.fleet_status/1`` for people: what is wrong comes first."""
    inbox = document["inbox"]
    lines = []
    if not document["loader"]:
        lines.append("Nobody loads: start specmine fleet serve.")
    if document["refused"]:
        lines.append(f"{plural(document['refused'], 'push')} refused lately: a host sends what cannot be read.")
    waits = f", the oldest for {age(inbox['oldest_seconds'])}" if inbox["pushes"] else ""
    hosts = ", ".join(f"{number} {state}" for state, number in document["hosts"].items()) or "none"
    levels = ", ".join(
        f"{level} {size(each['bytes'])} in {plural(each['partitions'], 'partition')}"
        for level, each in document["levels"].items()
    )
    lines += [
        f"hosts: {hosts}",
        f"inbox: {inbox['pushes']} waiting{waits}",
        f"known: {plural(document['functions'], 'function')}, {plural(document['lifetimes'], 'lifetime')}",
        _sharing(document["sharing"]),
        f"held: {size(document['bytes'])}" + (f"; {levels}" if levels else ""),
    ]
    return "\n".join(lines) + "\n"


def _sharing(sharing: Mapping[str, Any]) -> str:
    duties = ", ".join(f"{number} as {purpose}" for purpose, number in sharing["duties"].items()) or "none"
    mined = f"; {sharing['waiting_to_be_mined']} wait to be mined" if sharing["waiting_to_be_mined"] else ""
    nobody = "" if sharing["planner"] else "; nobody plans now"
    return f"shared: {plural(sharing['stated'], 'function')} stated; duties: {duties}{mined}{nobody}"


def duties_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each duty."""
    if not entries:
        return "No duty.\n"
    rows = [["HOST", "FUNCTION", "PURPOSE", "SINCE", "LEFT OUT"]]
    for each in entries:
        left = "did not deliver" if each["missed"] else ""
        rows.append([escaped(str(cell)) for cell in (each["host"], each["function"], each["purpose"],
                                                     each["since"][:19], left)])  # fmt: skip
    return _table(rows)


def statements_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each function that was mined from many hosts."""
    if not entries:
        return "Nothing is stated yet.\n"
    rows = [["FUNCTION", "STATE", "HOSTS", "CALLS", "CLASSES", "EXPRESSIONS", "LEFT OUT"]]
    for each in entries:
        state = each["state"] if each["state"] != "none" else f"none ({each['found']})"
        cells_of = (each["function"], state, each["hosts"], each["calls"], each["classes"] or "-",
                    "; ".join(each["expressions"]) or "-", ", ".join(each["left_out"]))  # fmt: skip
        rows.append([escaped(str(cell)) for cell in cells_of])
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    sizes = [max(cells(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, sizes, strict=True)).rstrip() + "\n" for row in rows
    )


def hosts_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each host."""
    if not entries:
        return "No host.\n"
    rows = [["HOST", "STATE", "SEEN", "VERSION", "LABELS"]]
    for each in entries:
        labels = " ".join(f"{key}={value}" for key, value in sorted(each["labels"].items()))
        seen = str(each["seen_at"])[:19] if each["seen_at"] else "never"
        rows.append([escaped(str(cell)) for cell in (each["host"], each["state"], seen, each["version"], labels)])
    return _table(rows)


def levels_text(document: Mapping[str, Any], *, everything: bool) -> str:
    """Return ``specmine.fleet_levels/1`` for people: hosts that stand out, builds that changed, then counts or all."""
    builds = document["builds"]
    changed = [each for each in builds if each["verdict"] in ("worse", "better")]
    others = [each for each in builds if each not in changed]
    found = (*document["hosts_that_changed"], *document["hosts_that_stand_out"], *changed)
    lines = [f"{each['text']}." for each in found]
    if not lines:
        lines = [
            f"{plural(document['hosts'], 'host')}: no host stands out or became slower, and no build is slower."
            if document["functions"] else "Nothing was observed."
        ]  # fmt: skip
    if everything:
        lines += [f"{each['text']}." for each in (*others, *document["functions"])]
    elif others and all(each["method"] == "none" for each in others):
        lines += _too_few(others)
    elif others:
        verdicts = [each["verdict"] for each in others]
        counted = [f"{verdicts.count(one)} {one}" for one in ("equivalent", "undecided") if one in verdicts]
        lines.append(f"Other functions of the new build: {', '.join(counted)}; --all lists them.")
    return "".join(escaped(line) + "\n" for line in lines)


def _too_few(builds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each new build of which too few hosts are there to compare, and what to do."""
    found = []
    for base, new in dict.fromkeys((each["base"], each["new"]) for each in builds):
        sides = [max(each["hosts"][at] for each in builds if each["new"] == new) for at in (0, 1)]
        few, number = min(((new, sides[1]), (base, sides[0])), key=lambda each: each[1])
        found.append(
            f"Build {few} runs on {plural(number, 'host')}: too few to tell a build from its hosts."
            f" Ask: specmine compare --fleet URL {base} {new}, which compares restarts."
        )
    return found
