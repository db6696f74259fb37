"""``specmine functions``: every function known, where it stands, and how long its calls take."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.documents import Entry
from specmine.analysis.wording.function_order import SORTS
from specmine.analysis.wording.levels import present
from specmine.analysis.wording.states import LISTED, STATES, counted, group_of
from specmine.cli.base.options import choice_options, globs_option, reading_options
from specmine.cli.base.output import emit, width
from specmine.cli.base.sources import read_functions, read_trends
from specmine.cli.base.typography import speaks_unicode, typeset
from specmine.cli.text.function_names import matching, no_match
from specmine.cli.text.functions import table
from specmine.daemon.documents.json_text import json_text

if TYPE_CHECKING:
    from specmine.store import Where

_FIELDS = (
    "function", "program", "module", "build_id", "build", "state", "reason", "needed", "calls", "calls_exact",
    "rate_per_second", "time_share", "idle_share", "utility", "observations", "grade", "price_ns", "verdict",
    "quantiles", "observed", "violations",
)  # fmt: skip


_WIDE, _HOURS = 100, 6
"""Columns from which trends have room, and how long they are."""


@click.command("functions", short_help="Every function: state, calls, durations.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    metavar="STATE",
    help=f"Only functions in this state: {', '.join(STATES)}; may be repeated.",
)
@globs_option
@click.option("--sort", type=click.Choice(list(SORTS)), default="state", show_default=True, help="Order of the rows.")
@click.option("--all", "everything", is_flag=True, help="Those that wait or cannot be timed too.")
@choice_options
@reading_options
def command(
    states: tuple[str, ...],
    globs: tuple[str, ...],
    sort: str,
    everything: bool,
    program: str | None,
    build: str | None,
    store: Where | None,
    socket: Path | None,
    form: str,
) -> None:
    """List the functions, a row each: state, calls a second, median, 99 % quantile, share of time.

    What is violated comes first. TIME is the function's share of the program's wall-clock time, waiting included.
    `specmine show FUNCTION` says why a function is in its state.
    """
    entries = read_functions(store, socket, program, build)
    named = [each for each in entries if not globs or any(matching([each], glob) for glob in globs)]
    if globs and not named:
        raise no_match(entries, *globs)
    chosen = [each for each in named if not states or each.get("state") in states]
    if form == "json":
        listing = [{name: each.get(name) for name in _FIELDS if name in each} for each in chosen]
        emit(json_text({"schema": "specmine.functions/1", "functions": listing}))
        return
    if not chosen:
        emit("No function to show.\n")
        return
    asked = everything or bool(states or globs)
    shown = [each for each in chosen if asked or group_of(each) in LISTED or present(each)] or chosen
    hidden = len(chosen) - len(shown)
    more = f"{hidden} {'is' if hidden == 1 else 'are'} not listed here: --all." if hidden else ""
    trends = _trends(shown, store, socket) if width() >= _WIDE and speaks_unicode() else {}
    said = " ".join(filter(None, (counted(chosen), more, "Why: specmine show FUNCTION.")))
    emit(
        typeset("\n".join([*table(shown, width(), sort=sort, trends=trends), "", *textwrap.wrap(said, width())]) + "\n")
    )


def _trends(entries: Sequence[Entry], store: Where | None, socket: Path | None) -> Mapping[str, Any]:
    """Return how the medians of those went that were timed, the first ones; {} where no windows are kept."""
    keys = [str(each["key"]) for each in sorted(entries, key=SORTS["state"]) if each.get("key") and present(each)]
    return read_trends(store, socket, keys, _HOURS) if keys else {}
