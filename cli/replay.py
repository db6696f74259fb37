"""``specmine replay``: repeat every decision of a recording."""

from __future__ import annotations

from pathlib import Path

import click

from .exits import learned
from .mine import result_text
from .options import PATH, config_option, output_option, result_format_option
from .output import OutputFile, complain, emit
from .reading import functions_of
from .stating import is_asserted


@click.command("replay", short_help="Mine again from a recording.")
@click.argument("file", type=PATH)
@config_option
@output_option
@result_format_option
def command(file: Path, config: Path | None, output: Path | None, form: str | None) -> int:
    """Mine again what `mine --record` or `record` saw in FILE, and print the same specification.

    Every decision is made again and compared; the first that differs is an error. With --config other
    settings decide, over data that was collected under the old ones.

    Exits with 3 if nothing became stable.
    """
    from specmine.daemon.configfile import load_config  # noqa: PLC0415
    from specmine.daemon.replay import replay  # noqa: PLC0415
    from specmine.daemon.settings import settings_of  # noqa: PLC0415

    settings = None
    if config is not None:
        settings = settings_of(load_config(config))
        complain(f"specmine: open loop: {config} decides now, but could not choose what was recorded")
    if output is None:
        document = replay(file, settings=settings)
        emit(result_text(document, form or "text"))
    else:
        with OutputFile(output) as target:
            document = replay(file, settings=settings)
            target.write(result_text(document, form or "json"))
    return learned(any(map(is_asserted, functions_of(document))))
