"""What Prometheus sees: the last snapshot, served over HTTP; a scrape touches neither kernel nor disk."""

from __future__ import annotations

import http.server
import logging
import os
import selectors
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from specmine.probes.errors import InputError

from .families import BY_NAME, FAMILIES, Family
from .meters import Counters, Reading, Stated

OTHER = "other"
_VERDICTS = ("holds", "violated", "unknown")
_CHANGES = ("worse", "better", "equivalent", "undecided")
_MOST_CHANGES = 50  # ten series each
_LONGEST_LABEL = 400
_REQUEST_S = 5.0
_MOST_CLIENTS = 8
_log = logging.getLogger(__name__)

View = Callable[[], tuple[Sequence[Reading], Mapping[str, Any]] | None]
"""Returns readings and status of the last snapshot, None before there is one; called by scraping threads."""
Row = tuple[str, tuple[str, ...], float]
"""Short name of the family, values of its labels, value."""


class SnapshotCollector(Collector):
    """Turns the last snapshot into metric families; keeps the counters between scrapes."""

    def __init__(self, view: View, *, series: int) -> None:
        """Take what to look at, and the most series to show."""
        self._view = view
        self.series = series
        self._counters = Counters()
        self._names = _Names()
        self._shown: set[str] = set()
        self._other = _Other()
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples, so that registering asks for no snapshot."""
        return [_family(family) for family in FAMILIES]

    def collect(self) -> Iterator[Metric]:
        """Return the families of the last snapshot."""
        with self._lock:
            seen = self._view()
            rows = [] if seen is None else self._rows(*seen)
        families = {name: _family(family) for name, family in BY_NAME.items()}
        for name, labels, value in rows:
            families[name].add_metric(labels, value)
        yield from families.values()

    def _rows(self, found: Sequence[Reading], status: Mapping[str, Any]) -> list[Row]:
        rows = [*_whole(status), *_changes(status)]
        self._counters.advance(found)
        left = self.series - len(rows) - 5  # what folding itself needs
        shown, folded = [], []
        # those shown before go first, so that a function does not come and go with its rank
        for each in sorted(found, key=lambda each: (not each.behaviours, each.key not in self._shown)):
            label = self._names.of(each)
            own = list(_of_function(each, label, self._counters))
            if len(own) <= left:
                left -= len(own)
                rows += own
                shown.append(each)
            else:
                folded.append(each)
        self._shown = {each.key for each in shown}
        rows += self._other.rows(folded)
        rows.append(("functions_folded", (), len(folded)))
        return rows


class _Names:
    """Labels of functions, stable and unique: of two with one name the later one gets a mark."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[str, str]] = {}
        self._taken: dict[tuple[str, str], str] = {}

    def of(self, reading: Reading) -> tuple[str, str]:
        """Return the values of the labels function and module."""
        label = self._by_key.get(reading.key)
        if label is None:
            label = plain(reading.name), plain(reading.module)
            number = 2
            while self._taken.get(label, reading.key) != reading.key or label[0] == OTHER:
                label = f"{plain(reading.name)}~{number}", plain(reading.module)
                number += 1
            self._taken[label] = reading.key
            self._by_key[reading.key] = label
        return label


