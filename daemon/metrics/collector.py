"""Metrics in Prometheus' formats, made of the last snapshot; a scrape touches neither kernel nor disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from .cardinality import SeriesLimit
from .families import FAMILIES
from .family import Family, Row
from .snapshot import FunctionSnapshot

View = Callable[[], tuple[Sequence[FunctionSnapshot], Mapping[str, Any]] | None]
"""Returns the functions and the status of the last snapshot, None before there is one; called by scraping threads."""
Scrape = Callable[[str], tuple[str, bytes]]
"""Takes the header Accept, returns content type and text."""

MOST_SHARE = 0.05
"""CPU seconds a second that the texts of one format may take, however many ask for them."""
LONGEST_S = 5.0
"""A text is not given again for longer: scrapes are 15 s apart, and some want them each 5 s."""


class SnapshotCollector(Collector):
    """Turns the last snapshot into metric families; holds the counters between scrapes."""

    def __init__(self, view: View, *, series: int) -> None:
        """Take the function that returns the last snapshot, and the most series to show."""
        self._view = view
        self.series = series
        self._limit = SeriesLimit()
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples, so that registering asks for no snapshot."""
        return [_family(family) for family in FAMILIES]

    def collect(self) -> Iterator[Metric]:
        """Return the families of the last snapshot."""
        with self._lock:
            last = self._view()
            rows: list[Row] = [] if last is None else self._limit.rows(*last, series=self.series)
        families = {family.name: _family(family) for family in FAMILIES}
        for name, labels, value in rows:
            families[name].add_metric(labels, value)
        yield from families.values()


def scraping(collector: SnapshotCollector) -> Scrape:
    """Return the function that answers scrapes of a collector, in the format asked for.

    Whoever may connect may scrape, as often as he likes. So a text is given again for a while, the longer the more CPU
    time it took.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    made: dict[str, tuple[float, bytes]] = {}
    lock = threading.Lock()

    def scrape(accept: str) -> tuple[str, bytes]:
        encode, content_type = choose_encoder(accept)
        with lock:
            until_s, text = made.get(content_type, (0.0, b""))
            if time.monotonic() >= until_s:
                began_s = time.thread_time()
                text = encode(registry)
                took_s = time.thread_time() - began_s
                made[content_type] = time.monotonic() + min(took_s / MOST_SHARE, LONGEST_S), text
        return content_type, text

    return scrape


_Metric = CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily
_KINDS: dict[str, type[_Metric]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "unknown": UnknownMetricFamily,
}


def _family(family: Family[Any]) -> _Metric:
    return _KINDS[family.kind](family.name, family.help, labels=family.labels)
