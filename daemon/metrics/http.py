"""Metrics over HTTP: few clients at once, within bounded time and CPU time, and only those that ask for this host."""

from __future__ import annotations

import contextlib
import http.server
import ipaddress
import logging
import os
import re
import selectors
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from specmine.daemon.system.cpu_allowances import CpuAllowances
from specmine.model.errors import InputError

from .collector import Scrape, SnapshotCollector, View, scraping
from .connections import Connections

CONNECTION_S = 10.0
"""How long a connection may last: as long as Prometheus waits for a scrape."""
MOST_CLIENTS = 16
MOST_PER_ADDRESS = 8
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]*)(:[0-9]*)?", re.ASCII)
_log = logging.getLogger(__name__)


class MetricsServer:
    """Serves one registry over HTTP: /metrics, and a page that points there."""

    def __init__(
        self, listen: tuple[str, int], view: View, *, series: int, passed: socket.socket | None = None
    ) -> None:
        """Listen and serve.

        Parameters
        ----------
        listen : tuple of str and int
            Host and port; port 0 takes any free one.
        view : callable
            What to show.
        series : int
            Most time series in one scrape.
        passed : socket, optional
            Listens already; then ``listen`` is only compared with it.

        Raises
        ------
        InputError
            If the address cannot be used.
        """
        self.collector = SnapshotCollector(view, series=series)
        try:
            self._server = _Server(listen, scraping(self.collector), passed)
        except OSError as error:
            raise InputError(
                f"cannot listen on {_address(*listen)} for metrics ({error.strerror or error})",
                remedy="change metrics.listen",
            ) from error
        if passed is not None and self.address != _address(*listen):
            _log.warning(
                f"metrics are served at {self.address}, where systemd listens, "
                f"and metrics.listen is {_address(*listen)}; change ListenStream of specmined.socket"
            )
        self._wake_out, self._wake_in = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens, HOST:PORT."""
        host, port = self._server.server_address[:2]
        return _address(str(host), int(port))

    @property
    def cpu_s(self) -> float:
        """CPU time of answers so far."""
        return self._server.cpu_s

    def close(self) -> None:
        """Stop serving."""
        os.write(self._wake_in, b"x")
        self._thread.join()
        self._server.connections.end_all()
        self._server.server_close()
        for fd in (self._wake_in, self._wake_out):
            os.close(fd)

    def _serve(self) -> None:
        """Wait without waking up in between: serve_forever would check twice a second whether to go on."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_out, selectors.EVENT_READ)
            selector.register(self._server, selectors.EVENT_READ)
            accepting = True
            while True:
                rest_s = self._server.rest_s()
                if accepting != (not rest_s):
                    accepting = not rest_s
                    if accepting:
                        selector.register(self._server, selectors.EVENT_READ)
                    else:
                        selector.unregister(self._server)
                waits = (self._server.connections.end_late(time.monotonic()), rest_s or None)
                ready = selector.select(min((each for each in waits if each is not None), default=None))
                if any(key.fileobj == self._wake_out for key, _ in ready):
                    return
                if ready:
                    with self._server.accounted():
                        self._server.handle_request()


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_own_host(header: str, listen: str) -> bool:
    """Return True if a ``Host`` header names this server.

    A web page elsewhere can have its own name resolved to this host (DNS rebinding), and read what is served here. Its
    requests carry that name.

    Parameters
    ----------
    header : str
        Value of the header, with or without a port.
    listen : str
        The host that the server was configured to listen on. If it stands for all addresses, then any address is
        right, and any name that begins with this host's own.
    """
    match = _HOST.fullmatch(header.strip().lower())
    if match is None:
        return False
    name, configured = match[1].strip("[]"), listen.strip("[]").lower()
    if name in ("localhost", "127.0.0.1", "::1", configured):
        return True
    if configured not in ("", "0.0.0.0", "::"):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return bool(name) and name.split(".")[0] == socket.gethostname().lower().split(".")[0]
    return True


class _Server(http.server.ThreadingHTTPServer):
    """Serves each admitted connection on a thread."""

    daemon_threads = True
    request_queue_size = 64
    timeout = 0

    def __init__(self, listen: tuple[str, int], scrape: Scrape, passed: socket.socket | None) -> None:
        self.scrape = scrape
        self.host, port = listen
        self._allowances, self._lock = CpuAllowances(), threading.Lock()
        self.cpu_s = 0.0
        self.connections = Connections(most=MOST_CLIENTS, most_per_address=MOST_PER_ADDRESS, limit_s=CONNECTION_S)
        if passed is None:
            family, _, _, _, address = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            super().__init__((str(address[0]), port), _Handler)
        else:  # where a socket is passed, none may be made
            self.host = str(passed.getsockname()[0])
            socketserver.BaseServer.__init__(self, passed.getsockname()[:2], _Handler)
            self.socket, self.address_family = passed, passed.family

    def rest_s(self) -> float:
        """Return for how many seconds new clients wait, since the others have taken too much CPU time.

        All wait in one queue: who floods it has an address like that of the scraper.
        """
        with self._lock:
            return self._allowances.wait_s(0, time.monotonic())

    @contextlib.contextmanager
    def accounted(self) -> Iterator[None]:
        """Count what this thread uses meanwhile."""
        began_s = time.thread_time()
        try:
            yield
        finally:
            used_s = time.thread_time() - began_s
            with self._lock:
                self.cpu_s += used_s
                self._allowances.spend(0, used_s, time.monotonic())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client on a thread, or let it go if there are too many."""
        if self.connections.admit(request, str(client_address[0]), time.monotonic()):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, then make room."""
        try:
            with self.accounted():
                super().process_request_thread(request, client_address)
        finally:
            self.connections.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""
        if not isinstance(sys.exception(), OSError):
            _log.exception("a scrape failed")


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: _Server
    server_version = "specmined"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request."""
        if not self.server.connections.begin_answer(self.request):
            return
        path = self.path.split("?")[0]
        if not all(is_own_host(host, self.server.host) for host in self.headers.get_all("Host", [])):
            self._send(421, "text/plain; charset=utf-8", b"ask for this host by the name that metrics.listen has\n")
        elif path == "/metrics":
            self._send(200, *self.server.scrape(self.headers.get("Accept", "")))
        elif path == "/":
            self._send(200, "text/html; charset=utf-8", b'<title>specmined</title><a href="/metrics">metrics</a>\n')
        else:
            self._send(404, "text/plain; charset=utf-8", b"not found; metrics are at /metrics\n")

    do_HEAD = do_GET

    def _send(self, code: int, content_type: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.server.connections.send_answer(self.request, time.monotonic())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: scrapes are routine."""