class _Other:
    """The folded functions together; grows by what they grow, whichever they are."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, ...]] = {}
        self._sums = [0.0, 0.0, 0.0, 0.0]

    def rows(self, folded: Sequence[Reading]) -> Iterator[Row]:
        """Return the series of function="other", none if nothing was ever folded."""
        now = {each.key: (each.calls, each.timed, each.watched_ns / 1e9, each.cost_ns / 1e9) for each in folded}
        for key, values in now.items():
            before = self._last.get(key, (0.0,) * len(values))
            for index, (new, old) in enumerate(zip(values, before, strict=True)):
                self._sums[index] += max(0.0, new - old)
        self._last |= now
        names = ("function_calls", "function_timed_calls", "watched_seconds", "function_inside_seconds")
        if self._last:
            yield from ((name, (OTHER, ""), value) for name, value in zip(names, self._sums, strict=True))


def _of_function(each: Reading, label: tuple[str, str], counters: Counters) -> Iterator[Row]:
    yield "function_info", (*label, each.build_id), 1
    yield "function_state", (*label, each.state), 1
    yield "utility_ratio", label, each.utility
    yield "function_calls", label, each.calls
    yield "function_timed_calls", label, each.timed
    yield "watched_seconds", label, each.watched_ns / 1e9
    yield "function_inside_seconds", label, each.cost_ns / 1e9
    for part, time_ns in each.split_ns:
        yield "timed_call_seconds", (*label, part), time_ns / 1e9
    for verdict in _VERDICTS if each.on_cpu else ():
        yield "on_cpu_assertion_state", (*label, verdict), float(each.on_cpu == verdict)
    for behaviour in each.behaviours:
        yield from _of_behaviour(each, behaviour, (*label, behaviour.id))
    for name, values in (("calls", counters.calls(each.key)), ("call_seconds", counters.seconds(each.key))):
        for (behaviour_id, upper), value in values.items():
            yield name, (*label, behaviour_id, upper), value


def _of_behaviour(each: Reading, behaviour: Stated, label: tuple[str, ...]) -> Iterator[Row]:
    yield "behaviour_info", (*label, each.build_id, plain(behaviour.expression)), 1
    for upper, share in zip(each.uppers, behaviour.shares, strict=True):
        yield "assertion_share_ratio", (*label, upper), share
    for verdict in _VERDICTS:
        yield "assertion_state", (*label, verdict), float(behaviour.verdict == verdict)
    if each.checked_utc_ns is not None:
        yield "assertion_last_check_timestamp_seconds", label, each.checked_utc_ns / 1e9


def _whole(status: Mapping[str, Any]) -> Iterator[Row]:
    """Turn the status into rows; what is not known yet is left out, never shown as 0."""
    host, store = status["host"], status["store"]
    inside, beside = status["budget"]["inside"], status["budget"]["beside"]
    yield "info", (status["version"], host.get("link", ""), host.get("kernel", "")), 1
    yield "start_timestamp_seconds", (), _seconds(status["started"])
    yield "snapshot_timestamp_seconds", (), _seconds(status["updated"])
    yield "processes", (), sum(each["processes"] for each in status["lifetimes"])
    plain_values = {
        "inside_promised_ratio": inside["promised_ratio"],
        "inside_lent_ratio": inside["lent_ratio"],
        "inside_predicted_ratio": inside["predicted_ratio"],
        "inside_seconds": inside["spent_seconds"],
        "program_cpu_seconds": inside["program_cpu_seconds"],
        "beside_promised_ratio": beside["promised_ratio"],
        "beside_seconds": beside["spent_seconds"],
        "beside_pressure_ratio": beside["pressure"],
        "bystander_hits": status["bystander_hits"],
        "probes_off": status["probes"] == "off",
        "resident_bytes": status["resident_bytes"],
        "unwind_row_bytes": status["unwind_row_bytes"],
        "store_observations": store.get("written"),
        "store_failures": store.get("failures"),
        "store_dropped": store.get("dropped"),
    }
    yield from ((name, (), float(value)) for name, value in plain_values.items() if value is not None)
    for name, experiment in status["experiments"].items():
        yield from _of_experiment(plain(name), experiment)
    tables = {
        "functions": status["functions"],
        "refused_functions": status["refusals"],
        "price_seconds": status["prices_seconds"],
        "lost": status["lost"],
        "stacks": status["stacks"],
    }
    for name, table in tables.items():
        yield from ((name, (plain(key),), float(value)) for key, value in table.items())


def _of_experiment(name: str, experiment: Mapping[str, Any]) -> Iterator[Row]:
    """Turn an experiment into rows: a value always stands beside the time it was measured at."""
    numbers = {"value": experiment["value"], "ground_truth": experiment["ground_truth"]}
    numbers |= {"samples": experiment["samples"], "duration_seconds": experiment["duration_seconds"]}
    for key, value in numbers.items():
        if isinstance(value, int | float):
            yield f"experiment_{key}", (name,), value
    if experiment["time"] is not None:
        yield "experiment_timestamp_seconds", (name,), _seconds(experiment["time"])
    yield "experiment_valid", (name,), float(experiment["valid"])
    yield "experiment_cpu_seconds", (name,), experiment["cpu_seconds"]
    for reason, count in experiment["skipped"].items():
        yield "experiment_skipped", (name, plain(reason)), count


def _changes(status: Mapping[str, Any]) -> Iterator[Row]:
    """Turn the comparisons into rows: those with an alarm, then the others, of each function."""
    for each in status.get("changes", ())[:_MOST_CHANGES]:
        label = tuple(plain(str(each[name])) for name in ("function", "module", "base", "new"))
        for state in _CHANGES:
            yield "change_state", (*label, state), float(each["verdict"] == state)
        yield "change_ratio", label, each["ratio"]
        for bound, value in zip(("low", "high"), each["interval"] or (), strict=False):
            yield "change_bound_ratio", (*label, bound), value
        for side, number in zip(("base", "new"), each["lifetimes"], strict=True):
            yield "change_lifetimes", (*label, side), number
        yield "change_alarm", (*label, each["direction"]), float(each["alarm"] == "raised" and each["cause"])
        yield "change_acknowledged", (*label, each["direction"]), float(each["alarm"] == "acknowledged")


def plain(text: str) -> str:
    """Return a name fit for a label: control characters escaped, not endless; the encoder sees to quotes."""
    safe = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return safe if len(safe) <= _LONGEST_LABEL else f"{safe[: _LONGEST_LABEL - 3]}..."


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _family(family: Family) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    return kind(family.name, family.help, labels=family.labels)


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
        registry = CollectorRegistry()
        registry.register(self.collector)
        try:
            self._server = _Server(listen, registry)
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
        """Wait without waking up in between: serve_forever would look twice a second whether to go on."""
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

    def __init__(self, listen: tuple[str, int], registry: CollectorRegistry) -> None:
        self.registry = registry
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
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._send(200, content_type, encode(self.server.registry))
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
