"""Text as ``perf script`` prints it, which bpftrace prints too when asked: a line of facts, then the stack.

    comm PID[/TID] [CPU] SECONDS.FRACTION: DURATION_NS EVENT:        a call, its duration where perf has the period
    comm PID[/TID] [CPU] SECONDS.FRACTION: probe_BINARY:FUNCTION: .. entry, and FUNCTION__return: its end
            ADDRESS SYMBOL+OFFSET (FILE)                             frames, innermost first

and folded stacks, one call a line: ``main;a;z 61200`` (ns).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import BinaryIO

from specmine.model.call_path import Frame

from .csv import decimal
from .records import Calls, Chunk, Faults, Names

HEAD = re.compile(
    r"(?P<comm>\S.*?)\s+(?P<pid>-?\d+)(?:/(?P<tid>-?\d+))?\s+(?:\[(?P<cpu>\d+)\]\s+)?(?P<time>\d+\.\d+):\s+"
    r"(?:(?P<duration>\d+(?:\.\d+)?)\s+)?(?P<event>\S+?):(?:\s+(?P<more>.*))?$"
)
_FRAME = re.compile(r"\s+(?P<address>[0-9a-f]+)\s+(?P<symbol>.+?)(?:\+0x[0-9a-f]+|\+\d+)?\s+\((?P<file>.*)\)\s*$")
FOLDED = re.compile(r"(?P<path>\S.*?)\s+(?P<duration>[0-9.]+)\s*$")
_SAMPLED = re.compile(r"cycles|clock|instructions|faults|misses|branches")
_CHATTER = re.compile(r"#|Attaching \d+ probe|Lost \d+ events|@")
"""What else perf and bpftrace print: comments, what was attached, maps at the end."""
_RETURN = "__return"


@dataclass(slots=True)
class _Event:
    """A line of facts, with the frames below it so far."""

    line: int
    thread: str
    time_ns: int
    name: str
    duration_ns: float | None
    returned: bool = False
    stack: list[Frame] = field(default_factory=list)
    whole: bool = True


def read_perf(file: BinaryIO, names: Names, faults: Faults) -> Iterator[Chunk]:
    """Yield the calls of a text of ``perf script``, of bpftrace in the same form, or of folded stacks.

    A stack with an unknown frame is not complete; a call without a stack has an unknown path.

    Raises
    ------
    InputError
        At a line that cannot be read, unless such are skipped.
    """
    pairs, calls = _Pairs(names), Calls()
    event: _Event | None = None
    for number, data in enumerate(file, start=1):
        line = data.decode("utf-8", "backslashreplace").rstrip("\r\n")
        if not line.strip() or _CHATTER.match(line):
            continue
        why = ""
        if line[0].isspace() and event is not None and (frame := _FRAME.match(line)):
            _add_frame(event, frame)
        elif head := HEAD.match(line.strip()):
            why = pairs.take(event, calls)
            event, bad = _event(head, number)
            if bad:
                faults.bad(number, bad)
        elif folded := FOLDED.match(line):
            why = _take_folded(folded, names, calls)
        else:
            why = "neither an event, nor a frame of a stack, nor a folded stack with its duration"
        if why:
            faults.bad(number, why)
        if calls.full:
            yield calls.take()
    pairs.take(event, calls)
    pairs.close()
    yield calls.take()


def _event(head: re.Match[str], line: int) -> tuple[_Event | None, str]:
    """Return the event of a line of facts, or None and why it is none."""
    name = head["event"].rpartition(":")[2]
    if _SAMPLED.search(head["event"]) or (head["duration"] is None and ":" not in head["event"]):
        return None, f"{head['event']} is a sample, not the duration of a call"
    whole, _, fraction = head["time"].partition(".")
    return _Event(
        line=line,
        thread=head["tid"] or head["pid"],
        time_ns=int(whole) * 1_000_000_000 + int((fraction + "0" * 9)[:9]),
        name=name.removesuffix(_RETURN),
        duration_ns=None if head["duration"] is None else float(head["duration"]),
        returned=name.endswith(_RETURN),
    ), ""


def _add_frame(event: _Event, found: re.Match[str]) -> None:
    module, symbol = PurePosixPath(found["file"]).name, found["symbol"]
    if symbol == "[unknown]" or module == "unknown" or symbol.startswith("0x"):
        event.whole = False
        symbol = f"{module}+0x{found['address']}" if symbol == "[unknown]" else symbol
    event.stack.append(Frame(symbol, module))


def _take_folded(found: re.Match[str], names: Names, calls: Calls) -> str:
    duration_ns, why = decimal(found["duration"])
    if not why:
        frames = found["path"]
        own = frames.rpartition(";")[2]
        calls.add(names.path_of_text(own, frames if ";" in frames else ""), duration_ns, names.lifetime(""))
    return why


class _Pairs:
    """Joins entries with returns: the last entry of a function in a thread goes with its next return."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._open: dict[tuple[str, str], list[_Event]] = {}
        self._returning: set[str] = set()
        """Functions of which there are returns."""

    def take(self, event: _Event | None, calls: Calls) -> str:
        """Take an event whose stack is complete."""
        if event is None:
            return ""
        if event.duration_ns is not None:
            self._add(event, event.duration_ns, event.time_ns, calls)
            return ""
        begun = self._open.setdefault((event.thread, event.name), [])
        if not event.returned:
            begun.append(event)
            return ""
        self._returning.add(event.name)
        if not begun:
            self._names.unentered[self._names.function(_function(event))] += 1
        else:
            entry = begun.pop()
            if begun:  # inside an outer call of the same function
                self._names.inner[self._names.function(_function(entry))] += 1
            else:
                self._add(entry, max(0, event.time_ns - entry.time_ns), event.time_ns, calls)
        return ""

    def close(self) -> None:
        """Count the calls whose return is missing."""
        for (_, name), begun in self._open.items():
            # inside an open call there are inner ones; without any return all are calls of their own
            for entry in begun[:1] if name in self._returning else begun:
                self._names.censored[self._names.function(_function(entry))] += 1

    def _add(self, event: _Event, duration_ns: float, time_ns: int, calls: Calls) -> None:
        own = _function(event)
        callers = tuple(reversed(event.stack[1:] if event.stack[:1] == [own] else event.stack))
        path = self._names.path(own, callers, complete=event.whole and bool(event.stack))
        calls.add(path, duration_ns, self._names.lifetime(""), time_ns)


def _function(event: _Event) -> Frame:
    """Return the function that an event is about: as its innermost frame has it, if that is the one."""
    first = event.stack[0] if event.stack else None
    return first if first is not None and first.name == event.name else Frame(event.name, "")
