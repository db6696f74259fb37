"""The process that serves the page: reads, never writes, and gives up root before it listens to anybody."""

from __future__ import annotations

import os
import pwd
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from specmine.model.errors import InputError

from .app import make_app
from .documents import Source

MOST_CONNECTIONS = 64
IDLE_S = 10
SWITCH_S = 0.001
"""A request waits so long for the thread that reads documents, each time that it needs the interpreter."""
NOBODY = "nobody"


def serve(source: Source, host: str, port: int, *, user: str, tell: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Parameters
    ----------
    source : Source
    host, port : str, int
        Where to listen; port 0 takes any free one.
    user : str
        Whose rights to keep if started as root.
    tell : callable
        Gets the address once the page can be asked for.

    Raises
    ------
    InputError
        If the address cannot be used, or there is no such user.
    """
    serve_app(make_app(source, host), host, port, user=user, tell=tell, readable=lambda: _check_readable(source, user))


def serve_app(
    app: Starlette,
    host: str,
    port: int,
    *,
    user: str,
    tell: Callable[[str], None],
    readable: Callable[[], None] = lambda: None,
) -> None:
    """Serve an application as ``serve`` does; ``readable`` raises if its data cannot be read with the rights left."""
    listener = _listening(host, port)
    with listener:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_S,
            lifespan="off",
        )
        config.load()  # whatever it takes from files, before the files may be out of reach
        _become(user)
        readable()
        shown = f"[{host}]" if ":" in host else host
        sys.setswitchinterval(SWITCH_S)
        tell(f"http://{shown}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot listen on {host}:{port} ({reason})", remedy="choose another with --listen") from error


def _become(user: str) -> None:
    """Give up root for good; somebody who is not root stays who he is."""
    if os.geteuid() != 0:
        return
    try:
        found = pwd.getpwnam(user)
    except KeyError as error:
        raise InputError(f"there is no user {user!r}", remedy="name another with --user") from error
    os.setgroups([])
    os.setresgid(found.pw_gid, found.pw_gid, found.pw_gid)
    os.setresuid(found.pw_uid, found.pw_uid, found.pw_uid)


def _check_readable(source: Source, user: str) -> None:
    """Raise InputError if a store cannot be read with the rights that are left."""
    if source.store is None:
        return
    try:
        source.store.open("rb").close()
    except OSError as error:
        raise InputError(
            f"cannot read the store {source.store} as {user if os.geteuid() else 'root'} ({error.strerror})",
            remedy="run it as somebody who may, or name that user with --user",
        ) from error
