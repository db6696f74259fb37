"""Switch all probes off and on, with the daemon's help or without it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from specmine.cli.base.output import emit, json_text
from specmine.cli.base.sources import ask_daemon
from specmine.model.errors import NoData

CONFIRMED_S = 3.0
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
            path = Path(str(ask_daemon(socket, {"command": "off" if off else "on"})["kill_switch"]))
        except NoAnswer as error:
            switch(DEFAULT, off=off)
            raise NoData(
                f"{error.message}, nor where its kill switch is; {_done(DEFAULT, off)}",
                remedy="if its configuration names another one: --file FILE",
            ) from error
        except NoDaemon:
            daemon = False
    if not daemon:
        switch(path, off=off)
    elif not _confirmed(off, socket):
        raise NoData(
            f"the daemon has not confirmed it; {_done(path, off)}, which its probes follow anyway",
            remedy="ask again: specmine status",
        )
    result: dict[str, Any] = {
        "schema": "specmine.switch/1",
        "probes": "off" if off else "on",
        "kill_switch": str(path),
        "confirmed": daemon,
    }
    note = "" if daemon else f" No daemon was asked; {_done(path, off)}."
    emit(json_text(result) if form == "json" else f"{_TEXT[off]}{note}\n")


def _done(path: Path, off: bool) -> str:
    return f"{path} is {'there' if off else 'not there'}"


def _confirmed(off: bool, socket: Path | None) -> bool:
    from specmine.daemon.socket.client import NoDaemon  # noqa: PLC0415

    end = time.monotonic() + CONFIRMED_S
    while time.monotonic() < end:
        try:
            if ask_daemon(socket, {"command": "status"}).get("probes") == ("off" if off else "on"):
                return True
        except (NoDaemon, NoData):  # it is only just starting, or ending
            pass
        time.sleep(0.05)
    return False
