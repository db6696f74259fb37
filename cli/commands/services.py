"""``specmine web`` and ``specmine setup-service``: what runs on a host for long, and what it needs there."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path

import click

from specmine.cli.base.options import PATH, format_option, socket_option, store_option
from specmine.cli.base.output import emit, write_stderr
from specmine.cli.base.sources import one_place
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import HostError

LISTEN = "127.0.0.1:9753"
NEXT = (
    "Next: name a program in /etc/specmine/specmined.yaml, then\n"
    "  specmined --check-config && systemctl enable --now specmined && specmine status\n"
)


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
@click.option("--fleet", metavar="URL", help="One page of a fleet: hosts, levels, what is open where.")
def web(listen: str, user: str, store: Path | None, socket: Path | None, fleet: str | None) -> None:
    """Serve pages: what is wrong, all functions, one function, builds, host and cost.

    The process only reads: the daemon's socket, with --store a store, with --fleet the database of a fleet. Every page
    is also JSON, with ?format=json. It runs until ^C.
    """
    one_place(store, socket)
    if fleet is not None and (store is not None or socket is not None):
        raise click.UsageError("--fleet names a database, --store a file, --socket a daemon: choose one.")
    host, port = _address(listen)
    try:
        from specmine.web.documents import DaemonSource, Source, StoreSource  # noqa: PLC0415
        from specmine.web.server import serve, serve_app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise HostError(
            f"the page needs the package {error.name}", remedy="install it with: pip install 'specmine[web]'"
        ) from error
    from specmine.daemon.socket.client import DEFAULT_SOCKET  # noqa: PLC0415

    def tell(address: str) -> None:
        write_stderr(f"specmine: the page is at {address}")

    if fleet is not None:
        from specmine.fleet.overview import overview_of  # noqa: PLC0415
        from specmine.fleet.place import need_psycopg  # noqa: PLC0415
        from specmine.web.fleet_page import make_fleet_app  # noqa: PLC0415

        need_psycopg()
        overview_of(fleet)  # fails now if it does, and loads what it needs before root is given up
        serve_app(make_fleet_app(partial(overview_of, fleet), host), host, port, user=user, tell=tell)
        return
    source: Source = StoreSource(store) if store is not None else DaemonSource(socket or DEFAULT_SOCKET)
    serve(source, host, port, user=user, tell=tell)


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    return host.strip("[]") or "127.0.0.1", int(port)


@click.command("setup-service", short_help="Unit, configuration, manual and completion.")
@click.option("--root", type=PATH, default="/", metavar="FOLDER", help="Put the files below this folder.  [default: /]")
@click.option("--packaged", is_flag=True, help="Use the folders of a distribution's package, not /usr/local and /etc.")
@click.option("--commands", metavar="FOLDER", help="Where the commands are.  [default: of this installation]")
@click.option("--remove", "removing", is_flag=True, help="Remove the files; a changed configuration stays.")
@format_option
def setup_service(root: Path, packaged: bool, commands: str | None, removing: bool, form: str) -> None:
    """Put in place what makes an installation by pip a service, and print each file.

    These are the systemd units, a commented configuration, the daemon's user, alert rules, manual pages, and completion
    for bash, zsh and fish. A configuration that exists is kept. Debian's package has all of them already.
    """
    from specmine.cli.setup.files import LOCAL, PACKAGED, commands_folder, host_files  # noqa: PLC0415
    from specmine.cli.setup.installing import place, remove, unreachable  # noqa: PLC0415

    folder = commands or commands_folder()
    files = list(host_files(PACKAGED if packaged else LOCAL, folder))
    done = list((remove if removing else place)(root, files))
    if str(root) == "/":
        _apply(removing=removing)
    if form == "json":
        entries = [{"path": path, "action": action} for action, path in done]
        emit(json_text({"schema": "specmine.setup/1", "files": entries}))
        return
    emit("".join(f"{action:<9} {path}\n" for action, path in done))
    if removing or packaged:
        return
    closed = unreachable(folder)
    if closed is not None:
        write_stderr(
            f"specmine: the user of the daemon may not pass {closed}, so the unit cannot start {folder}/specmined; "
            "install specmine in /opt/specmine or with `pipx install --global`"
        )
    emit(NEXT)


def _apply(*, removing: bool) -> None:
    """Make the user of the daemon and let systemd read the units, where it runs."""
    commands = [["systemctl", "daemon-reload"]] if Path("/run/systemd/system").is_dir() else []
    if not removing:
        commands.insert(0, ["systemd-sysusers", "specmine.conf"])
    for each in commands:
        if shutil.which(each[0]) is None:
            write_stderr(f"specmine: there is no {each[0]} here; run `{' '.join(each)}` yourself")
        elif subprocess.run(each, check=False, stdin=subprocess.DEVNULL).returncode != 0:
            write_stderr(f"specmine: `{' '.join(each)}` failed")
