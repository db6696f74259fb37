"""Metrics in Prometheus' formats, made of the last snapshot; a scrape touches neither kernel nor disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from .cardinality import Folding
from .counters import Reading
from .families import BY_NAME, FAMILIES, Family
from .samples import Row

View = Callable[[], tuple[Sequence[Reading], Mapping[str, Any]] | None]
"""Returns readings and status of the last snapshot, None before there is one; called by scraping threads."""
Scrape = Callable[[str], tuple[str, bytes]]
"""Takes the header Accept, returns content type and text."""


class SnapshotCollector(Collector):
    """Turns the last snapshot into metric families; keeps the counters between scrapes."""

    def __init__(self, view: View, *, series: int) -> None:
        """Take what to look at, and the most series to show."""
        self._view = view
        self.series = series
        self._folding = Folding()
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples, so that registering asks for no snapshot."""
        return [_family(family) for family in FAMILIES]

    def collect(self) -> Iterator[Metric]:
        """Return the families of the last snapshot."""
        with self._lock:
            seen = self._view()
            rows: list[Row] = [] if seen is None else self._folding.rows(*seen, series=self.series)
        families = {name: _family(family) for name, family in BY_NAME.items()}
        for name, labels, value in rows:
            families[name].add_metric(labels, value)
        yield from families.values()


def scraping(collector: SnapshotCollector) -> Scrape:
    """Return what answers scrapes of a collector, in the format that is asked for."""
    registry = CollectorRegistry()
    registry.register(collector)

    def scrape(accept: str) -> tuple[str, bytes]:
        encode, content_type = choose_encoder(accept)
        return content_type, encode(registry)

    return scrape


def _family(family: Family) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    return kind(family.name, family.help, labels=family.labels)
