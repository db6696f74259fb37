"""Structured logs on stderr: one line an event, key=value or JSON, with priorities where systemd reads."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@%+,\-\[\]]+", re.ASCII)
_SYSLOG = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


def set_up(*, level: str, form: str, stream: TextIO | None = None) -> None:
    """Send the logs of specmine to a stream, stderr unless given.

    Parameters
    ----------
    level : str
        debug, info, warning or error.
    form : str
        logfmt or json.
    stream : text stream, optional
    """
    stream = sys.stderr if stream is None else stream
    handler = _Lossy(stream)
    handler.setFormatter(_Lines(form=form, journal=_is_journal(stream)))
    root = logging.getLogger("specmine")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(level.upper())


def facts(**values: object) -> dict[str, Mapping[str, object]]:
    """Return the ``extra`` of a log call that carries these facts."""
    return {"facts": values}


class _Lossy(logging.StreamHandler[TextIO]):
    """Gives lines up that the stream refuses (a full disk, a reader that is gone), and says later how many."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        lost, self._lost = self._lost, 0
        if lost:
            text = f"{lost} lines could not be written to the log"
            super().emit(logging.LogRecord(record.name, logging.WARNING, "", 0, text, None, None))
        if self._lost:  # they still cannot
            self._lost = lost + 1
        else:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Count the line; the daemon goes on."""
        self._lost += 1


def leave_broken_stderr() -> None:
    """Have what stderr refuses go nowhere: the interpreter would end with another exit code."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class _Lines(logging.Formatter):
    """Formats a record as one line."""

    def __init__(self, *, form: str, journal: bool) -> None:
        super().__init__()
        self._json = form == "json"
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; control characters are escaped, so that a name from a file cannot forge one."""
        values: dict[str, Any] = {}
        if not self._journal:  # the journal has its own clock
            moment = datetime.fromtimestamp(record.created, UTC)
            values["time"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        values |= {"level": record.levelname.lower(), "message": record.getMessage()}
        values |= getattr(record, "facts", {})
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        if self._json:
            line = json.dumps(values, default=str)
        else:
            line = " ".join(f"{key}={_value(value)}" for key, value in values.items())
        return f"<{_SYSLOG.get(record.levelno, 6)}>{line}" if self._journal else line


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _is_journal(stream: TextIO) -> bool:
    """Whether the stream leads to the journal: systemd names it by device and inode."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
