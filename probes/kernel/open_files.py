"""How many files a process may have open: known before anything is compiled."""

from __future__ import annotations

import resource

from specmine.model.errors import HostError

NEEDED = 256
"""The compiling child has 50 maps and programs at once, the holder a file for each probed function and more.

A child that reaches the limit may wait for ever: the compiler's threads do not report it.
"""


def check_open_files() -> None:
    """Raise HostError if this process, and so each of its children, may have too few files open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and limit < NEEDED:
        raise HostError(
            f"too many open files: {limit} are permitted, at least {NEEDED} are needed",
            remedy="raise the limit (ulimit -n)",
        )
