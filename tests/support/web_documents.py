"""Documents for pages: the sample of the command line, violations made by hand, a status."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from specmine.daemon.documents.trend import trend_of, trends_of
from specmine.daemon.documents.violations import Context, Named, explained_by, listed
from specmine.mining.assertions.expression import parse
from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.violation import Direction, ViolationState
from specmine.store import Host, Store, Writes, open_store, stored
from specmine.web.documents import Documents
from tests.support.command_line import DATA
from tests.support.violations import SECOND, violation

HOSTILE = "<script>alert('x')</script>\x1b[31m\u202e\"&"
AT = "2026-11-22T03:12:40.000Z"
PLACES_NS = (19_000, 20_000, 21_000, 22_000, 115_000)
"""Where the durations of the sample lie."""
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
    "lifetimes": [
        {
            "program": "shop",
            "pid": 1,
            "executable": "/bin/shop",
            "build_id": "ab" * 20,
            "processes": 4,
            "started": "2026-11-22T02:38:02.000Z",
        }
    ],
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
        "callee": Named(
            function=HOSTILE if hostile else "checksum",
            program="shop",
            module="shop",
            build_id="ab" * 20,
            callers=(HOSTILE if hostile else "handle_get",),
        ),
        str(first.get("key") or "first"): Named(
            function=str(first["function"]), program=str(first.get("program") or ""), module=str(first["module"])
        ),
        "other": Named(function="render", program="shop", module="shop"),
    }
    first["key"] = str(first.get("key") or "first")
    for each in specification["functions"]:
        if each["state"] in ("single", "explained"):
            each["detectable"] = {"ratio": 1.6, "within_seconds": 60.0, "doubled_seconds": 60.0, "windows": 120,
                                  "windows_needed": 90, "window_seconds": 10.0}  # fmt: skip
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


def sample_trend(keys: Sequence[str], hours: float) -> dict[str, Any]:
    """Return a window a minute of a function that became 1.5 times as slow after 90 of 120 minutes, in a new build."""
    formulas = {each: parse(each) for each in ("b->c", "not b->c")}
    return _with_sample(keys[0], hours, lambda store, end, length: trend_of(store, keys, end, length, formulas))


def sample_trends(keys: Sequence[str], hours: float) -> dict[str, Any]:
    """Return the medians of the same windows, for each function."""
    found = _with_sample(keys[0], hours, lambda store, end, length: trends_of(store, keys[:1], end, length))
    return {**found, "functions": dict.fromkeys(keys, found["functions"][keys[0]])}


def sample_windows(store: Store, key: str, end: datetime, hours: float) -> None:
    """Write the windows of the sample into a store, with the program's two lifetimes and the open violation."""
    rng = random.Random(1)
    begin = end - timedelta(hours=hours)
    host = Host(boot_id="boot", hostname="shop-03", utc_offset_ns=0)
    lifetimes = [
        Lifetime(id=f"boot:{pid}:1", pid=pid, executable="/bin/shop", build_id=build * 20, program="shop", processes=1,
                 start_ns=_ns(begin + timedelta(minutes=minute)))
        for pid, build, minute in ((1, "aa", -60), (2, "ab", 85))
    ]  # fmt: skip
    windows = []
    for minute, slow in enumerate([False] * 86 + [True] * 34):
        if 40 <= minute < 52:
            continue
        paths = tuple(
            PathHistogram(
                path=CallPath(tuple(Frame(name, "app") for name in ("main", "a", "b", *callers, "z"))),
                histogram=Histogram.from_durations(
                    [round((1 + slow / 2) * rng.choice(places) * rng.lognormvariate(0, 0.12)) for _ in range(calls)]
                ),
            )
            for callers, places, calls in (
                (("c",), PLACES_NS[:4], 130),
                ((), (*PLACES_NS[:3], *PLACES_NS[4:] * 2), 270),
            )
        )
        windows.append(
            Observation(
                function=key, lifetime=f"boot:{1 + (minute >= 85)}:1", kind=Kind.PATH,
                start_ns=_ns(begin + timedelta(minutes=minute)), end_ns=_ns(begin + timedelta(minutes=minute + 1)),
                calls=400, watched_ns=60 * SECOND, histogram=Histogram.sum(each.histogram for each in paths),
                paths=paths,
            )
        )  # fmt: skip
    open_ = stored(violation(key, factor=1.5, since_ns=_ns(begin + timedelta(minutes=86)), id="0" * 12), 0)
    store.write(Writes((host, *lifetimes, *windows, open_)), _ns(end))


def _with_sample(key: str, hours: float, made: Callable[[Store, int, int], dict[str, Any]]) -> dict[str, Any]:
    end = datetime.fromisoformat(AT)
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "sample.db") as store:
        sample_windows(store, key, end, hours)
        return made(store, _ns(end), round(hours * 3600) * SECOND)


def _ns(at: datetime) -> int:
    return int(at.timestamp()) * SECOND


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

    def trend(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Return the same windows for every function, the last two hours of them; no more for a longer time."""
        return sample_trend(keys, 2) if hours == 2 else {}

    def trends(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Return the medians of the same windows for every function."""
        return sample_trends(keys, 2)
