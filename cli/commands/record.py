"""``specmine record``: mine, and write the inputs instead of the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import functions_of
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import PATH, program_options
from specmine.cli.base.output import write_stderr
from specmine.cli.text.assertions import summary
from specmine.model.text import plural, size

from .mine import check_options, run_mining


@click.command(
    "record",
    short_help="Record a program for later replay.",
    context_settings={"allow_interspersed_args": False},
)
@program_options
@click.option("--output", type=PATH, metavar="FILE", required=True, help="The recording.")
def command(output: Path, **given: Any) -> int:
    """Record what is observed of a running program, or of CMD, for `specmine replay` and for bug reports.

    A recording holds names of functions and files, times and counts. Nothing else of the program is read.

    Exit code 3 if the program ended before anything was observed.
    """
    everything = {**given, "store": None, "record": output}
    check_options(**everything)
    document = run_mining(**everything)
    entries = functions_of(document)
    observations = sum(int(each.get("observations") or 0) for each in entries)
    written = size(output.stat().st_size) if output.is_file() else "recording"
    write_stderr(f"specmine: wrote {output} ({written}, {plural(observations, 'observation')}): {summary(entries)}")
    return data_code(observations > 0)
