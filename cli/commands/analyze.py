"""``specmine analyze``: the same mining over durations that another tool recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from specmine.analysis.documents import Document, functions_of
from specmine.analysis.wording.assertions import is_asserted
from specmine.analysis.wording.states import counted
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import config_option, output_option, result_format_option
from specmine.cli.base.output import destination, write_stderr
from specmine.model.text import count, plural, share

from .mine import form_of, result_text

FORMATS = ("csv", "ndjson", "uftrace", "perf", "bpftrace", "otlp")
FIRST_AFTER_S, EVERY_S = 2.0, 5.0


@click.command("analyze", short_help="Mine durations that were recorded.")
@click.argument("file", metavar="FILE")
@click.option("--from", "form_of_file", type=click.Choice(FORMATS), help="Format of FILE.  [default: as it looks]")
@click.option("--skip-bad", is_flag=True, help="Count lines that cannot be read, instead of stopping at the first.")
@click.option(
    "--function", "functions", multiple=True, metavar="GLOB", help="Only functions of this name; may be repeated."
)
@config_option
@output_option
@result_format_option
def command(
    file: str,
    form_of_file: str | None,
    skip_bad: bool,
    functions: tuple[str, ...],
    config: Path | None,
    output: Path | None,
    form: str | None,
) -> int:
    """Mine performance assertions from durations that another tool recorded in FILE. - is standard input.

    Formats: CSV and NDJSON of durations, uftrace (dump --chrome, replay), text of perf script and bpftrace, and
    OpenTelemetry spans in OTLP JSON. docs/analyze.md says how to record them.

    Exit code 3 if nothing is stable.
    """
    with destination(output) as write:
        document = mine_file(file, form_of_file=form_of_file, skip_bad=skip_bad, functions=functions, config=config)
        write(result_text(dict(document), form_of(form, output)))
    if output is not None:
        write_stderr(f"specmine: wrote {output}: {counted(functions_of(document))}")
    return data_code(any(map(is_asserted, functions_of(document))))


def mine_file(
    file: str, *, form_of_file: str | None, skip_bad: bool, functions: tuple[str, ...], config: Path | None
) -> Document:
    """Return the specification that a recording leads to, with progress on standard error.

    Raises
    ------
    InputError
        If the file or the configuration cannot be read, or functions were named and none of them is there.
    """
    from specmine.analysis.mine_recording import analyze  # noqa: PLC0415
    from specmine.daemon.config.loader import load_config  # noqa: PLC0415
    from specmine.daemon.config.settings import settings_of  # noqa: PLC0415
    from specmine.daemon.config.tree import Config  # noqa: PLC0415
    from specmine.model.errors import InputError  # noqa: PLC0415

    settings = settings_of(load_config(config) if config else Config())
    found = analyze(
        file,
        wanted=form_of_file,
        skip_bad=skip_bad,
        functions=functions,
        settings=settings,
        progress=ReadProgress(time.monotonic),
    )
    if found.skipped:
        first = found.document["collection"]["source"]["first_skipped"]
        write_stderr(f"specmine: skipped {plural(found.skipped, 'bad line')}; line {first['line']}: {first['reason']}")
    for warning in found.document["collection"]["source"]["warnings"]:
        write_stderr(f"specmine: warning: {warning}")
    if functions and found.records and not found.document["functions"]:
        raise InputError(f"no function in {file} matches {' or '.join(functions)}")
    return found.document


class ReadProgress:
    """Reports on standard error how far reading is, if it takes long."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin to wait."""
        self._now = now
        self._next = now() + FIRST_AFTER_S

    def __call__(self, records: int, part: float | None) -> None:
        """Report if it is time to."""
        if self._now() >= self._next:
            self._next = self._now() + EVERY_S
            write_stderr(f"specmine: read {count(records)} calls" + (f" ({share(part)})" if part is not None else ""))
