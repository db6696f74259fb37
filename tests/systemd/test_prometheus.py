"""A real Prometheus scrapes the daemon's server, evaluates the shipped rules, and sends what a person then reads."""

from __future__ import annotations

import http.server
import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.metrics.http import MetricsServer
from specmine.daemon.metrics.snapshot import FunctionSnapshot
from tests.daemon.documents.test_violation_text import SHOP, SLOWER
from tests.daemon.metrics.test_collector import reading, status
from tests.daemon.metrics.test_violation_snapshot import SHOWN
from tests.support.patience import patient
from tests.support.promtool import prometheus

pytestmark = pytest.mark.slow


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes alerts as Alertmanager does."""

    alerts: queue.Queue[dict[str, Any]] = queue.Queue()

    def do_POST(self) -> None:
        """Keep each alert of a message."""
        for alert in json.loads(self.rfile.read(int(self.headers["Content-Length"]))):
            self.alerts.put(alert)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def receiving() -> Iterator[str]:
    """Serve as Alertmanager; return the address."""
    Receiver.alerts = queue.Queue()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def alerts_within(seconds: float, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Return the alerts that arrive by name, as soon as all that are wanted are there."""
    found: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + seconds
    while not wanted <= found.keys():
        alert = Receiver.alerts.get(timeout=max(0.1, end - time.monotonic()))
        found[alert["labels"]["alertname"]] = alert
    return found


def problem(name: str, **more: object) -> FunctionSnapshot:
    """Return a function of shop with a violation."""
    violation = replace(SLOWER, time_share=0.4, **more)  # type: ignore[arg-type]
    shown = replace(SHOWN, violation=violation, subject=replace(SHOP, function=name))
    return replace(reading(name, module="shop", programs=("shop",)), violations=(shown,))


def test_a_problem_reaches_a_person_with_its_words(tmp_path: Path) -> None:
    """The function that is the cause pages, and what is slower through it does not; a smaller one is a ticket."""
    functions = [
        problem("checksum"),
        problem("serve", because="checksum"),
        problem('render<"x\\y">(int)', factor=1.3),
        reading("parse"),
    ]
    server = MetricsServer(("127.0.0.1", 0), lambda: (functions, status()), series=2000)
    try:
        with receiving() as receiver, prometheus(tmp_path, server.address, receiver):
            found = alerts_within(patient(60), {"SpecmineSlower", "SpecmineSlowerMinor"})
    finally:
        server.close()
    page, ticket = found["SpecmineSlower"], found["SpecmineSlowerMinor"]
    assert page["labels"]["function"] == "checksum"
    assert (page["labels"]["program"], page["labels"]["severity"]) == ("shop", "page")
    assert page["annotations"]["summary"] == "shop: checksum 2.1x slower since 02:47, new code"
    assert "2.1x slower since 02:47:10: median 160 us, normal 72-80 us" in page["annotations"]["description"]
    assert ticket["labels"]["function"] == 'render<"x\\y">(int)'
    assert ticket["annotations"]["summary"].startswith('shop: render<"x\\y">(int) 1.3x slower')
    assert all(alert["labels"].get("function") != "serve" for alert in found.values())


def test_the_shipped_configuration_is_quiet_where_nothing_is_wrong(tmp_path: Path) -> None:
    """No rule about a function fires over a scrape of a daemon whose functions hold."""
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading("parse")], status()), series=2000)
    try:
        with receiving() as receiver, prometheus(tmp_path, server.address, receiver):
            time.sleep(patient(8))
    finally:
        server.close()
    names = set()
    while not Receiver.alerts.empty():
        names.add(Receiver.alerts.get()["labels"]["alertname"])
    assert names == set()
