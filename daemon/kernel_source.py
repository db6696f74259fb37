"""The live kernel side under a configuration."""

from __future__ import annotations

from collections.abc import Iterable

from specmine.daemon.config.tree import Config, Program
from specmine.daemon.host.cpu_limits import cpu_limits
from specmine.model.batch import Source
from specmine.probes.kernel.cache import DEFAULT, default_folder
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

DEFAULT_CACHE = DEFAULT


def selection_of(program: Program) -> Selection:
    """Return a choice of programs as the kernel side takes it."""
    return Selection(
        pid=program.pid or 0,
        exe=program.exe or "",
        unit=program.unit or "",
        cgroup=program.cgroup or "",
        users=program.user,
        name=program.name or "",
        may_come=True,
    )


def live_source(
    config: Config,
    selections: Iterable[Selection],
    *,
    watch: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    sampling: bool = True,
) -> Source:
    """Return the kernel side; nothing is loaded before its ``start``.

    Parameters
    ----------
    config : Config
        Of which the section ``kernel``, ``kill_switch`` and ``windows.max_open`` count.
    selections : iterable of Selection
    watch, ignore : tuple of str
        Globs over functions.
    sampling : bool
        False if nothing will be sampled before the end.
    """
    settings = SourceSettings(
        interpreter=config.kernel.interpreter,
        memory_bytes=config.kernel.memory_bytes,
        cache=str(default_folder()),
        watch=watch,
        ignore=ignore,
        sampling=sampling,
        waiting=config.kernel.waiting,
        wait_kind=config.kernel.wait_kind,
        max_open_ns=config.windows.max_open_ns,
        kill_switch=config.kill_switch,
    )
    return BpfSource(selections, settings, cpu_limits=cpu_limits())
