"""Switch all probes off and on, with the daemon's help or without it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specmine.cli.base.output import emit
from specmine.cli.base.sources import ask_daemon
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import InputError, NoData
from specmine.probes.holder.time_scale import TIME_SCALE

CONFIRMED_S = 3.0 * TIME_SCALE
"""The status of the daemon is up to a second old."""
_TEXT = {
    True: "All probes are off. `specmine on` lets them come back.",
    False: "Probes may be on again.",
}


def switch_probes(*, off: bool, socket: Path | None, file: Path | None, form: str) -> None:
    """Make or remove the kill switch, see that the daemon follows, and say so.

    Raises
    ------
    HostError
        If the file cannot be written.
    InputError
        If the daemon does not let us.
    NoData
        If it does not say within seconds that its probes are off, or does not say where its kill switch is.
    """
    from specmine.daemon.socket.client import NoAnswer, NoDaemon  # noqa: PLC0415
    from specmine.daemon.system.kill_switch import DEFAULT, switch  # noqa: PLC0415

    daemon = file is None
    path = file or DEFAULT
    if file is None:
        try:
            path = Path(str(ask_daemon(socket, {"command": "off" if off else "on"}, patient=False)["kill_switch"]))
        except NoAnswer as error:
            switch(DEFAULT, off=off)
            raise NoData(
                f"{error.message}, nor where its kill switch is; {_done(DEFAULT, off)}",
                remedy="if its configuration names another one: --file FILE",
            ) from error
        except NoDaemon:
            daemon = False
    seen: Seen | None = None
    if not daemon:
        # /run/specmine is there only while a daemon runs; a path of which more is missing is misspelt
        if off and file is not None and not file.parent.parent.is_dir():
            folder = file.parent.parent
            raise InputError(f"there is no folder {folder}", remedy="name the file of the daemon's kill_switch")
        switch(path, off=off)
        seen = _looked() if off else None
    elif not (left := _confirmed(off, socket)).done:
        what = "has not confirmed it" if left.breakpoints <= 0 else f"still sees {left.breakpoints} breakpoints"
        raise NoData(
            f"the daemon {what}; {_done(path, off)}, which its probes follow anyway",
            remedy="ask again: specmine status",
        )
    result: dict[str, Any] = {
        "schema": "specmine.switch/1",
        "probes": "off" if off else "on",
        "kill_switch": str(path),
        "confirmed": daemon,
        "breakpoints": (0 if daemon else seen.count if seen else None) if off else None,
    }
    note = "" if daemon else f" No daemon was asked; {_done(path, off)}."
    text = _TEXT[off] if seen is None else seen.text
    emit(json_text(result) if form == "json" else f"{text}{note}\n")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the code of all processes shows."""

    found: dict[int, int]
    """Breakpoints by process."""
    hidden: int
    """Processes that may not be looked at."""

    @property
    def count(self) -> int | None:
        """Breakpoints of all processes, None if not all could be looked at."""
        return None if self.hidden else sum(self.found.values())

    @property
    def text(self) -> str:
        """No more than was seen."""
        if self.found:
            pids = ", ".join(map(str, sorted(self.found)[:5])) + (" ..." if len(self.found) > 5 else "")
            return (
                f"The kill switch is on, but {sum(self.found.values())} breakpoints are in the code of {pids}: "
                "of another tool, or of a daemon with another switch."
            )
        if self.hidden:
            hidden = "1 process" if self.hidden == 1 else f"{self.hidden} processes"
            return f"The kill switch is on; {hidden} may not be looked at: run as root to see."
        return _TEXT[True]


@dataclass(frozen=True, slots=True)
class Left:
    """What a daemon says of its probes."""

    done: bool
    breakpoints: int = 0


def _looked() -> Seen:
    """Look at the code of all processes until no breakpoint is left, for some seconds at most."""
    from specmine.probes.safety.breakpoints import breakpoints_everywhere  # noqa: PLC0415

    end = time.monotonic() + CONFIRMED_S
    while True:
        seen = Seen(*breakpoints_everywhere())
        if not seen.found or time.monotonic() > end:
            return seen
        time.sleep(0.1)


def _done(path: Path, off: bool) -> str:
    return f"{path} is {'there' if off else 'not there'}"


def _confirmed(off: bool, socket: Path | None) -> Left:
    """Ask the daemon until its probes are on, or off with no breakpoint left in the programs' code."""
    from specmine.daemon.socket.client import NoDaemon  # noqa: PLC0415

    end, left = time.monotonic() + CONFIRMED_S, Left(False)
    while time.monotonic() < end:
        try:
            status = ask_daemon(socket, {"command": "status"}, patient=False)
        except (NoDaemon, NoData):  # it is only just starting, or ending
            status = {}
        breakpoints = status.get("breakpoints")
        left = Left(
            status.get("probes") == ("off" if off else "on") and (not off or breakpoints == 0), breakpoints or 0
        )
        if left.done:
            break
        time.sleep(0.05)
    return left
