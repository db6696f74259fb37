"""What the checks of experiments share: the table that they print, and how they run an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specmine.experiments.runner.admission import run_admitted
from specmine.experiments.runner.schedule import PASSING

Result = dict[str, Any]


@dataclass(slots=True)
class Table:
    """What was expected and found, printed as it comes."""

    failed: int = 0
    unknown: int = 0

    def row(self, what: str, expected: str, found: str, ok: bool | None) -> None:
        """Print one line; None: no quiet second was found, so no value was given."""
        mark = "ok" if ok else "withheld" if ok is None else "FAIL"
        self.failed += ok is False
        self.unknown += ok is None
        print(f"| {what} | {expected} | {found} | {mark} |", flush=True)

    def judge(self, what: str, expected: str, result: Result, found: str, ok: bool) -> None:
        """Print one line about a result: unknown if the host was too busy for it."""
        reason = result["reason"]
        withheld = reason is not None and reason["code"] in PASSING
        if withheld and not ok:
            # the host was too busy, and the result says so: no wrong value
            self.row(what, expected, reason["text"], None)
        else:
            self.row(what, expected, found if reason is None else f"{found} ({reason['code']})", ok)


class Bench:
    """Runs experiments as the command does."""

    def __init__(self, wait_s: float, folder: Path) -> None:
        self.wait_s = wait_s
        self.state = folder / "experiments.json"

    def run(self, name: str, *, wait_s: float | None = None, **request: Any) -> Result:
        """Run one experiment, waiting for a quiet second."""
        wanted = {"names": [name], "state": str(self.state), "wait_seconds": self.wait_s if wait_s is None else wait_s}
        return run_admitted({**wanted, **request})[0]


def near(value: float, expected: float, within: float = 0.05) -> bool:
    """Return True if a value is as expected within a share of it."""
    return expected != 0 and abs(value / expected - 1) <= within
