"""``specmine status``: what the daemon does and what it costs, or what a store holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.documents import Document, functions_of
from specmine.analysis.wording.assertions import wrapped
from specmine.analysis.wording.detectable import counted as found_when
from specmine.analysis.wording.standing import standing_of
from specmine.analysis.wording.states import FINISHED, counted
from specmine.analysis.wording.violations import is_open, is_problem
from specmine.cli.base.exit_codes import FINE, VIOLATED
from specmine.cli.base.options import reading_options
from specmine.cli.base.output import emit, width
from specmine.cli.base.sources import read_document, read_functions, read_status, read_violations
from specmine.cli.base.typography import typeset
from specmine.cli.text.daemon_facts import facts, not_seen, short_of_cpu, unmatched_names
from specmine.cli.text.specification import heading
from specmine.cli.text.status import headline
from specmine.daemon.documents.json_text import json_text
from specmine.model.text import age, count, duration, escaped, share

if TYPE_CHECKING:
    from specmine.store import Where


@click.command("status", short_help="What the daemon watches, costs and knows.")
@click.option("-v", "--verbose", is_flag=True, help="Everything that the daemon says of itself.")
@reading_options
def command(verbose: bool, store: Where | None, socket: Path | None, form: str) -> int:
    """Show what is wrong, then what the daemon watches, what it costs and what it knows.

    With --store: what the store holds. Exit code 1 while a violation is open that is slower.
    """
    found = read_violations(store, socket)
    standing = [each for each in found["violations"] if is_open(each)]
    code = VIOLATED if any(map(is_problem, standing)) else FINE
    if store is not None:
        document = read_document(store, socket)
        entries = functions_of(document)
        status = {**_of_store(document, store), "violations": standing}
    else:
        status = {"schema": "specmine.status/1", **read_status(socket), "violations": standing}
        asserted = any(status.get("functions", {}).get(name) for name in FINISHED)
        entries = read_functions(None, socket) if asserted and form != "json" else []
    if form == "json":
        emit(json_text(status))
        return code
    notices = [] if store is not None else [*not_seen(status), *unmatched_names(status), *short_of_cpu(status)]
    first = headline(standing_of(entries, standing), str(found.get("host") or ""), found.get("at"), width(), notices)
    if store is not None:
        lines = [*heading(document, width()), counted(entries)]
    elif verbose:
        lines = list(_lines(_without_unmeasured(status)))
    else:
        lines = list(facts(status, found_when(entries)))
    shown = [*first, *(part for line in lines for part in wrapped(line, width(), hang=" " * 6) or [""])]
    kept = [line for at, line in enumerate(shown) if line or not at or shown[at - 1]]  # one empty line between parts
    emit(typeset("\n".join(kept) + "\n"))
    return code


def _without_unmeasured(status: Document) -> dict[str, Any]:
    """Return the facts to list, without what has never been measured of the host: its names alone."""
    environment = dict(status.get("environment") or {})
    properties = environment.pop("properties", None) or {}
    missing = [name for name, each in properties.items() if (each or {}).get("reason") == "never-measured"]
    kept = {key: value for key, value in environment.items() if key not in missing and key != "schema"}
    measured = {name: each for name, each in properties.items() if name not in missing}
    if measured:
        kept["properties"] = measured
    if missing:
        kept["not measured yet"] = ", ".join(name.replace("_", " ") for name in missing)
    facts = {key: value for key, value in status.items() if key not in ("schema", "violations")}
    return {**facts, "environment": kept} if kept else facts


def _of_store(document: Document, store: Where) -> dict[str, Any]:
    states: dict[str, int] = {}
    for each in functions_of(document):
        states[str(each.get("state"))] = states.get(str(each.get("state")), 0) + 1
    kept = {key: document[key] for key in ("program", "host", "environment", "collection") if key in document}
    return {
        "schema": "specmine.status/1",
        "store": str(store),
        **kept,
        "functions": dict(sorted(states.items())),
    }


def _lines(tree: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Write a tree of facts, one a line, names in plain words."""
    indent = "  " * depth
    for key, value in tree.items():
        name = escaped(str(key)).replace("_", " ")
        if isinstance(value, Mapping):
            if value:
                yield f"{indent}{name}"
                yield from _lines(value, depth + 1)
        elif isinstance(value, list):
            if value:
                yield f"{indent}{name}"
            for each in value:
                if isinstance(each, Mapping):
                    facts = (
                        f"{escaped(str(part)).replace('_', ' ')} {_fact(part, fact)}" for part, fact in each.items()
                    )
                    yield f"{indent}  - {', '.join(facts)}"
                else:
                    yield f"{indent}  - {_fact(key, each)}"
        else:
            yield f"{indent}{name}: {_fact(key, value)}"


def _fact(name: object, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ", ".join(escaped(str(each)) for each in value)
    if isinstance(value, bool) or (name == "short_of_cpu" and not value):
        return "yes" if value else "no"
    if isinstance(value, int) and name != "pid":
        return count(value)
    if isinstance(value, float):
        return _number(str(name), value)
    return escaped(str(value))


def _number(name: str, value: float) -> str:
    if name.endswith("_ratio"):
        return share(value)
    if name.endswith("_seconds"):
        return duration(value) if value < 100 else age(value)
    return f"{value:,.4g}"
