"""What the daemon made of one fault."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from bench.faults.programs.fault import Fault, Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the daemon made of one fault."""

    program: str
    fault: str
    opened_s: float | None
    """From the injection to the first violation; None: not within the time."""
    first: str = ""
    """The function that is named first: the one that a title ends with, else the violated one."""
    right: bool = False
    of_three: bool = False
    """One of the first three that are named is right."""
    factor: float | None = None
    true_factor: float | None = None
    """What was injected, or what the program's own account says; of the function that the fault slows."""
    measured_factor: float | None = None
    """What bpftrace measures, of the same quantile of the same function as ``factor``."""
    interval: tuple[float, float] | None = None
    """Between which the factor is, as the violation says."""
    felt: float | None = None
    """How many times as long the requests of clients took, by the clients' account; None: there is no account."""
    cause: str = ""
    cause_right: bool = False
    cause_text: str = ""
    others: int = 0
    """Other functions that are called causes."""
    closed_s: float | None = None
    """From undoing to the moment when none stands."""
    harmless: bool = False
    by_host: bool = False
    """Only the host is to blame."""
    functions: tuple[str, ...] = ()
    """Globs of the functions that are slower by themselves; empty: any."""
    known: str = ""
    """The functions that the fault slows by itself and that had been learned when it was injected."""
    short_s: float | None = None
    """From the injection of a fault of the host to the moment when the program was said to be short of CPU time."""
    title: str = ""
    """The summary of the page."""
    text: str = ""
    """Its description."""
    began_ns: int = 0
    """When it was injected, Unix time ..."""
    undone_ns: int = 0
    """... and when it was undone."""
    load: float = 0.0
    """The load average of the host when it was undone."""


def outcome_of(service: Service, fault: Fault, opened_s: float | None, found: list[dict[str, Any]]) -> Outcome:
    """Return what open violations say of a fault, in the order in which the daemon tells them."""
    none = fault.harmless and opened_s is None
    by_host = fault.causes == ("host",)
    outcome = Outcome(program=service.name, fault=fault.name, opened_s=opened_s, harmless=fault.harmless,
                      by_host=by_host, right=none, of_three=none, cause_right=none,
                      functions=fault.functions)  # fmt: skip
    if not found:
        return outcome
    violation, cause, names = found[0], found[0]["cause"], names_in(found)
    return Outcome(
        program=service.name,
        fault=fault.name,
        opened_s=opened_s,
        first=names[0],
        right=is_slowed(names[0], fault) and not fault.harmless,
        of_three=any(is_slowed(name, fault) for name in names[:3]) and not fault.harmless,
        factor=violation["factor"],
        interval=tuple(violation["interval"]),
        cause=cause["kind"],
        cause_right=cause["kind"] in fault.causes,
        cause_text=f"{cause['text']} {json.dumps(cause['evidence'])}",
        harmless=fault.harmless,
        by_host=by_host,
        functions=fault.functions,
        others=sum(not other.get("because") for other in found) - 1,
        title=violation.get("title") or "",
        text=violation.get("text") or "",
    )


def names_in(found: list[dict[str, Any]]) -> list[str]:
    """Return the functions that violations name, in the order in which a person reads them.

    The title of a violation ends with the function in which samples find more CPU time, or that has most of the
    difference as a callee or by its waits. So that comes before the violated one.
    """
    names = []
    for one in found:
        more, growth = one["cause"].get("more_samples"), one["cause"].get("growth") or {}
        inner = more["function"] if more else growth.get("place")
        names += [*([inner] if inner and not one.get("because") else []), one["function"]]
    return list(dict.fromkeys(names))


def is_slowed(name: str, fault: Fault | Outcome) -> bool:
    """Tell whether a fault slows a function by itself."""
    return not fault.functions or any(fnmatchcase(name, glob) for glob in fault.functions)
