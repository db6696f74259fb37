"""The results of experiments on this host, stored between runs: one JSON file, written whole or not at all.

Of each experiment it holds the last result and the last valid one; a failed run never makes an old value look fresh.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specmine.model.errors import InputError

SCHEMA = "specmine.experiments/1"
MOST_WINDOWS = 500
Document = Mapping[str, Any]


@dataclass(slots=True)
class Journal:
    """The results by experiment, calibrated units, and when load ran."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)
    """Units a millisecond by ``identity:kind``, of this boot."""
    windows: list[dict[str, Any]] = field(default_factory=list)
    """When load ran, and where: calls on these CPUs at that time are not as usual."""
    boot_id: str = ""

    def add(self, result: Document) -> None:
        """Add a result."""
        entry = self.entries.setdefault(
            result["name"],
            {"last": None, "valid": None, "runs": 0, "failures": 0, "skipped": {}, "cpu_seconds": 0.0},
        )
        entry["last"] = dict(result)
        entry["cpu_seconds"] = round(entry["cpu_seconds"] + result["cpu_seconds"], 4)
        if result["valid"]:
            entry["valid"] = dict(result)
            entry["failures"] = 0
        else:
            code = result["reason"]["code"]
            entry["skipped"][code] = entry["skipped"].get(code, 0) + 1
            entry["failures"] += 1
        if result["cpu_seconds"] > 0:
            entry["runs"] += 1
        self.mark(result)

    def mark(self, result: Document) -> None:
        """Record when and on which CPUs load ran, whatever the result."""
        if result["cpu_seconds"] > 0:
            names = ("name", "cpus", "window_ns")
            self.windows.append({name: result[name] for name in names} | {"boot_id": result["host"]["boot_id"]})
            del self.windows[:-MOST_WINDOWS]

    def value(self, name: str) -> Any:
        """Return the last valid value of an experiment, None if there is none."""
        entry = self.entries.get(name)
        return entry["valid"]["value"] if entry and entry["valid"] else None

    def begin_boot(self, boot_id: str) -> None:
        """Forget what was calibrated under another boot."""
        if boot_id != self.boot_id:
            self.units.clear()
            self.boot_id = boot_id

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "schema": SCHEMA,
            "entries": self.entries,
            "units": self.units,
            "windows": self.windows,
            "boot_id": self.boot_id,
        }


def default_path() -> Path:
    """Return where this user's journal is."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given) / "experiments.json"
    if os.geteuid() == 0:
        return Path("/var/lib/specmine/experiments.json")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "specmine" / "experiments.json"


def read_journal(path: Path) -> Journal:
    """Read a journal. A missing or damaged one is empty: its values can be measured again."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Journal()
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        return Journal()
    return Journal(
        entries=dict(content.get("entries", {})),
        units=dict(content.get("units", {})),
        windows=list(content.get("windows", [])),
        boot_id=str(content.get("boot_id", "")),
    )


def check_journal(path: Path) -> None:
    """Raise InputError if a file is there that is no journal: it is not replaced by one."""
    if not path.exists():
        return
    try:
        content = json.loads(path.read_bytes() or "{}") if path.is_file() else None
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or content.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"{path} holds no results of experiments", remedy="name another file with --state")


def write_journal(path: Path, journal: Journal) -> None:
    """Write a journal in place of the one before.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(prefix=".experiments.", dir=path.parent)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(journal.document(), file, allow_nan=False)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        if name:
            with contextlib.suppress(OSError):
                Path(name).unlink()
        raise InputError(f"cannot write the results {path}: {error.strerror}") from error


def store_journal(path: Path, journal: Journal) -> None:
    """Write a journal; a user who may not write it still gets the answer."""
    try:
        write_journal(path, journal)
    except InputError:
        if os.geteuid() == 0:
            raise
