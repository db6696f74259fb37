"""What a configuration would watch now, for ``specmined --check-config``: nothing is attached."""

from __future__ import annotations

import os
from collections.abc import Iterator

from specmine.model.errors import SpecmineError
from specmine.model.text import escaped
from specmine.probes.process import proc
from specmine.probes.process.selection import Selection, belongs, check_choice

from .config.tree import Config
from .kernel_source import selection_of

_SHOWN = 5


def preview(config: Config) -> Iterator[str]:
    """Yield a line for each program: how many processes it has now, or why it cannot be watched."""
    if not config.programs:
        yield "no program is named, so specmined would not start: name one under programs"
    for program in config.programs:
        selection = selection_of(program)
        name = escaped(selection.shown)
        try:
            awaited = check_choice(selection)
        except SpecmineError as error:
            yield f"{name}: cannot be watched: {escaped(str(error))}"
            continue
        pids = _processes(selection) if not awaited else []
        shown = ", ".join(map(str, pids[:_SHOWN])) + (", ..." if len(pids) > _SHOWN else "")
        if pids:
            count = f"{len(pids)} process{'' if len(pids) == 1 else 'es'}"
            yield f"{name}: {count} now ({shown}), and those that start later"
        else:
            yield f"{name}: {escaped(awaited) or 'no process now; those that start later are watched'}"


def _processes(selection: Selection) -> list[int]:
    """Return the pids that a choice names now."""
    status = os.stat(selection.exe) if selection.exe else None
    file = (status.st_dev, status.st_ino) if status else None
    return [each.pid for each in proc.processes() if not each.zombie and belongs(selection, each.pid, file)]
