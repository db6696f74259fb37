"""Documents for pages: the sample of the command line, violations made by hand, a status."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from specmine.daemon.documents.violations import Context, Named, explained_by, listed
from specmine.model.violation import Direction, ViolationState
from specmine.web.documents import Documents
from tests.support.command_line import DATA
from tests.support.violations import SECOND, violation

HOSTILE = "<script>alert('x')</script>\x1b[31m\u202e\"&"
AT = "2026-11-22T03:12:40.000Z"
OFFSET_NS = 1_795_315_000 * SECOND
"""The clock of the violations began on 22 Nov 2026, 02:36:40 UTC."""
STATUS: dict[str, Any] = {
    "schema": "specmine.status/1",
    "programs": ["shop", "cache"],
    "probes": "on",
    "notes": ["no compiler was found: host experiments are skipped"],
    "budget": {
        "overhead": {"promised_ratio": 0.01, "spent_ratio": 0.006},
        "agent": {"promised_ratio": 0.01, "spent_ratio": 0.013},
    },
    "resident_bytes": 100 << 20,
    "watched": [
        {"program": "shop", "chosen": True, "processes": 4, "last_call": "2026-11-22T03:12:39.000Z"},
        {"program": "cache", "chosen": True, "processes": 0, "last_call": None},
        {"program": HOSTILE, "chosen": False, "processes": 1, "last_call": None},
    ],
    "lifetimes": [{"program": "shop", "pid": 1, "executable": "/bin/shop", "build_id": "ab" * 20, "processes": 4}],
    "lost": {"abandoned_calls": 3, "calls": 0},
    "environment": {
        "steal_ratio": 0.06,
        "slice_seconds": 0.003,
        "properties": {"steal_ratio": {"time": "2026-11-22T02:10:00Z"}},
    },
    "changes": [
        {"function": "render", "module": "shop", "verdict": "better", "ratio": 0.83, "interval": [0.81, 0.85]},
        {"function": HOSTILE, "module": "shop", "verdict": "worse", "ratio": 2.1, "interval": [2.0, 2.2]},
    ],
}


def sample(*, hostile: bool = False, copies: int = 1) -> Documents:
    """Return documents with functions in six states, a problem, what is slower through it, and changes that closed.

    Parameters
    ----------
    hostile : bool
        Names try to break the page.
    copies : int
        How many times the functions are there, each time with other names.
    """
    specification: dict[str, Any] = json.loads(Path(DATA / "app.json").read_text(encoding="utf-8"))
    first = specification["functions"][0]
    names = {
        "callee": Named(function=HOSTILE if hostile else "checksum", program="shop", module="shop", build_id="ab" * 20),
        str(first.get("key") or "first"): Named(
            function=str(first["function"]), program=str(first.get("program") or ""), module=str(first["module"])
        ),
        "other": Named(function="render", program="shop", module="shop"),
    }
    first["key"] = str(first.get("key") or "first")
    made = (
        violation("callee", time_share=0.38),
        violation(first["key"], factor=1.5, because="callee"),
        violation("other", direction=Direction.FASTER, factor=0.83),
        violation(
            "other",
            factor=4.1,
            since_ns=20 * SECOND,
            state=ViolationState.ACKNOWLEDGED,
            closed_ns=60 * SECOND,
            closed_by="ann",
            comment=HOSTILE if hostile else "gzip level 6 is wanted",
        ),
    )
    context = Context(names=names, utc_offset_ns=OFFSET_NS, explained=explained_by(made))
    violations: dict[str, Any] = {
        "schema": "specmine.violations/1",
        "host": "shop-03",
        "at": AT,
        "violations": listed(made, context),
    }
    functions = specification["functions"]
    first["violations"] = [each for each in violations["violations"] if each["key"] == first["key"]]
    if hostile:
        functions[-1]["function"] = functions[-1]["program"] = HOSTILE
    specification["functions"] = functions + [
        {**each, "function": f"{each['function']}_{copy}", "violations": []}
        for copy in range(1, copies)
        for each in functions
    ]
    return Documents(specification=specification, violations=violations, status=STATUS, read_at=time.monotonic())


class SampleSource:
    """A source that is always the sample."""

    store: Path | None = None

    def __init__(self, documents: Documents) -> None:
        """Take the documents; ``reads`` counts how often they were asked for."""
        self._documents = documents
        self.reads = 0

    def read(self) -> Documents:
        """Return the documents, read now."""
        self.reads += 1
        return self._documents
