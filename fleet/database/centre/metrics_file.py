"""The metrics of a fleet in a file, for node_exporter."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from specmine.fleet.database.connecting import Connection
from specmine.fleet.metrics import metrics_text
from specmine.model.errors import InputError

from .levels_document import levels_document
from .status import status_of
from .turns import Served

LEVELS_S = 300.0
_NEWEST = timedelta(hours=6)  # levels of metrics are of so long


@dataclass(slots=True)
class MetricsFile:
    """A file for node_exporter's textfile collector."""

    path: Path
    _levels: dict[str, Any] | None = None
    _levels_at: float = -math.inf

    def write(self, db: Connection, served: Served, now: datetime) -> None:
        """Write it anew; levels over hosts, which take longer, every five minutes."""
        if time.monotonic() >= self._levels_at + LEVELS_S:
            self._levels = levels_document(db, _NEWEST)
            self._levels_at = time.monotonic()
        counted = {"loaded": served.pushes - served.refused, "refused": served.refused, "rows": served.rows}
        text = metrics_text(status_of(db), self._levels, counted, now.timestamp())
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(self.path)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}", remedy="see --metrics") from error
