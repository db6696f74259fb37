"""``specmine record``: mine, but keep what was seen instead of what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .exits import learned
from .mine import run_mining, selected
from .notation import plural, size
from .options import PATH, program_options
from .output import complain
from .reading import functions_of
from .stating import summary


@click.command(
    "record",
    short_help="Record a program for later replay.",
    context_settings={"allow_interspersed_args": False},
)
@program_options
@click.option("--output", type=PATH, metavar="FILE", required=True, help="The recording.")
def command(output: Path, **given: Any) -> int:
    """Record all that is seen of a running program, or of CMD, for `specmine replay` and for bug reports.

    A recording holds names of functions and files, times and counts; nothing else of the program is read.

    Exits with 3 if the program ended before anything was observed.
    """
    everything = {**given, "store": None, "record": output}
    selected(**everything)
    document = run_mining(**everything)
    entries = functions_of(document)
    observations = sum(int(each.get("observations") or 0) for each in entries)
    written = size(output.stat().st_size) if output.is_file() else "recording"
    complain(f"specmine: wrote {output} ({written}, {plural(observations, 'observation')}): {summary(entries)}")
    return learned(observations > 0)
