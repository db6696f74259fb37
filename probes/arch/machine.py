"""Choose the machine."""

from __future__ import annotations

import platform
from functools import cache

from specmine.model.errors import HostError

from .interface import Machine
from .x86_64.machine import X86_64

_MACHINES = (X86_64,)


@cache
def machine() -> Machine:
    """Return the machine that this process runs on. Raises HostError for one that has no folder here."""
    name = platform.machine()
    for supported in _MACHINES:
        if supported.name == name:
            return supported
    titles = ", ".join(supported.title for supported in _MACHINES)
    raise HostError(f"specmine cannot probe programs of {name}", remedy=f"run it on one of: {titles}")
