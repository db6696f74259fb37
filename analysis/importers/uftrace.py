"""What uftrace prints: ``uftrace dump --chrome`` (exact, with times) and ``uftrace replay`` (three digits)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from specmine.model.call_path import Frame
from specmine.model.errors import InputError

from .call_stack import CallStacks
from .json_stream import elements
from .records import Calls, Chunk, Faults, Names

_UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_LINE = re.compile(
    r"(?:[ *#!+$@~]*(?P<duration>\d+\.?\d*) +(?P<unit>ns|us|ms|s|m|h)\b|\s*)"
    r"[^|]*?\[ *(?P<thread>\d+)\](?P<more>[^|]*)\| ?(?P<text>.*)"
)
_QUOTED = re.compile(r'"[^"]*"')
_TIME = re.compile(r"(?<!\S)(\d+)\.(\d{9})(?!\S)")


def read_chrome(file: BinaryIO, names: Names, faults: Faults) -> Iterator[Chunk]:
    """Yield the calls of a trace of begin and end events (``ph`` B and E) in the Chrome trace format.

    Complete events (``ph`` X) have no call path of their own: their path is unknown unless they stand inside
    begun ones.

    Raises
    ------
    InputError
        At an event that cannot be read, unless such are skipped.
    """
    stacks, calls = CallStacks(names), Calls()
    for line, event in elements(file, "traceEvents", faults):
        try:
            _take(event, stacks, calls)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            faults.bad(line, f"not a trace event: {type(error).__name__} {error}")
        if calls.full:
            yield calls.take()
    stacks.close()
    yield calls.take()


def _take(event: dict[str, Any], stacks: CallStacks, calls: Calls) -> None:
    kind = event["ph"]
    if kind not in ("B", "E", "X"):
        return
    thread = (event.get("pid"), event.get("tid"))
    # microseconds with a fraction; a double holds the nanoseconds of an uptime of 100 days
    now_ns = round(float(event["ts"]) * 1000)
    name = event.get("name")
    frame = Frame(str(name), "") if name is not None or kind != "E" else None
    if kind == "B" and frame is not None:
        stacks.enter(thread, frame, now_ns)
    elif kind == "E":
        stacks.leave(thread, frame, calls, now_ns)
    elif frame is not None:
        duration_ns = float(event["dur"]) * 1000
        if not 0 <= duration_ns < 1e18:
            raise ValueError(f"dur {event['dur']}")
        stacks.enter(thread, frame, now_ns, rooted=False)
        stacks.leave(thread, frame, calls, now_ns + round(duration_ns), duration_ns)


def read_replay(file: BinaryIO, names: Names, faults: Faults) -> Iterator[Chunk]:
    """Yield the calls of the text that ``uftrace replay`` prints, times too if ``-f +time`` was given.

    Raises
    ------
    InputError
        At a line that cannot be read, unless such are skipped.
    """
    stacks, calls = CallStacks(names), Calls()
    stacks.timed = False
    for number, data in enumerate(file, start=1):
        line = data.decode("utf-8", "backslashreplace").rstrip()
        if line.lstrip().startswith("#") and "FUNCTION" in line:
            stacks.timed = _checked_header(line, faults)
            continue
        if line.startswith("uftrace stopped tracing"):
            break  # what was still open is listed below
        if line:
            found = _LINE.match(line)
            why = _take_line(found, stacks, calls) if found else "not a line of uftrace replay"
            if why:
                faults.bad(number, why)
        if calls.full:
            yield calls.take()
    stacks.close()
    yield calls.take()


def _checked_header(line: str, faults: Faults) -> bool:
    """Return whether there are times; InputError if durations or threads are not shown, or not in front."""
    columns = line.replace("#", " ").split()
    if columns[0] != "DURATION" or "TID" not in columns:
        raise InputError(
            f"{faults.source}: durations and threads are not where they are by default",
            remedy="run `uftrace replay` without -f, or with -f +time",
        )
    return "TIMESTAMP" in columns


def _take_line(found: re.Match[str], stacks: CallStacks, calls: Calls) -> str:
    """Take a line; return what is wrong with it, '' if nothing is."""
    text, thread = found["text"].strip(), found["thread"]
    duration_ns = float(found["duration"]) * _UNITS_NS[found["unit"]] if found["duration"] else None
    time = _TIME.search(found["more"])
    now_ns = int(time[1]) * 1_000_000_000 + int(time[2]) if time else 0
    if not text or text.startswith("/*"):
        return ""  # an event of the kernel, a comment
    text = re.sub(r"\s*/\*.*\*/$", "", text)
    entry = text.endswith(" {")
    why = ""
    if stacks.timed and not time:
        why = "no time, where others have one"
    elif not entry and duration_ns is None:
        why = "a call, or its end, without its duration"
    elif text.startswith("}"):  # "} = 6;" with its return value
        stacks.leave(thread, None, calls, now_ns, duration_ns)
    elif entry or text.endswith(";"):
        stacks.enter(thread, Frame(_name(text[:-1]), ""), now_ns)
        if not entry:
            stacks.leave(thread, None, calls, now_ns + round(duration_ns or 0), duration_ns)
    else:
        why = "neither a call nor its end"
    return why


def _name(text: str) -> str:
    """Return the name of a function without arguments and return value."""
    text = _QUOTED.sub('""', text.strip())
    if not text.endswith(")"):
        head, equals, _ = text.rpartition(") = ")
        text = head + ")" if equals else text
    if not text.endswith(")"):
        return text
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth == 0:
            return text[:place] or text
    return text
