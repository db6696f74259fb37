"""``specmine web``: the page."""

from __future__ import annotations

from pathlib import Path

import click

from specmine.cli.base.options import socket_option, store_option
from specmine.cli.base.output import write_stderr
from specmine.cli.base.sources import one_place
from specmine.model.errors import HostError

LISTEN = "127.0.0.1:9753"


@click.command("web", short_help="The same as pages for a browser.")
@click.option(
    "--listen",
    default=LISTEN,
    show_default=True,
    metavar="HOST:PORT",
    help="Where to listen. There is no login: let only a proxy that has one face a network.",
)
@click.option("--user", default="nobody", show_default=True, metavar="NAME", help="Whose rights root keeps.")
@store_option
@socket_option
def command(listen: str, user: str, store: Path | None, socket: Path | None) -> None:
    """Serve pages: what is wrong, all functions, one function, builds, host and cost.

    The process only reads: the daemon's socket, or with --store a store. Every page is also JSON, with ?format=json. It
    runs until ^C.
    """
    one_place(store, socket)
    host, port = _address(listen)
    try:
        from specmine.web.documents import DaemonSource, Source, StoreSource  # noqa: PLC0415
        from specmine.web.server import serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise HostError(
            f"the page needs the package {error.name}", remedy="install it with: pip install 'specmine[web]'"
        ) from error
    from specmine.daemon.socket.client import DEFAULT_SOCKET  # noqa: PLC0415

    source: Source = StoreSource(store) if store is not None else DaemonSource(socket or DEFAULT_SOCKET)
    serve(source, host, port, user=user, tell=lambda address: write_stderr(f"specmine: the page is at {address}"))


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    return host.strip("[]") or "127.0.0.1", int(port)
