"""Hosts that stand out from the others, or changed when the others did not, and what people read of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from specmine.mining.fleet.host_factors import HostFactor, host_factors
from specmine.mining.fleet.parts_of_time import PartsOfTime
from specmine.model.text import plural

from .function_levels import LATELY, FunctionLevels

MOST = 2 / 3
"""A kind of time that has so much of a difference is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlyingHosts:
    """The hosts that are named, and of which kind the time is by which each of them differs, where that is known."""

    standing: Sequence[HostFactor] = ()
    changed: Sequence[HostFactor] = ()
    of_level: Mapping[str, PartsOfTime] = field(default_factory=dict)
    """Of those that stand out, by host."""
    of_change: Mapping[str, PartsOfTime] = field(default_factory=dict)


def outlying(functions: Sequence[FunctionLevels]) -> OutlyingHosts:
    """Return the hosts to name."""
    return OutlyingHosts(standing=_standing(functions), changed=_changed(functions))


def _standing(functions: Sequence[FunctionLevels]) -> list[HostFactor]:
    """Return the hosts on which calls take longer than on all others, or less; those farthest out first."""
    levels: dict[tuple[str, str], float] = {}
    for each in functions:
        groups = {build: {host: value for (of, host), value in each.levels.items() if of == build}
                  for build in {of for of, _ in each.levels}}  # fmt: skip
        if each.pair is not None and len(each.before) > len(groups.get(each.pair.base, ())):
            groups[each.pair.base] = dict(each.before)  # more hosts ran it before the new build came
        for build, group in groups.items():
            levels |= {(f"{each.name}\0{each.module}\0{build}", host): value for host, value in group.items()}
    return [each for each in host_factors(levels) if each.stands_out]


def _changed(functions: Sequence[FunctionLevels]) -> list[HostFactor]:
    """Return the hosts that became slower or faster lately while the others did not; those that changed most first."""
    changes = {
        (f"{each.name}\0{each.module}\0{build}", host): value
        for each in functions
        for (build, host), value in each.changes.items()
    }
    return [each for each in host_factors(changes) if each.stands_out]


def entry_of_level(found: HostFactor, times: Mapping[str, PartsOfTime]) -> dict[str, Any]:
    """Return what people read of a host that stands out; ``times``: of which kind its difference is, where known."""
    return _entry(found, times.get(found.host), "is", "")


def entry_of_change(found: HostFactor, times: Mapping[str, PartsOfTime]) -> dict[str, Any]:
    """Return the same of a host that changed."""
    return _entry(found, times.get(found.host), "became", f" in the last {LATELY // timedelta(minutes=1)} minutes")


def _entry(found: HostFactor, shares: PartsOfTime | None, verb: str, when: str) -> dict[str, Any]:
    factor, word = math.exp(abs(found.log_factor)), "slower" if found.log_factor > 0 else "faster"
    text = (
        f"{found.host} alone {verb} {word}{when}, {factor:.2g} times,"
        f" in {found.slower_in} of {plural(found.functions, 'function')}: the host, not a build"
    )
    return {
        "host": found.host, "factor": math.exp(found.log_factor), "functions": found.functions,
        "functions_agreeing": found.slower_in, "text": text + (_of_difference(shares) if shares is not None else ""),
        "time": asdict(shares) if shares is not None else None,
    }  # fmt: skip


def _of_difference(shares: PartsOfTime) -> str:
    """Say of which kind most of the difference is, if most is of one kind."""
    parts = {"running": shares.running, "waiting for a CPU": shares.waiting, "blocked": shares.blocked}
    most = max(parts, key=lambda each: parts[each])
    return f"; {_percent(parts[most])} of the difference is {most}" if parts[most] >= MOST else ""


def _percent(share: float) -> str:
    return ">99 %" if share > 0.995 else f"{100 * share:.0f} %"
