"""``specmine mine``: learn a specification from a running program, here and now."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import functions_of
from specmine.analysis.wording.assertions import is_asserted, wrapped
from specmine.analysis.wording.levels import present
from specmine.analysis.wording.reasons import grouped
from specmine.analysis.wording.states import counted
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import PATH, check_selection, output_option, program_options, result_format_option
from specmine.cli.base.output import check_writable, destination, width, write_stderr
from specmine.cli.base.typography import typeset
from specmine.cli.runners.progress import Progress, wants_live
from specmine.cli.text.functions import table
from specmine.cli.text.specification import busiest_first, specification
from specmine.cli.text.suggestions import did_you_mean
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import HostError, InputError

MOST_SHOWN = 12
"""Functions that are listed where nothing is asserted."""


@click.command(
    "mine",
    short_help="Learn assertions from a running program.",
    context_settings={"allow_interspersed_args": False},
)
@program_options
@click.option("--store", type=PATH, metavar="FILE", help="Continue from this store, and store the result there.")
@click.option("--record", type=PATH, metavar="FILE", help="Record all inputs of the mining, for `specmine replay`.")
@output_option
@result_format_option
def command(output: Path | None, form: str | None, **given: Any) -> int:
    """Mine performance assertions from a running program, or from CMD.

    Mining ends after --duration, when the program ends, or at ^C. Then the result is shown. A second ^C stops at once,
    without a result. CMD runs as the user who called sudo. Its output goes to standard error.

    Exit code 3 if nothing became stable.
    """
    check_options(**given)
    with destination(output, never_lost=True) as write:
        document = run_mining(**given)
        write(result_text(document, form_of(form, output)))
    if output is not None:
        write_stderr(f"specmine: wrote {output}: {counted(functions_of(document))}")
    return data_code(any(map(is_asserted, functions_of(document))))


def check_options(
    *, pid: int | None, exe: Path | None, unit: str | None, command: tuple[str, ...], user: str | None,
    store: Path | None, record: Path | None, **_: Any,
) -> None:  # fmt: skip
    """Find what is wrong with the options before anything starts.

    Raises
    ------
    UsageError, InputError
        With what is wrong.
    """
    check_selection(pid, exe, unit, command, user)
    for path, what in ((store, "the store"), (record, "the recording")):
        if path is not None:
            check_writable(path, what)


def run_mining(
    *, pid: int | None, exe: Path | None, unit: str | None, command: tuple[str, ...], duration: float | None,
    budget: float | None, functions: tuple[str, ...], ignore: tuple[str, ...], user: str | None,
    config: Path | None, store: Path | None, record: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """Mine with live progress and return the specification.

    Signals are caught from the first: an interrupt while this imports what mines ends the mining in order.

    Raises
    ------
    InputError
        There is no such program, or it has none of the functions that were named.
    HostError
        Privilege is missing: known before what mines is imported, which takes a second.
    """
    with Progress(duration_s=duration, live=wants_live(command)) as progress:
        from specmine.daemon.config.loader import load_config  # noqa: PLC0415
        from specmine.daemon.config.tree import Config  # noqa: PLC0415
        from specmine.probes.kernel.privilege import check_bpf  # noqa: PLC0415

        try:
            check_bpf((load_config(config) if config else Config()).kernel.interpreter)
        except HostError:
            _check_there(pid, exe)
            raise
        from specmine.daemon.foreground import MineOptions, mine  # noqa: PLC0415

        options = MineOptions(
            pid=pid,
            exe=exe,
            unit=unit,
            command=command,
            duration_s=duration,
            budget=budget,
            functions=functions,
            ignore=ignore,
            store=store,
            record=record,
            user=user,
            config=config,
        )
        result = mine(options, progress)
    if result.unnamed:
        hint = "".join(did_you_mean(each, result.names) for each in functions)
        raise InputError(f"no function of the program matches {' or '.join(functions)}{hint}")
    return dict(result.document)


def _check_there(pid: int | None, exe: Path | None) -> None:
    """Raise InputError if there is no such program: that is wrong with any privilege."""
    from specmine.probes.process.selection import Selection, check_choice  # noqa: PLC0415

    if pid is not None or exe is not None:
        with suppress(HostError):
            check_choice(Selection(pid=pid or 0, exe=os.path.realpath(exe) if exe else ""))


_NEXT = "Next: a longer --duration, a larger --budget, or --function NAME to learn few functions."


def form_of(form: str | None, output: Path | None) -> str:
    """Return the format of a result: the one asked for, else text for people and JSON into a file."""
    return form or ("text" if output is None else "json")


def result_text(document: dict[str, Any], form: str) -> str:
    """Return a specification as text for people or as canonical JSON.

    Where nothing is asserted the text has a row for each of the busiest functions that were called, and says why.
    """
    if form == "json":
        return json_text(document)
    entries = functions_of(document)
    nothing = bool(entries) and not any(map(is_asserted, entries))
    lines = specification(document, width(), timed=not nothing)
    if nothing:
        busiest = busiest_first(entries)
        called = [each for each in busiest if present(each).get("p50")] or busiest
        lines += ["", *table(called[:MOST_SHOWN], width(), sort="time"), ""]
        for text in grouped(busiest):
            lines += wrapped(text, width(), hang="    ")
        if not isinstance((document.get("collection") or {}).get("source"), dict):
            lines += ["", *wrapped(_NEXT, width(), hang="    ")]
    return typeset("\n".join(lines) + "\n")
