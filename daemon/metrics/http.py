"""Metrics over HTTP: few clients at once, each within bounded time."""

from __future__ import annotations

import http.server
import logging
import os
import selectors
import socket
import sys
import threading
from typing import Any

from specmine.model.errors import InputError

from .collector import Scrape, SnapshotCollector, View, scraping

_REQUEST_S = 5.0
_MOST_CLIENTS = 8
_log = logging.getLogger(__name__)


class MetricsServer:
    """Serves one registry over HTTP: /metrics, and a page that points there."""

    def __init__(self, listen: tuple[str, int], view: View, *, series: int) -> None:
        """Listen and serve.

        Parameters
        ----------
        listen : tuple of str and int
            Host and port; port 0 takes any free one.
        view : callable
            What to show.
        series : int
            Most time series in one scrape.

        Raises
        ------
        InputError
            If the address cannot be used.
        """
        self.collector = SnapshotCollector(view, series=series)
        try:
            self._server = _Server(listen, scraping(self.collector))
        except OSError as error:
            raise InputError(
                f"cannot listen on {_address(*listen)} for metrics ({error.strerror or error})",
                remedy="change metrics.listen",
            ) from error
        self._wake_out, self._wake_in = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens, HOST:PORT."""
        host, port = self._server.server_address[:2]
        return _address(str(host), int(port))

    def close(self) -> None:
        """Stop serving."""
        os.write(self._wake_in, b"x")
        self._thread.join()
        self._server.server_close()
        for fd in (self._wake_in, self._wake_out):
            os.close(fd)

    def _serve(self) -> None:
        """Wait without waking up in between: serve_forever would check twice a second whether to go on."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._wake_out, selectors.EVENT_READ)
            while not any(key.fileobj == self._wake_out for key, _ in selector.select()):
                self._server.handle_request()


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Server(http.server.ThreadingHTTPServer):
    """Serves few clients at once, each within bounded time, so that no crowd of them can pile up threads."""

    daemon_threads = True
    timeout = 0

    def __init__(self, listen: tuple[str, int], scrape: Scrape) -> None:
        self.scrape = scrape
        host, port = listen
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self.address_family = family
        self._places = threading.BoundedSemaphore(_MOST_CLIENTS)
        super().__init__((str(address[0]), port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client on a thread, or let it go if there are too many."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, then free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""
        if not isinstance(sys.exception(), OSError):
            _log.exception("a scrape failed")


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: _Server
    timeout = _REQUEST_S  # of each read and write
    server_version = "specmined"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.split("?")[0]
        if path == "/metrics":
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
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: scrapes are routine."""
