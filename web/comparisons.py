"""Builds of a store compared, each pair once for each content of the store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmine.analysis.compare.comparing import compare_functions
from specmine.analysis.compare.document import document_of
from specmine.analysis.compare.sides import chosen_functions, sides_of_builds
from specmine.analysis.documents import is_store
from specmine.analysis.lifetimes.selection import RecordedLifetimes, read_lifetimes
from specmine.analysis.report.behaviours import Stated
from specmine.analysis.report.document import builds_in_order
from specmine.analysis.report.portrait import Portrait, portrait
from specmine.mining.regression.comparison import Rule
from specmine.model.errors import SpecmineError

from .documents import content_of

_MOST_KEPT = 8
_NO_STORE = "The daemon compares each build with the one before it, as soon as both ran."
_FEW = "The store holds runs of one build only: there is nothing to compare yet."


class Comparisons:
    """Comparisons of a store's builds; without a store there are none."""

    def __init__(self, store: Path | None) -> None:
        """Begin; nothing is read before somebody asks."""
        self._store = store
        self._lock = threading.Lock()
        self._read: tuple[object, RecordedLifetimes] | None = None
        self._kept: OrderedDict[tuple[object, str, str], Mapping[str, Any]] = OrderedDict()

    def builds(self) -> list[tuple[str, str]]:
        """Return the build-ids of the store with what they are called, the oldest first."""
        if self._store is None or not is_store(self._store):
            return []
        with self._lock:
            _, recorded = self._recorded(self._store)
        return list(builds_in_order(recorded.observed).items())

    def compared(self, old: str, new: str) -> tuple[Mapping[str, Any] | None, str]:
        """Return ``specmine.comparison/1`` of two builds, or why there is none."""
        if self._store is None or not is_store(self._store):
            return None, _NO_STORE
        if not old or not new or old == new:
            return None, _FEW if not old else "Choose two builds."
        with self._lock:
            content, recorded = self._recorded(self._store)
            key = (content, old, new)
            if key not in self._kept:
                try:
                    self._kept[key] = _comparison(recorded, self._store, old, new)
                except SpecmineError as error:
                    return None, str(error)
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key], ""

    def portrait(self, entry: Mapping[str, Any], old: str, new: str) -> Portrait:
        """Return a function of a comparison drawn: its calls in both builds, and the runs of all builds."""
        assert self._store is not None
        with self._lock:
            _, recorded = self._recorded(self._store)
        group = [each for each in recorded.observed if each.key == (entry["function"], entry["module"])]
        labels, rule = builds_in_order(recorded.observed), Rule()
        return portrait(entry, group, (old, new), labels, rule.summary, rule.level, Stated(recorded))

    def _recorded(self, store: Path) -> tuple[object, RecordedLifetimes]:
        content = content_of(store)
        if self._read is None or self._read[0] != content:
            self._read = content, read_lifetimes(store)
        return self._read


def _comparison(recorded: RecordedLifetimes, store: Path, old: str, new: str) -> Mapping[str, Any]:
    sides, rule = sides_of_builds(recorded, store, old, new), Rule()
    return document_of(sides, compare_functions(sides, chosen_functions(sides, ()), rule, fdr=False), rule, fdr=False)
