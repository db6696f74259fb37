"""What the parts of a specification must be, before anything is made of them: its file may come from anywhere.

Parts are told by their names, which mean the same wherever they stand. Unknown ones are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from specmine.model.errors import InputError
from specmine.model.histogram import Histogram
from specmine.model.json_codec import decode
from specmine.model.text import escaped

DEEPEST = 40
"""Levels of nesting."""
_LARGEST = 1e18
Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and int(value) == value


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _histogram(value: Any) -> bool:
    try:
        decode(Histogram, value)
    except (ValueError, TypeError):
        return False
    return True


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _either(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def _named(check: Check, names: str) -> dict[str, Check]:
    return dict.fromkeys(names.split(), check)


_CHECKS: Mapping[str, Check] = {
    **_named(
        _text, "schema function module state expression caller callee code text remedy verdict grade key mangled kind"
    ),
    **_named(_text, "what direction id"),
    **_named(
        _optional(_text),
        "build_id label program_name needed checked climbed_from descended_from cause_text at since began comment",
    ),
    **_named(_count, "calls timed observations censored offset"),
    **_named(_optional(_count), "calls_counted windows"),
    **_named(
        _number,
        "share utility time_share idle_share watched_seconds uncertainty_seconds bias_seconds mean_seconds",
    ),
    **_named(_optional(_number), "certainty independent_calls"),
    **_named(_optional(_number), "seconds low high upper_seconds price_ns rate_per_second factor behaviour level"),
    **_named(_list(_object), "functions behaviours classes borders checks inside violations"),
    **_named(_list(_text), "frames aliases"),
    **_named(_list(_number), "borders_seconds shares"),
    **_named(_optional(_list(_optional(_number))), "calls_interval range_seconds"),
    **_named(_list(_list(_object)), "formula"),
    **_named(_optional(_histogram), "histogram"),
    **_named(_optional(_object), "observed on_cpu collection host p50 p90 p99 quantiles expected evidence merge"),
    **_named(_optional(_object), "observed_span windows_span"),
    **_named(_optional(_either(_object, _text)), "program reason cause"),
    **_named(_optional(_either(_object, _number)), "time"),
    **_named(_optional(_either(_count, _list(_object))), "paths lifetimes"),
}
_OF_THE_WHOLE: Mapping[str, Check] = {"program": _optional(_object)}
"""Parts of the whole document that mean something else in the entry of a function."""
_FREE = ("histogram", "source", "environment", "evidence", "merge")
"""Parts whose own parts have other meanings."""
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "functions": ("function", "module"),
    "behaviours": ("expression", "shares", "calls"),
    "classes": ("share",),
    "paths": ("frames", "shares", "calls"),
    "inside": ("callee", "share"),
}
"""What every entry of some lists has."""


def check_shape(document: Mapping[str, Any], where: object) -> None:
    """Raise InputError if a part of a specification is not what its name says.

    Parameters
    ----------
    document : mapping
    where : object
        What to call it in the message.
    """
    problem = next(_problems(document, "", 0), None) or next(_no_numbers(document), None)
    if problem is not None:
        raise InputError(f"{where} is no specification: {problem}", remedy="make it again")


def _no_numbers(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what JSON has no number for, wherever it stands: Python reads it, and cannot write it again."""
    rest: list[tuple[str, Any]] = [("", document)]
    while rest:
        place, value = rest.pop()
        if isinstance(value, dict):
            rest += ((f"{place}.{name}" if place else str(name), part) for name, part in value.items())
        elif isinstance(value, list):
            rest += ((place, part) for part in value if isinstance(part, dict | list | float))
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{escaped(place[:80])} is {value}, which is no number in JSON"


def _problems(value: Any, place: str, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        yield f"{place[:60]}... is nested too deeply"
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            if isinstance(each, dict | list):
                yield from _problems(each, f"{place}[{number}]", depth + 1)
        return
    for name, part in value.items():
        here = f"{place}.{name}" if place else str(name)
        check = _CHECKS.get(name) if depth else _OF_THE_WHOLE.get(name, _CHECKS.get(name))
        if check is not None and not check(part):
            yield f"{escaped(here[:80])} is {escaped(repr(part)[:60])}"
            return
        for at, each in enumerate(part if isinstance(part, list) and name in _NEEDED else ()):
            missing = [needed for needed in _NEEDED[name] if needed not in each]
            if missing:
                yield f"{here[:80]}[{at}] has no {missing[0]}"
                return
        if name not in _FREE and isinstance(part, dict | list):
            yield from _problems(part, here, depth + 1)
