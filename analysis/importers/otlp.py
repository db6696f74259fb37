"""OpenTelemetry spans in OTLP JSON: a span is a call, its name the function, its parents the call path.

The file exporter of the collector writes one such object a line; one object over many lines is read as well.
Spans of a trace come in any order, and a child usually before its parent, so they wait for each other; only so
many can wait. A span whose parent is not there when its turn comes has an incomplete path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from specmine.model.call_path import Frame

from .json_stream import elements
from .records import Calls, Chunk, Faults, Names

WAITING = 200_000
"""Spans that wait for their parents; when there are more, the traces untouched for longest go."""


@dataclass(frozen=True, slots=True)
class _Span:
    frame: Frame
    parent: str
    duration_ns: int
    end_ns: int
    lifetime: int


_Trace = dict[str, _Span]


def read_otlp(file: BinaryIO, names: Names, faults: Faults) -> Iterator[Chunk]:
    """Yield the calls of a file of ``resourceSpans``.

    The service's name is the module of its functions, ``service.instance.id`` the lifetime. A span inside
    another of the same name and service is an inner call.

    Raises
    ------
    InputError
        At a span that cannot be read, unless such are skipped.
    """
    calls = Calls()
    traces: dict[str, _Trace] = {}
    waiting = 0
    for line, resource in elements(file, "resourceSpans", faults):
        try:
            service, lifetime = _resource(resource)
            spans = list(_spans(resource))
        except (AttributeError, TypeError, KeyError) as error:
            faults.bad(line, f"not a resourceSpans object: {type(error).__name__} {error}")
            continue
        for span in spans:
            try:
                trace, own, read = _span(span, service, names.lifetime(lifetime))
            except (AttributeError, TypeError, KeyError, ValueError) as error:
                faults.bad(line, f"not a span: {type(error).__name__} {error}")
                continue
            traces[trace] = members = traces.pop(trace, {})  # the one touched last stands last
            waiting += own not in members
            members[own] = read
        while waiting > WAITING:
            oldest = traces.pop(next(iter(traces)))
            waiting -= len(oldest)
            _resolve(oldest, names, calls)
            if calls.full:
                yield calls.take()
    for each in traces.values():
        _resolve(each, names, calls)
        if calls.full:
            yield calls.take()
    yield calls.take()


def _resource(resource: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the service and of its instance, '' where there is none."""
    said = {
        each.get("key"): next(iter((each.get("value") or {}).values()), "")
        for each in (resource.get("resource") or {}).get("attributes") or []
    }
    return str(said.get("service.name", "")), str(said.get("service.instance.id", ""))


def _spans(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ("scopeSpans", "instrumentationLibrarySpans"):  # the second until OTLP 0.15
        for scope in resource.get(key) or []:
            yield from scope.get("spans") or []


def _span(span: Mapping[str, Any], service: str, lifetime: int) -> tuple[str, str, _Span]:
    """Return the trace, the span's id and the span."""
    end_ns = int(span["endTimeUnixNano"])
    duration_ns = end_ns - int(span["startTimeUnixNano"])
    if duration_ns < 0:
        raise ValueError("it ends before it starts")
    if not 0 <= end_ns < 1 << 63:
        raise ValueError(f"it ends at {end_ns}")
    parent = str(span.get("parentSpanId") or "").lower()
    own = str(span["spanId"]).lower()
    frame = Frame(str(span["name"]), service)
    return str(span["traceId"]).lower(), own, _Span(frame, parent.strip("0") and parent, duration_ns, end_ns, lifetime)


def _resolve(trace: _Trace, names: Names, calls: Calls) -> None:
    """Add the calls of a trace."""
    endless = _endless(trace)
    for own, span in trace.items():
        if own in endless:
            names.rings[names.function(span.frame)] += 1
            calls.add(names.path(span.frame, (), complete=False), span.duration_ns, span.lifetime, span.end_ns)
            continue
        callers: list[Frame] = []
        parent = span.parent
        while parent in trace:
            above = trace[parent]
            callers.append(above.frame)
            parent = above.parent
        if span.frame in callers:
            names.inner[names.function(span.frame)] += 1
            continue
        path = names.path(span.frame, tuple(reversed(callers)), complete=not parent)
        calls.add(path, span.duration_ns, span.lifetime, span.end_ns)


def _endless(trace: _Trace) -> set[str]:
    """Return the spans whose parents lead into a ring of spans that are each other's parents: they have no root."""
    ended: set[str] = set()
    endless: set[str] = set()
    for own in trace:
        way: dict[str, None] = {}
        at = own
        while at in trace and at not in way and at not in ended and at not in endless:
            way[at] = None
            at = trace[at].parent
        (endless if at in way or at in endless else ended).update(way)
    return endless
