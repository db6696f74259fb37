"""``specmine record`` and ``specmine replay``: mine, and write the inputs; repeat every decision of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import functions_of
from specmine.analysis.wording.assertions import is_asserted
from specmine.analysis.wording.states import counted
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import PATH, config_option, output_option, program_options, result_format_option
from specmine.cli.base.output import destination, write_stderr
from specmine.model.text import plural, size

from .mine import check_options, form_of, result_text, run_mining


@click.command(
    "record",
    short_help="Record a program for later replay.",
    context_settings={"allow_interspersed_args": False},
)
@program_options
@click.option("--output", type=PATH, metavar="FILE", required=True, help="The recording.")
def record(output: Path, **given: Any) -> int:
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
    write_stderr(f"specmine: wrote {output} ({written}, {plural(observations, 'observation')}): {counted(entries)}")
    return data_code(observations > 0)


@click.command("replay", short_help="Mine again from a recording.")
@click.argument("file", type=PATH)
@config_option
@output_option
@result_format_option
def replay(file: Path, config: Path | None, output: Path | None, form: str | None) -> int:
    """Mine again from FILE, a recording of `record` or `mine --record`, and print the same specification.

    Every decision is made again and compared with the recorded one. The first that differs is an error. With --config
    other settings decide, on data that was collected under the old ones.

    Exit code 3 if nothing became stable.
    """
    from specmine.daemon.config.loader import load_config  # noqa: PLC0415
    from specmine.daemon.config.settings import settings_of  # noqa: PLC0415
    from specmine.daemon.replay import replay as repeated  # noqa: PLC0415

    settings = None
    if config is not None:
        settings = settings_of(load_config(config))
        write_stderr(f"specmine: open loop: {config} decides now, but could not choose what was recorded")
    with destination(output) as write:
        document = repeated(file, settings=settings, report=lambda text: write_stderr(f"specmine: {text}"))
        write(result_text(document, form_of(form, output)))
    return data_code(any(map(is_asserted, functions_of(document))))
