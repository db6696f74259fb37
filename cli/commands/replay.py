"""``specmine replay``: repeat every decision of a recording."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.analysis.documents import functions_of
from specmine.cli.base.exit_codes import data_code
from specmine.cli.base.options import PATH, config_option, output_option, result_format_option
from specmine.cli.base.output import destination, write_stderr
from specmine.cli.text.assertions import is_asserted

from .mine import form_of, result_text


@click.command("replay", short_help="Mine again from a recording.")
@click.argument("file", type=PATH)
@config_option
@output_option
@result_format_option
def command(file: Path, config: Path | None, output: Path | None, form: str | None) -> int:
    """Mine again from FILE, a recording of `record` or `mine --record`, and print the same specification.

    Every decision is made again and compared with the recorded one. The first that differs is an error. With --config
    other settings decide, on data that was collected under the old ones.

    Exit code 3 if nothing became stable.
    """
    from specmine.daemon.config.loader import load_config  # noqa: PLC0415
    from specmine.daemon.config.settings import settings_of  # noqa: PLC0415
    from specmine.daemon.replay import replay  # noqa: PLC0415

    settings = None
    if config is not None:
        settings = settings_of(load_config(config))
        write_stderr(f"specmine: open loop: {config} decides now, but could not choose what was recorded")
    with destination(output) as write:
        document = replay(file, settings=settings)
        write(result_text(document, form_of(form, output)))
    return data_code(any(map(is_asserted, functions_of(document))))
