"""Metrics over HTTP: hostile names, formats, silent and slow clients, foreign names of this host, a port in use."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from specmine.daemon.metrics import http
from specmine.daemon.metrics.families import FAMILIES
from specmine.daemon.metrics.family import label_text
from specmine.daemon.metrics.http import MOST_CLIENTS, MetricsServer, is_own_host
from specmine.daemon.system.cpu_allowances import CpuAllowances
from specmine.model.errors import InputError
from tests.daemon.metrics.test_collector import reading, status
from tests.daemon.metrics.test_violation_snapshot import violated, with_levels
from tests.support.patience import patient

HOSTILE = [
    'a"b\\c\nd',
    "\x1b[31mred",
    "{}",
    "ünïcode",
    "x" * 5000,
    "\udc80",
    "",
    'a{b="c"} 1\nspecmine_fake 7',
]

FLOOD = """
import socket, sys, time
end, answers = time.monotonic() + 3, 0
while time.monotonic() < end:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as client:
        client.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
        text = b""
        while piece := client.recv(65536):
            text += piece
    answers += text.startswith(b"HTTP/1.0 200")
print(answers)
"""


def get(address: str, path: str = "/metrics", **headers: str) -> tuple[str, str]:
    """Return content type and text of a page."""
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=patient(60)) as answer:
        return answer.headers["Content-Type"], answer.read().decode("utf-8")


def test_hostile_names_survive_the_text_format() -> None:
    """Names of any letters neither break the page nor forge a series, and do not fall together."""
    found = [reading(name, module=name, key=f"k{n}") for n, name in enumerate(HOSTILE)]
    server = MetricsServer(("127.0.0.1", 0), lambda: (found, status()), series=2000)
    try:
        _, text = get(server.address)
    finally:
        server.close()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert set(families) == {family.name for family in FAMILIES}
    assert {sample.labels["function"] for sample in families["specmine_function_info"].samples} == {
        label_text(name) for name in HOSTILE
    }
    assert all(len(line) < 3000 for line in text.splitlines())


def test_a_page_before_the_first_snapshot_is_empty_but_valid() -> None:
    """Until the kernel side runs there are metrics' names without values."""
    server = MetricsServer(("127.0.0.1", 0), lambda: None, series=2000)
    try:
        content_type, text = get(server.address)
        assert content_type.startswith("text/plain; version=")
        assert not [line for line in text.splitlines() if not line.startswith("#")]
        assert "metrics" in get(server.address, "/")[1]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(server.address, "/etc/passwd")
    finally:
        server.close()


def test_openmetrics_is_served_to_those_who_ask() -> None:
    """A scraper that prefers OpenMetrics gets it."""
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading()], status()), series=2000)
    try:
        content_type, text = get(server.address, Accept="application/openmetrics-text; version=1.0.0")
    finally:
        server.close()
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


def test_a_silent_client_does_not_hold_up_a_scrape() -> None:
    """Clients that connect and say nothing are outlasted."""
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading()], status()), series=2000)
    host, port = server.address.split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(3)]
    try:
        assert "specmine_calls_total" in get(server.address)[1]
    finally:
        for each in silent:
            each.close()
        server.close()


def test_slow_clients_do_not_keep_a_scraper_out() -> None:
    """Clients that never finish a request, from several addresses, give way to one that does."""
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading()], status()), series=2000)
    host, port = server.address.split(":")
    slow = []
    try:
        for number in range(3 * MOST_CLIENTS):
            source = (f"127.0.0.{1 + number % 5}", 0)
            slow.append(socket.create_connection((host, int(port)), source_address=source))
            slow[-1].sendall(b"GET /metrics HTT")
        for _ in range(10):
            assert "specmine_calls_total" in get(server.address)[1]
    finally:
        for client in slow:
            client.close()
        server.close()


