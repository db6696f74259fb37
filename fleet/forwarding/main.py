"""``specmined-forward``: sends what specmined learned on this host to the fleet. Started by a timer, it ends soon."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from specmine.daemon.config.loader import load_config
from specmine.daemon.config.tree import Config, FleetSettings
from specmine.daemon.main import DEFAULT_CONFIG
from specmine.mining.fleet.duty import Purpose
from specmine.model.clock import SystemClock
from specmine.model.errors import HostError, InputError, NoData, SpecmineError
from specmine.model.text import escaped
from specmine.store.outbox import Outbox, OutboxCorrupt
from specmine.store.sqlite import SqliteStore

from .arguments import parser
from .contact import Contact, send
from .receiving import receive
from .taking import lost_push, take

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LEARNING_S = 60.0
"""From contact to contact while a host learns for the fleet."""
MOST_LEARNING = 14
"""So many such contacts follow at most, unless it goes on anyway."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it and return the exit code: 0 fine; 2 wrong usage, or the fleet does not answer; 4 a package is missing."""
    parsed = parser().parse_args(arguments)
    try:
        config, contacts = _config(parsed.config), 0
        every_s = config.fleet.every_ns * 1e-9
        soon_s = min(every_s, LEARNING_S)
        while True:
            try:
                contact = forward(config)
                _print(contact)
                rest_s = soon_s if contact.learning else every_s
                ended = not (parsed.while_learning and contact.learning and contacts < MOST_LEARNING)
            except SpecmineError as error:
                if not parsed.repeat:
                    raise
                rest_s, ended = random.uniform(0.2, 3.0) * every_s, True
                print(f"specmined-forward: {escaped(str(error))}", file=sys.stderr, flush=True)
            if ended and not parsed.repeat:
                return 0
            contacts += 1
            time.sleep(rest_s)
    except SpecmineError as error:
        print(f"specmined-forward: {escaped(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def forward(config: Config) -> Contact:
    """Take what is new in the store, and send what waits; what cannot be sent now waits for the next time.

    Raises
    ------
    SpecmineError
        If there is no store yet, or the fleet does not answer.
    """
    fleet = config.fleet
    if fleet.connect is None:
        raise InputError("fleet.connect is off", remedy="say where the fleet is, as specmine fleet enroll printed it")
    folder = Path(fleet.spool_folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}", remedy="see fleet.spool_folder") from error
    path = folder / "outbox.db"
    try:
        return _forwarded(config, fleet, Outbox(path))
    except OutboxCorrupt as error:
        outbox, where = Outbox.begun_anew(path)
        print(
            f"specmined-forward: {escaped(error.message)}; {where}, beginning a new one. What waited there is lost:"
            " of the calls in the store it is not known which were sent",
            file=sys.stderr,
            flush=True,
        )
        return _forwarded(config, fleet, outbox)


def _forwarded(config: Config, fleet: FleetSettings, outbox: Outbox) -> Contact:
    with outbox:
        skip = outbox.replaces
        store = Path(config.store.path)
        if not store.exists():
            raise NoData(f"there is no store {store} yet", remedy="start specmined first")
        with SqliteStore.open(store, read_only=True) as opened:
            functions, more = 0, True
            while more:
                taken = take(opened, outbox, skip=skip)
                functions, more = functions + taken.functions, taken.more
                outbox.bound(fleet.spool_bytes, lost_push())
        if skip:
            outbox.put([lost_push()], source=outbox.source)
            outbox.forget_replaced()
        outbox.bound(fleet.spool_bytes, lost_push())
        return _contact(outbox, fleet, functions)


def _contact(outbox: Outbox, fleet: FleetSettings, functions: int) -> Contact:
    try:
        from specmine.fleet.database.pushing import Credentials, HostConnection  # noqa: PLC0415  33 ms, if it is there
    except ModuleNotFoundError as error:
        raise HostError(
            f"the fleet needs the package {error.name}", remedy="install it with: pip install 'specmine[fleet]'"
        ) from error
    assert fleet.connect is not None
    files = Credentials(
        certificate=Path(fleet.certificate), key=Path(fleet.private_key), authority=Path(fleet.authority)
    )
    boot_id, clock = _BOOT_ID.read_text(encoding="ascii").strip(), SystemClock()
    with HostConnection(fleet.connect, fleet.role, files) as connection:
        contact = send(outbox, connection, boot_id, clock.now_ns)
        if fleet.mode == "share":
            received = receive(Path(fleet.spool_folder), connection, boot_id, clock.now_ns)
            duties = received.duties if received is not None else ()
            scouts = any(each.purpose is Purpose.SCOUT for each in duties)
            return replace(
                contact, duties=len(duties) if received is not None else None, learning=scouts or functions > 0
            )
        return contact


def _config(path: Path | None) -> Config:
    chosen = path or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    return load_config(chosen) if chosen else Config()


def _print(contact: Contact) -> None:
    if contact.streams_begun:
        print(
            "specmined-forward: the fleet has other content under our numbers, so a new stream began:"
            " this is a cloned host, or the database was restored from a backup",
            file=sys.stderr,
        )
    asked = f", asked for {contact.duties} functions" if contact.duties is not None else ""
    print(f"sent {contact.sent}, {contact.waiting} wait{asked}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
