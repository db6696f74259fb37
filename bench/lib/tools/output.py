"""What other tools print of functions, as numbers: their calls with a duration, or their shares of the samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

LEAST_CALLS = 100
"""A function is known from so many timed calls on, whatever the tool."""

_BPFTRACE = re.compile(r"@hist\[(\d+)\]:|^[\[(].*[\])]\s+(\d+) \|", re.MULTILINE)
_FUNCLATENCY = re.compile(r"Function = (?:b')?([^'\s]+)|^\s*\d+ -> \d+\s*: (\d+)\s*\|", re.MULTILINE)
_UFTRACE = re.compile(r"^\s*(?:[\d.]+\s+[a-z]+\s+){2}(\d+)\s+(\S.*)$", re.MULTILINE)


def bpftrace_calls(text: str) -> Counter[str]:
    """Return the calls in each histogram of a map that has one by number."""
    return _in_sections(_BPFTRACE, text)


def funclatency_calls(text: str) -> Counter[str]:
    """Return the calls in the histograms of each function, of all processes."""
    return _in_sections(_FUNCLATENCY, text)


def _in_sections(pattern: re.Pattern[str], text: str) -> Counter[str]:
    calls: Counter[str] = Counter()
    name = ""
    for found in pattern.finditer(text):
        if found[1] is not None:
            name = found[1]
        else:
            calls[name] += int(found[2])
    return calls


def uftrace_calls(text: str) -> Counter[str]:
    """Return the calls of each function in a report; events of the kernel are no functions."""
    rows = ((int(calls), name) for calls, name in _UFTRACE.findall(text))
    return Counter({name: calls for calls, name in rows if not name.startswith("linux:")})


def perf_samples(text: str) -> dict[str, int]:
    """Return the samples of each named symbol of programs and libraries, the most first.

    ``text`` is a report of ``-F sample,sym -t '|'``. Addresses without a name are no functions, and ``[k]`` is the
    kernel's.
    """
    rows = [line.split("|") for line in text.splitlines() if "|" in line and not line.startswith("#")]
    found: Counter[str] = Counter()
    for samples, symbol in rows:
        kind, _, name = symbol.strip().partition(" ")
        if kind == "[.]" and not name.strip().startswith("0x"):
            found[name.strip()] += int(samples)
    return dict(found.most_common())


def known(calls: Mapping[str, int]) -> int:
    """Return how many functions have enough calls."""
    return sum(count >= LEAST_CALLS for count in calls.values())


def specmine_known(functions: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many functions of a specification have enough timed calls, and of how many p50 and p99 are stated."""
    return (
        sum(each["timed"] >= LEAST_CALLS for each in functions),
        sum({"p50", "p99"} <= set(each["quantiles"]) for each in functions),
    )
