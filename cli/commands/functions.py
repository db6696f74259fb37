"""``specmine functions``: every function known, its state, why it is in it and what would move it on."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from specmine.analysis.documents import functions_of
from specmine.cli.base.options import globs_option, reading_options
from specmine.cli.base.output import emit, json_text, width
from specmine.cli.base.sources import read_document
from specmine.cli.text.assertions import STATES, summary
from specmine.cli.text.function_names import matching
from specmine.cli.text.functions import table

_FIELDS = (
    "function", "module", "build_id", "state", "reason", "needed", "calls", "calls_exact", "rate_per_second",
    "time_share", "utility", "observations", "grade", "price_ns", "verdict",
)  # fmt: skip


@click.command("functions", short_help="Every function, its state, and why.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    metavar="STATE",
    help=f"Only functions in this state: {', '.join(STATES)}; may be repeated.",
)
@globs_option
@reading_options
def command(
    states: tuple[str, ...], globs: tuple[str, ...], store: Path | None, socket: Path | None, form: str
) -> None:
    """List the functions: state, calls a second, share of time, utility, the reason of the state, and the next step.

    TIME is the function's share of the program's wall-clock time, waiting included. UTILITY is how much the next
    observation would teach: from 0, nothing, to 1.
    """
    entries = functions_of(read_document(store, socket))
    chosen = [each for each in entries if not states or each.get("state") in states]
    if globs:
        chosen = [each for each in chosen if any(matching([each], glob) for glob in globs)]
    if form == "json":
        listing = [{name: each.get(name) for name in _FIELDS if name in each} for each in chosen]
        emit(json_text({"schema": "specmine.functions/1", "functions": listing}))
    else:
        lines = [*table(chosen, width()), "", *textwrap.wrap(summary(chosen), width())] if chosen else []
        emit("\n".join(lines or ["No function to show."]) + "\n")
