"""Metrics in Prometheus' formats, made of the last snapshot; a scrape touches neither kernel nor disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from specmine.daemon.system.kept_texts import KeptTexts

from .cardinality import SeriesLimit
from .families import FAMILIES
from .family import Family, Row
from .snapshot import FunctionSnapshot

View = Callable[[], tuple[Sequence[FunctionSnapshot], Mapping[str, Any]] | None]
"""Returns the functions and the status of the last snapshot, None before there is one; called by scraping threads."""
Scrape = Callable[[str], tuple[str, bytes]]
"""Takes the header Accept, returns content type and text."""


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

    Whoever may connect may scrape, as often as he likes. So a text is given again for a while.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    kept, lock = KeptTexts(), threading.Lock()

    def scrape(accept: str) -> tuple[str, bytes]:
        encode, content_type = choose_encoder(accept)
        with lock:
            return content_type, kept.text(content_type, lambda: encode(registry))

    return scrape


_Metric = CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily
_KINDS: dict[str, type[_Metric]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "unknown": UnknownMetricFamily,
}


def _family(family: Family[Any]) -> _Metric:
    return _KINDS[family.kind](family.name, family.help, labels=family.labels)
