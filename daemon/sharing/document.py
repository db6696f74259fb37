"""``specmine.received/1``: what the fleet said to this host, as JSON in a file. Pure: values to text and back.

The daemon does not trust it: sizes are bounded, numbers checked, and only what a host may be asked for has a form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from specmine.mining.assertions.explanation import Explanation
from specmine.mining.fleet.duty import Duty
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.buckets import BUCKETS
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind

FILE = "received.json"
SCHEMA = "specmine.received/1"
MOST_BYTES = 4 << 20
MOST_DUTIES, MOST_LEFT, MOST_STATEMENTS = 512, 8_192, 512
_LONGEST_KEY = 512
_MOST_CALLS, _DUTY_CALLS, _LONGEST_NS = 1 << 52, 100_000, 1 << 50
_MOST_BORDERS, _MOST_PATHS, _MOST_BEHAVIOURS = 64, 4_096, 64


class BadOrders(ValueError):
    """A text that is no such document, or says what none may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What the fleet said."""

    boot_id: str
    told_ns: int
    """When the fleet was reached, CLOCK_MONOTONIC of that boot."""
    duties: tuple[Duty, ...] = ()
    left: tuple[str, ...] = ()
    statements: tuple[InheritedStatement, ...] = ()
    number: int = 0
    """Of the newest statement: the next contact asks for later ones."""


def received_text(received: Received) -> str:
    """Return the document."""
    return json.dumps({"schema": SCHEMA, **encode(received)}, separators=(",", ":"), allow_nan=False)


def statement_text(statement: InheritedStatement) -> str:
    """Return one statement as JSON."""
    return json.dumps(encode(statement), separators=(",", ":"), allow_nan=False)


def read_received(text: str | bytes) -> Received:
    """Return what a document says.

    Raises
    ------
    BadOrders
        If it is none.
    """
    try:
        data = json.loads(text, parse_constant=_refuse)
        if data.get("schema") != SCHEMA:
            raise BadOrders(f"not a {SCHEMA}")
        found: Received = decode(Received, data)
        _check(found)
    except BadOrders:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise BadOrders(f"not a {SCHEMA}: {error}"[:300]) from error
    return found


def read_statement(text: str | bytes) -> InheritedStatement:
    """Return one statement; BadOrders if it is none."""
    try:
        found: InheritedStatement = decode(InheritedStatement, json.loads(text, parse_constant=_refuse))
        _check_statement(found)
    except BadOrders:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise BadOrders(f"not a statement: {error}"[:300]) from error
    return found


def checked_duty(data: Any) -> Duty:
    """Return a duty of JSON values; BadOrders if it is none."""
    try:
        duty: Duty = decode(Duty, data)
    except (ValueError, RecursionError) as error:
        raise BadOrders(f"not a duty: {error}"[:300]) from error
    _check_duty(duty)
    return duty


def _check(received: Received) -> None:
    if len(received.duties) > MOST_DUTIES or len(received.left) > MOST_LEFT:
        raise BadOrders("too many duties")
    if len(received.statements) > MOST_STATEMENTS:
        raise BadOrders("too many statements")
    if not 0 <= received.told_ns < 1 << 62 or not 0 <= received.number < 1 << 62 or len(received.boot_id) > 64:
        raise BadOrders("a time or a number is out of range")
    for each in received.duties:
        _check_duty(each)
    if any(not 0 < len(key) <= _LONGEST_KEY for key in received.left):
        raise BadOrders("a key is too long")
    for one in received.statements:
        _check_statement(one)


def _check_duty(duty: Duty) -> None:
    if not 0 < len(duty.function) <= _LONGEST_KEY or not 0 < duty.calls <= _DUTY_CALLS or duty.kind is Kind.COUNT:
        raise BadOrders("a duty is out of range")


def _check_statement(one: InheritedStatement) -> None:
    learned, result = one.learned, one.result
    if not 0 < len(one.function) <= _LONGEST_KEY or len(one.build_id) > _LONGEST_KEY:
        raise BadOrders("a key is too long")
    if not 0 < one.hosts < 1 << 31 or not 0 <= one.calls < _MOST_CALLS or not 0 < one.median_ns < _LONGEST_NS:
        raise BadOrders("a number of a statement is out of range")
    _check_edges(learned.edges)
    if any(not 0 < each.duration_ns < _LONGEST_NS for each in learned.borders):
        raise BadOrders("a border is out of range")
    if learned.course is not None or not learned.stable:
        raise BadOrders("only what is stable is stated")
    if learned.borders and len(learned.class_calls) != len(learned.borders) + 1:
        raise BadOrders("classes and borders do not fit")
    if any(not math.isfinite(each) for each in (learned.bias_ns, learned.uncertainty_ns, one.median_ns)):
        raise BadOrders("a number is not finite")
    if not all(0 <= each < _LONGEST_NS for each in (learned.bias_ns, learned.uncertainty_ns)):
        raise BadOrders("a bias is out of range")
    if any(not 0 <= each < _MOST_CALLS for each in learned.class_calls):
        raise BadOrders("a number of calls is out of range")
    if result is not None:
        _check_result(result)


def _check_result(result: Explanation) -> None:
    _check_edges(result.borders)
    if not 0 < len(result.behaviours) <= _MOST_BEHAVIOURS or len(result.paths) > _MOST_PATHS:
        raise BadOrders("too many behaviours or call paths, or none")
    if not 0 <= result.bias_ns < _LONGEST_NS:
        raise BadOrders("a bias is out of range")
    for counts in _class_counts(result):
        if len(counts) != len(result.borders) + 1 or any(not 0 <= each < _MOST_CALLS for each in counts):
            raise BadOrders("classes and borders do not fit")
    for path in result.paths:
        if path.behaviour is not None and not 0 <= path.behaviour < len(result.behaviours):
            raise BadOrders("a call path belongs to no behaviour")
        if not 0 < len(path.path.frames) <= 512:
            raise BadOrders("a call path has no frame, or too many")


def _class_counts(result: Explanation) -> Iterator[tuple[int, ...]]:
    yield result.class_calls
    for behaviour in result.behaviours:
        yield behaviour.class_calls
    for path in result.paths:
        yield path.class_calls


def _check_edges(edges: tuple[int, ...]) -> None:
    ascending = all(low < high for low, high in pairwise(edges))
    if len(edges) > _MOST_BORDERS or not ascending or any(not 0 < each < BUCKETS for each in edges):
        raise BadOrders("borders are out of range")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
