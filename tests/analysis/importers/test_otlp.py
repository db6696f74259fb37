"""Spans in OTLP JSON are calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specmine.analysis.importers import otlp
from tests.support.recordings import Durations, read_calls

Span = dict[str, Any]


def span(name: str, own: str, parent: str, start: int, end: int, trace: str = "t1") -> Span:
    """Return a span as OTLP writes it."""
    return {"traceId": trace, "spanId": own, "parentSpanId": parent, "name": name,
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}  # fmt: skip


def export(*spans: Span, service: str = "shop") -> Span:
    """Return an export of the spans of one service."""
    attributes = [{"key": "service.name", "value": {"stringValue": service}}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": list(spans)}]}]}


def test_spans_are_calls_and_parents_their_path(tmp_path: Path) -> None:
    """Children may come before their parents and from another service; a missing parent is told."""
    file = tmp_path / "spans"
    lines = [
        export(span("SELECT", "c", "b", 20, 50), span("lost", "d", "ff", 5, 6)),
        export(span("GET /cart", "b", "a", 10, 60), service="api"),
        export(span("GET /cart", "a", "0000000000000000", 0, 100), service="edge"),
        export(span("retry", "x", "", 0, 9, "t2"), span("retry", "y", "x", 1, 8, "t2")),
    ]
    expected = {
        ("GET /cart", "GET /cart", "SELECT"): [30.0],
        ("lost", "?"): [1.0],
        ("GET /cart", "GET /cart"): [50.0],
        ("GET /cart",): [100.0],
        ("retry",): [9.0],
    }
    file.write_text("\n".join(map(json.dumps, lines)))
    form, found, names, _ = read_calls(file)
    assert (form, found) == ("otlp", expected)
    assert sum(names.inner.values()) == 1
    whole = {"resourceSpans": [each for line in lines for each in line["resourceSpans"]]}
    file.write_text(json.dumps(whole, indent=2))
    assert read_calls(file)[1] == expected


def test_spans_that_are_each_others_parents_are_counted(tmp_path: Path) -> None:
    """What called them is unknown, also of those below a ring; the others of the trace keep their paths."""
    file = tmp_path / "spans"
    ring = [span(f"r{n}", f"{n:x}", f"{(n - 10 + 1) % 3 + 10:x}", 0, n, "t1") for n in (10, 11, 12)]
    below = span("below", "d", "a", 0, 4)
    good = (span("root", "1", "", 0, 9), span("leaf", "2", "1", 0, 3), span("self", "3", "3", 0, 2))
    file.write_text(json.dumps(export(*ring, below, *good)))
    found, names = read_calls(file)[1:3]
    unknown: Durations = {("r10", "?"): [10.0], ("r11", "?"): [11.0], ("r12", "?"): [12.0], ("below", "?"): [4.0]}
    assert found == {**unknown, ("self", "?"): [2.0], ("root",): [9.0], ("root", "leaf"): [3.0]}
    assert names.rings.total() == 5


def test_a_large_ring_takes_no_longer_than_other_spans(tmp_path: Path) -> None:
    """Each span is walked once, not once for each span of its ring."""
    file = tmp_path / "spans"
    many = 50_000
    file.write_text(
        json.dumps(export(*(span("x", f"{n + 1:x}", f"{(n + 1) % many + 1:x}", 0, 5) for n in range(many))))
    )
    found, names = read_calls(file)[1:3]
    assert len(found[("x", "?")]) == names.rings.total() == many


def test_waiting_spans_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too many wait, the traces untouched for longest go, and late children know no parent."""
    monkeypatch.setattr(otlp, "WAITING", 10)
    file = tmp_path / "spans"
    lines = [export(span("root", "a", "", 0, 5, f"t{n}")) for n in range(40)]
    lines.append(export(span("late", "b", "a", 1, 2, "t0"), span("soon", "b", "a", 1, 2, "t39")))
    file.write_text("\n".join(map(json.dumps, lines)))
    found = read_calls(file)[1]
    assert found[("late", "?")] == found[("root", "soon")] == [1.0]
    assert len(found[("root",)]) == 40
