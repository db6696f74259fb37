"""What the kernel side needs to know besides the choice of programs."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.probes.kernel.loader import LINK_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Settings of the kernel side; the daemon makes them from its configuration."""

    interpreter: str = "/usr/bin/python3"
    """A Python that has bcc."""
    memory_bytes: int = 64 << 20
    links: tuple[str, ...] = LINK_KINDS
    """Kinds of link to try, best first."""
    cache: str = ""
    """Folder for compiled programs and this boot's calibration; '' for none."""
    watch: tuple[str, ...] = ()
    """Globs of functions to watch; they replace sample."""
    ignore: tuple[str, ...] = ()
    isolate: bool = True
    """False: no probes go off for another function's sake; durations they spoil are kept, with their uncertainty."""
    max_open_ns: int = 10_000_000_000
    """A call that has not returned after this time is given up as censored."""
    sampling: bool = True
    """False: nothing will be sampled; what does it is not loaded, since that takes a second."""
    waiting: bool = True
    """False: timed calls are not split into running, waiting and blocked."""
    wait_kind: bool = True
    """False: it is never looked where and for what calls wait."""
    kill_switch: str = ""
    """While there is a file of this path no probe is on; '' for no switch."""
