"""What the shell completes after TAB: names of functions, programs and builds, as the daemon or a store knows them."""

from __future__ import annotations

from collections.abc import Callable

import click

from specmine.analysis.documents import Entry, document_in, functions_of, is_store

VARIABLE = "_SPECMINE_COMPLETE"
"""The scripts set it to ``SHELL_source`` or ``SHELL_complete``."""
TIMEOUT_S = 1.0
_UNDECIDED = ("candidate", "excluded", "refused")

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _known(context: click.Context) -> list[Entry]:
    """Return the functions of the store or the socket on the command line, else of this host's daemon."""
    from specmine.daemon.socket.client import DEFAULT_SOCKET, DaemonConnection  # noqa: PLC0415

    store = context.params.get("store")
    if store is not None:
        return functions_of(document_in(store)) if is_store(store) else []
    connection = DaemonConnection(context.params.get("socket") or DEFAULT_SOCKET, timeout_s=TIMEOUT_S)
    try:
        return functions_of(connection.ask({"command": "specification"}))
    finally:
        connection.close()


def _completer(names: Callable[[Entry], list[str]]) -> Completer:
    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        try:
            entries = _known(context)
        except Exception:  # whatever is wrong: TAB completes nothing, and prints nothing
            return []
        program = context.params.get("program") if parameter.name != "program" else None
        chosen = [each for each in entries if program in {None, str(each.get("program")), str(each.get("module"))}]
        found = dict.fromkeys(name for each in chosen for name in names(each) if name and name.isprintable())
        return [name for name in found if name.startswith(begun)]

    return complete


functions: Completer = _completer(
    lambda each: [str(each.get("function") or "")] if each.get("state") not in _UNDECIDED else []
)
"""Functions that have numbers or an assertion: candidates are hundreds, and have nothing to show."""
programs: Completer = _completer(lambda each: str(each.get("program") or each.get("module") or "").split(","))
builds: Completer = _completer(lambda each: [str(each.get("build") or str(each.get("build_id") or "")[:12])])
