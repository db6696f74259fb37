"""Where the reading commands get the specification from: a running daemon or a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specmine.analysis.documents import Document, Entry, document_in, functions_of, is_store, pick_build
from specmine.cli.text.function_names import of_program_and_build, with_labels
from specmine.model.errors import InputError, SpecmineError

if TYPE_CHECKING:
    from specmine.store import Where


def read_document(store: Where | None, socket: Path | None) -> Document:
    """Return the specification with all details.

    Raises
    ------
    InputError
        If no daemon answers, or the store cannot be read.
    NoData
        If nothing has been learned yet.
    """
    one_place(store, socket)
    document = document_in(store) if store else _ask(socket, {"command": "specification", "detail": True})
    if not isinstance(document.get("functions"), list):
        raise InputError(f"{store or 'the daemon'} gave no specification")
    return document


def read_functions(
    store: Where | None, socket: Path | None, program: str | None = None, build: str | None = None
) -> list[Entry]:
    """Return the functions of a program and build, with the label of their build.

    Raises
    ------
    InputError
        If there is no such program or build.
    """
    return functions_in(read_document(store, socket), store, program, build)


def functions_in(document: Document, store: Where | None, program: str | None, build: str | None) -> list[Entry]:
    """Return the functions of a program and build in a document, with the label of their build.

    Raises
    ------
    InputError
        If there is no such program or build.
    """
    entries = functions_of(document)
    if store is not None:
        entries = with_labels(entries, _labels(store))
    labels = {str(each["build_id"]): str(each["build"]) for each in entries if each.get("build")}
    return of_program_and_build(entries, program, build, labels)


def build_id_of(build: str, store: Where | None, socket: Path | None) -> str:
    """Return the build-id that a label stands for; what is no label is an id, or the beginning of one."""
    if store is not None:
        labels = _labels(store)
    else:
        entries = functions_of(_ask(socket, {"command": "functions"}))
        labels = {str(each["build_id"]): str(each["build"]) for each in entries if each.get("build")}
    named = [known for known, label in labels.items() if label == build]
    return named[0] if len(named) == 1 else build


def _labels(store: Where) -> dict[str, str]:
    from specmine.store import Build, read_store  # noqa: PLC0415

    if not is_store(store):
        return {}
    with read_store(store) as opened:
        return {each.build_id: each.label for each in opened.read(Build) if each.label}


def read_status(socket: Path | None) -> Document:
    """Return what the daemon says of itself."""
    return _ask(socket, {"command": "status"})


def read_violations(store: Where | None, socket: Path | None) -> Document:
    """Return ``specmine.violations/1``: of the daemon those that are open or closed lately, of a store all.

    Raises
    ------
    InputError
        If no daemon answers, or the store cannot be read.
    """
    one_place(store, socket)
    if store is None:
        return _ask(socket, {"command": "violations"})
    from specmine.analysis.violations import violations_in  # noqa: PLC0415

    return violations_in(store)


def read_trend(store: Where | None, socket: Path | None, keys: Sequence[str], hours: float) -> Document:
    """Return ``specmine.trend/1`` of one function; {} where no windows are kept."""
    from specmine.daemon.documents.trend import MOST_BUILDS, stated_formulas, trend_of  # noqa: PLC0415
    from specmine.store import read_store  # noqa: PLC0415

    asked = list(keys)[:MOST_BUILDS]
    try:
        if store is None:
            return _ask(socket, {"command": "trend", "functions": asked, "hours": hours})
        if not is_store(store):
            return {}
        with read_store(store) as opened:
            stated = stated_formulas(opened.document("specification"), asked)
            return trend_of(opened, asked, None, int(hours * 3_600e9), stated)
    except SpecmineError:
        return {}


def read_trends(store: Where | None, socket: Path | None, keys: Sequence[str], hours: float) -> Document:
    """Return ``specmine.trends/1`` of functions, of not more than are told at once; {} where no windows are kept."""
    from specmine.daemon.documents.trend import MOST_TRENDS, trends_of  # noqa: PLC0415
    from specmine.store import read_store  # noqa: PLC0415

    asked = list(keys)[:MOST_TRENDS]
    try:
        if store is None:
            return _ask(socket, {"command": "trends", "functions": asked, "hours": hours})
        if not is_store(store):
            return {}
        with read_store(store) as opened:
            return trends_of(opened, asked, None, int(hours * 3_600e9))
    except SpecmineError:
        return {}


def ask_daemon(socket: Path | None, request: Mapping[str, Any], *, patient: bool = True) -> dict[str, Any]:
    """Return the daemon's answer to a request; who is not patient waits for a few seconds only."""
    from specmine.daemon.socket.client import DEFAULT_SOCKET, ask  # noqa: PLC0415

    return _ask(socket, request) if patient else ask(socket or DEFAULT_SOCKET, request)


def send_label(build: str, name: str, store: Path | None, socket: Path | None) -> str:
    """Give a build a label and return its whole build-id; ``build`` may be a beginning of it.

    Raises
    ------
    InputError
        If the build is unknown, or several begin like that.
    """
    one_place(store, socket)
    if store is None:
        result = _ask(socket, {"command": "label", "build": build, "name": name})
        return str(result.get("build_id", build))
    from specmine.model.clock import utc_ns  # noqa: PLC0415
    from specmine.store import Build, Writes, open_store  # noqa: PLC0415

    if not store.is_file():
        raise InputError(f"there is no store {store}")
    with open_store(store) as opened:
        known = sorted({each.build_id for each in opened.read(Build)})
        chosen = pick_build(known, build)
        opened.write(Writes((Build(build_id=chosen, label=name),)), utc_ns())
    return chosen


def place_of(
    store: Path | None, fleet: str | None, labels: tuple[str, ...], host: str | None, since: str | None
) -> Where | None:
    """Return what ``--store`` or ``--fleet`` names. Raises UsageError if both do, or a filter comes without a fleet."""
    if fleet is None:
        if labels or host is not None or since is not None:
            raise click.UsageError("--label, --host and --since choose a part of a --fleet.")
        return store
    if store is not None:
        raise click.UsageError("--store names a file, --fleet a database: choose one.")
    from specmine.fleet.place import fleet_place  # noqa: PLC0415

    return fleet_place(fleet, labels, host, since)


def one_place(store: Where | None, socket: Path | None) -> None:
    """Raise UsageError if both a store and a socket are given."""
    if store is not None and socket is not None:
        raise click.UsageError("--store names a file, --fleet a database, --socket a daemon: choose one.")


def _ask(socket: Path | None, request: Mapping[str, Any]) -> dict[str, Any]:
    from specmine.daemon.socket.client import DEFAULT_SOCKET, PATIENCE_S, ask  # noqa: PLC0415

    return ask(socket or DEFAULT_SOCKET, request, timeout_s=PATIENCE_S)
