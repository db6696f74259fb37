"""``specmine violations``: what stopped being true, since when, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.wording.violations import is_open, is_problem
from specmine.cli.base import completion
from specmine.cli.base.exit_codes import FINE, VIOLATED
from specmine.cli.base.options import choice_options, reading_options
from specmine.cli.base.output import emit, width
from specmine.cli.base.sources import build_id_of, read_functions, read_violations
from specmine.cli.text.function_names import is_of_program, matching, no_match
from specmine.cli.text.violations import closed_line, portrait, short_of_cpu, table
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import NoData

if TYPE_CHECKING:
    from specmine.store import Where


@click.command("violations", short_help="What is slower than asserted, and why.")
@click.argument("function", required=False, shell_complete=completion.functions)
@click.option("--all", "everything", is_flag=True, help="Those that have closed too.")
@choice_options
@reading_options
def command(
    function: str | None,
    everything: bool,
    program: str | None,
    build: str | None,
    store: Where | None,
    socket: Path | None,
    form: str,
) -> int:
    """List the violations that are open; with FUNCTION, a name or a glob, show each in full.

    A violation is an assertion that stopped being true. It stays open until it holds again for a while
    (violations.recover_after), or until somebody acknowledges it.

    Exit code 1 while one is open that is slower.
    """
    document = read_violations(store, socket)
    found: list[Any] = list(document["violations"])
    if program is not None:
        found = [each for each in found if is_of_program(each, program)]
        short = [each for each in document.get("short_of_cpu") or () if is_of_program(each, program)]
        document = {**document, "short_of_cpu": short}
    if build is not None:
        wanted = build_id_of(build, store, socket)
        found = [each for each in found if str(each.get("build_id")).startswith(wanted)]
        if not found:
            read_functions(store, socket, None, build)  # an error if there is no such build
    if function is not None:
        found = matching(found, function) or _none_of(function, program, build, store, socket)
    shown = found if everything else [each for each in found if is_open(each)]
    code = VIOLATED if any(map(is_problem, found)) else FINE
    if form == "json":
        emit(json_text({**document, "violations": shown}))
        return code
    lines = [*short_of_cpu(document), *_text(shown, found, document.get("at"), full=function is not None)]
    emit("\n".join(lines) + "\n")
    return code


def _none_of(
    function: str, program: str | None, build: str | None, store: Where | None, socket: Path | None
) -> list[Any]:
    """Return no violation of a function that is known. Raises InputError if there is no such function."""
    try:
        known = read_functions(store, socket, program, build)
    except NoData:  # nothing was learned yet
        known = []
    if not matching(known, function):
        raise no_match(known, function)
    return []


def _text(shown: list[Any], found: list[Any], at: str | None, *, full: bool) -> list[str]:
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    columns, ascii_only = width(), encoding != "utf8"
    hidden = closed_line(len(found) - len(shown))
    if not shown:
        return [f"No violation is open. {hidden}".rstrip()]
    if not full:
        lines = table(shown, at, columns, ascii_only=ascii_only)
        return [*lines, *([hidden] if hidden else []), *_next(shown)]
    parts = [portrait(each, at, columns, ascii_only=ascii_only) for each in shown]
    lines = [line for part in parts for line in (*part, "")][:-1]
    return [*lines, *([hidden] if hidden else []), *_next(shown, acknowledge=True)]


def _next(shown: list[Any], *, acknowledge: bool = False) -> list[str]:
    opened = [each for each in shown if is_open(each)]
    if not opened:
        return []
    first = min(opened, key=_is_less_urgent)  # of equals the first that is shown
    verb = "acknowledge" if acknowledge else "violations"
    wanted = ", if it is wanted" if acknowledge else ""
    name = first["function"]
    return [f"Next: specmine {verb} {name}{wanted}"] if isinstance(name, str) and name else []


def _is_less_urgent(entry: Any) -> tuple[bool, bool]:
    """Tell whether somebody has to look at a violation later than at one that is slower, by itself."""
    return bool(entry.get("because")), not is_problem(entry)
