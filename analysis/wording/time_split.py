"""Running, waiting and blocked time of calls as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specmine.analysis.documents import Entry
from specmine.model.text import duration, escaped, share

_PARTS = ("running", "waiting", "blocked")
_WORDS = {"running": "running", "waiting": "waiting for a CPU", "blocked": "blocked"}


def times(entry: Any) -> Iterator[str]:
    """Return one class' shares of running, waiting and blocked, and its label; nothing where they are not known."""
    if not isinstance(entry.get("running"), int | float):
        return
    yield _parts(entry)
    label, waited = entry.get("label"), entry.get("waited_interval_seconds")
    if label:
        give = ""
        if entry.get("cause") in ("slices", "preempted", "quota") and waited:
            give = (
                f"; a call waited {duration(entry['waited_seconds'])} ({duration(waited[0])} to {duration(waited[1])})"
            )
        yield f"{escaped(str(label))}{give}"


def overall(entry: Entry) -> Iterator[str]:
    """Return the shares of all calls, and what explains the classes."""
    found = entry.get("time")
    if not isinstance(found, dict):
        return
    yield f"all calls: {_parts(found)}"
    if isinstance(found.get("explains"), int | float):
        yield (
            f"waiting and blocking explain {share(found['explains'])} of how the classes differ,"
            f" call paths {share(found.get('paths_explain') or 0.0)}"
        )
    if found.get("slice_seconds"):
        low, high = found["slice_interval_seconds"]
        yield f"timeslice of this host: {duration(found['slice_seconds'])} ({duration(low)} to {duration(high)})"


def on_cpu(entry: Entry) -> Iterator[str]:
    """Return what is asserted about the time on CPU."""
    found = entry.get("on_cpu")
    if not isinstance(found, dict):
        return
    yield (f"time on CPU: median {duration(found['median_seconds'])}, 99th percentile {duration(found['p99_seconds'])}")
    if not found.get("classes"):
        yield "time on CPU: not stable yet"
        return
    verdict = found.get("verdict")
    checked = f": {verdict}" if verdict in ("holds", "violated") else ""
    borders = found.get("borders_seconds") or []
    span = found.get("range_seconds")
    within = f", nearly all calls from {duration(span[0])} to {duration(span[1])}" if span else ""
    if not borders:
        yield f"assertion on time on CPU, one class{within}{checked}"
        return
    shares = ", ".join(share(float(each.get("share") or 0)) for each in found["classes"])
    yield f"assertion on time on CPU, borders {', '.join(map(duration, borders))}: {shares}{within}{checked}"


def explanation(entry: Entry) -> str:
    """Return the sentence that waiting distinguishes the classes, '' if it does not."""
    found = entry.get("time")
    if not isinstance(found, dict) or not found.get("is_cause"):
        return ""
    return "what tells these classes apart is how long calls waited or were blocked, not the call path"


def labels(entry: Entry, names: list[str]) -> Iterator[str]:
    """Return a line for each class that has a label."""
    for name, each in zip(names, entry.get("classes") or [], strict=False):
        if each.get("label"):
            yield f"{name}: {escaped(str(each['label']))} ({_parts(each)})"


def _parts(entry: Any) -> str:
    return ", ".join(f"{share(float(entry[name]))} {_WORDS[name]}" for name in _PARTS)