def test_a_byte_now_and_then_does_not_prolong_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection ends at its deadline, whatever its client sends."""
    monkeypatch.setattr(http, "CONNECTION_S", 0.5)
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading()], status()), series=2000)
    host, port = server.address.split(":")
    began, ended = time.monotonic(), False
    try:
        with socket.create_connection((host, int(port)), timeout=0.1) as client:
            while not ended and time.monotonic() < began + 8:
                try:
                    client.sendall(b"G")
                    ended = client.recv(1) == b""
                except TimeoutError:
                    pass
                except OSError:
                    ended = True
    finally:
        server.close()
    assert ended


@pytest.mark.parametrize(
    ("header", "listen", "expected"),
    [
        ("127.0.0.1:9752", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("LOCALHOST:1", "::1", True),
        ("[::1]:9752", "::1", True),
        ("metrics.example:9752", "metrics.example", True),
        ("10.0.0.5:9752", "10.0.0.5", True),
        ("evil.example", "127.0.0.1", False),
        ("evil.example:9752", "0.0.0.0", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("localhost:80:90", "127.0.0.1", False),
        ("[::1", "::1", False),
        ("", "127.0.0.1", False),
        ("", "0.0.0.0", False),
        ("10.0.0.5:9752", "0.0.0.0", True),
        ("[fd00::5]:9752", "::", True),
        (f"{socket.gethostname().split('.')[0]}.rack.example:9752", "0.0.0.0", True),
    ],
)
def test_only_this_host_is_asked_for(header: str, listen: str, expected: bool) -> None:
    """The names of the address that is listened on, with any port; addresses too if that is all of them."""
    assert is_own_host(header, listen) is expected


def test_a_page_under_another_name_is_refused_in_one_line() -> None:
    """A web page whose name was resolved to this host reads nothing; a request without a name is answered."""
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading()], status()), series=2000)
    try:
        with pytest.raises(urllib.error.HTTPError, match="421") as caught:
            get(server.address, Host="evil.example")
        assert caught.value.read().count(b"\n") == 1
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b" 200 " in client.recv(100)
    finally:
        server.close()


def test_a_port_in_use_is_one_line() -> None:
    """The error names the address and the key to change."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=rf"127\.0\.0\.1:{port}.*change metrics\.listen") as caught:
            MetricsServer(("127.0.0.1", port), lambda: None, series=2000)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_a_socket_that_listens_already_is_served(caplog: pytest.LogCaptureFixture) -> None:
    """Its address counts; one line says so where the configuration has another."""
    passed = socket.create_server(("127.0.0.1", 0))
    port = passed.getsockname()[1]
    server = MetricsServer(("0.0.0.0", 1), lambda: None, series=2000, passed=passed)
    try:
        assert server.address == f"127.0.0.1:{port}"
        assert get(server.address)[0].startswith("text/plain; version=")
        with pytest.raises(urllib.error.HTTPError, match="421"):
            get(server.address, Host="elsewhere.example")
        assert "change ListenStream of specmined.socket" in caplog.text
    finally:
        server.close()
    assert passed.fileno() == -1


def test_promtool_finds_nothing_to_say(tmp_path: Path) -> None:
    """The linter of Prometheus has no complaint."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (package prometheus)")
    server = MetricsServer(("127.0.0.1", 0), lambda: ([violated(), with_levels(), reading("y")], status()), series=2000)
    try:
        _, text = get(server.address)
    finally:
        server.close()
    assert "specmine_observed_seconds{" in text and "specmine_violation_info{" in text
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_scrapes_take_a_share_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast they come; each is answered in the end."""
    monkeypatch.setattr(http, "CpuAllowances", partial(CpuAllowances, 0.05, 0.05))
    server = MetricsServer(("127.0.0.1", 0), lambda: ([reading()], status()), series=2000)
    try:
        before_s, began_s = time.process_time(), time.monotonic()
        client = subprocess.run(
            [sys.executable, "-c", FLOOD, *server.address.rsplit(":", 1)], capture_output=True, text=True, check=True
        )
        took_s, used_s = time.monotonic() - began_s, time.process_time() - before_s
    finally:
        server.close()
    assert int(client.stdout) >= 1
    assert used_s <= 0.05 + 2 * 0.05 * took_s + 0.05, "what starts and ends threads is not in each one's account"
