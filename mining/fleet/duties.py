"""Who observes what: duties of all hosts of a fleet, decided anew each minute. Pure: the same input, the same output.

Two kinds of duty are never mixed. *Scouts* find borders, call paths and expressions fast: whoever is called most. A
*panel* states levels and checks them: drawn by lot before rates are looked at, since hosts that are fast to answer are
hosts under load. A host says how often it is called, and nobody else does. So a host that lies changes what it is asked
for itself, and takes one place of those that others would have had.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specmine.model.observation import Kind

from .duty import Duty, Purpose

NEED_CALLS = 2_000
"""Timed calls that all hosts together are asked for, to mine a function: eight windows; a host alone needs five."""
TRIED_CALLS = NEED_CALLS // 2
"""Calls from which it is tried: five windows. Where they do not suffice it is tried again with more."""
SPREAD = 8
"""Hosts that these calls come from: none gives more than its part."""
ASKED = 12
"""Hosts that are asked for them: those that are done first count. Scouts state no level, so that does no harm."""
UNTIMED_SHARE = 0.8
"""Functions that nobody timed yet are asked of more hosts where so much of all places allows it: hosts on which one is
called once a minute tell no rate, so twelve of them would not find out that many are needed."""
WITHIN_S = 60.0
"""Scouts are so many that they are done in this time, where so many hosts run the function."""
LEAST_CALLS = 20
"""Of a scout: fewer do not tell the scale of its host."""
PANEL = 30
PANEL_CALLS = 200
"""Timed calls of a host of a panel every five minutes: one window that can be judged."""
CANARY_SHARE = 0.2
"""A build on fewer of the hosts that run a function is on trial."""
LONGEST_PART = 0.25
"""Share of a host's places for what takes longest; the others go to what is soonest done. Scarcest first would end
nothing."""
PLACES = 48
"""Functions that a host learns at a time for the fleet."""
DOUBTED_BY = 2
"""Hosts that say a function has changed, from which each that runs it looks for itself. One may be faulty, or lie."""
CHANGED_TIMES = 10
"""So many times the calls are asked of its panel then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHost:
    """A host that can be asked."""

    name: str
    stratum: str = ""
    """Role, hardware: hosts that are alike."""
    places: int = PLACES
    missed: frozenset[str] = frozenset()
    """Functions that it was asked for three times running and did not deliver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFunction:
    """A function as far as duties need it."""

    key: str
    build_id: str = ""
    """Of the program that runs it."""
    hosts: frozenset[str] = frozenset()
    """That run it."""
    known: bool = False
    """Whether the fleet states something of it, be it of the build before."""
    stated: bool = False
    """Whether that was learned of this very build."""
    kind: Kind = Kind.PATH
    """What scouts observe: call paths say durations too, so nothing is asked for twice."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Timed calls that each host sent; only those with call paths, once these alone are missing."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Calls a second, as each host says."""
    share: float = 0.0
    """Of the time of the fleet: what takes more of it comes first."""
    changed: frozenset[str] = frozenset()
    """Hosts on which a violation of it is open."""
    predecessor: str = ""
    """Key of the same function in the build that most hosts run, if this build is another."""


def is_enough(function: FleetFunction) -> bool:
    """Tell whether a function can be mined with what hosts sent; each counts for its part alone."""
    part = -(-NEED_CALLS // max(1, min(SPREAD, len(function.hosts))))
    return sum(min(part, number) for number in function.calls.values()) >= TRIED_CALLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a host is told."""

    duties: tuple[Duty, ...] = ()
    left: tuple[str, ...] = ()
    """Keys of functions that enough others observe."""


def assignments(
    hosts: Sequence[FleetHost], functions: Sequence[FleetFunction], *, week: int, panel: int = PANEL
) -> dict[str, Assignment]:
    """Return what each host is told.

    Parameters
    ----------
    hosts : sequence of FleetHost
        Those that were heard of lately.
    functions : sequence of FleetFunction
    week : int
        Number of the week: half of each panel is drawn anew in each.
    panel : int
        Hosts of a panel.

    Returns
    -------
    dict
        By name of the host, for each of them.
    """
    by_name = {each.name: each for each in sorted(hosts, key=lambda one: one.name)}
    ordered = sorted(functions, key=lambda one: one.key)
    duties: dict[str, dict[str, Duty]] = {name: {} for name in by_name}
    asked: dict[str, set[str]] = {}
    builds = _builds(ordered)
    for function in ordered:
        if function.known:
            for name, purpose in _panel(function, builds, by_name, week, panel).items():
                kind = Kind.TIME if function.stated else function.kind
                calls = PANEL_CALLS * (CHANGED_TIMES if _is_doubted(function, by_name) else 1)
                duties[name][function.key] = Duty(function=function.key, purpose=purpose, calls=calls, kind=kind)
                asked.setdefault(function.key, set()).add(name)
    scouts = _scouts([one for one in ordered if not one.known and not one.stated], by_name)
    for name, given in scouts.items():
        for duty in given:
            duties[name][duty.function] = duty
            asked.setdefault(duty.function, set()).add(name)
    left: dict[str, list[str]] = {name: [] for name in by_name}
    for function in ordered:
        if _is_doubted(function, by_name):
            continue
        able = {name for name in function.hosts if name in by_name and function.key not in by_name[name].missed}
        enough = asked.get(function.key, set())
        number = len(enough & able)
        for name in function.hosts & by_name.keys():
            # what too few others observe stays the host's own: one that lies is never the only one asked
            if name not in enough and number >= min(SPREAD, len(able) - (name in able)) > 0:
                left[name].append(function.key)
    return {
        name: Assignment(
            duties=tuple(duties[name][key] for key in sorted(duties[name])), left=tuple(sorted(left[name]))
        )
        for name in by_name
    }


def _is_doubted(function: FleetFunction, hosts: Mapping[str, FleetHost]) -> bool:
    return len(function.changed & hosts.keys()) >= DOUBTED_BY


def drawn_panel(key: str, hosts: Iterable[FleetHost], most: int, week: int) -> list[str]:
    """Return the panel of a function: drawn by lot, of each stratum as many as its share of the hosts.

    Half of it is drawn for an even number of weeks, half for an odd one. So after a week half of it stays, and effects
    of hosts can be told from those of time. If a host goes, the next in the order takes its place.
    """
    strata: dict[str, list[str]] = {}
    for each in hosts:
        strata.setdefault(each.stratum, []).append(each.name)
    total = sum(map(len, strata.values()))
    if total <= most:
        return sorted(name for names in strata.values() for name in names)
    chosen: list[str] = []
    for stratum, quota in _quotas({name: len(each) for name, each in strata.items()}, most).items():
        first = _by_lot(strata[stratum], key, f"a{(week + 1) // 2}")[: (quota + 1) // 2]
        rest = [name for name in strata[stratum] if name not in set(first)]
        chosen += [*first, *_by_lot(rest, key, f"b{week // 2}")[: quota - len(first)]]
    return sorted(chosen)


def _quotas(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """Return how many of each stratum are drawn: in proportion, what is left over to the largest remainders."""
    total = sum(sizes.values())
    exact = {name: most * size / total for name, size in sizes.items()}
    found = {name: int(value) for name, value in exact.items()}
    missing = most - sum(found.values())
    for name in sorted(exact, key=lambda one: (found[one] - exact[one], one))[:missing]:
        found[name] += 1
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Builds:
    by_key: Mapping[str, FleetFunction]
    later: Mapping[str, Sequence[FleetFunction]]
    """Of each key those in later builds."""


def _builds(functions: Sequence[FleetFunction]) -> _Builds:
    later: dict[str, list[FleetFunction]] = {}
    for each in functions:
        if each.predecessor:
            later.setdefault(each.predecessor, []).append(each)
    return _Builds(by_key={each.key: each for each in functions}, later=later)


def _panel(
    function: FleetFunction, builds: _Builds, hosts: Mapping[str, FleetHost], week: int, most: int
) -> dict[str, Purpose]:
    able = [hosts[name] for name in sorted(function.hosts) if name in hosts and function.key not in hosts[name].missed]
    before = builds.by_key.get(function.predecessor)
    if before is None:
        found = dict.fromkeys(drawn_panel(function.key, able, most, week), Purpose.PANEL)
        trials = [one for one in builds.later.get(function.key, ()) if _on_trial(one, function)]
        number = min(most, max((len(one.hosts & hosts.keys()) for one in trials), default=0))
        return {name: Purpose.CONTROL if at < number else each for at, (name, each) in enumerate(found.items())}
    if not _on_trial(function, before):
        return dict.fromkeys(drawn_panel(function.key, able, most, week), Purpose.PANEL)
    return dict.fromkeys(drawn_panel(function.key, able, most, week), Purpose.CANARY)


def _on_trial(new: FleetFunction, old: FleetFunction) -> bool:
    return len(new.hosts) < CANARY_SHARE * len(new.hosts | old.hosts)


def _scouts(functions: Sequence[FleetFunction], hosts: Mapping[str, FleetHost]) -> dict[str, list[Duty]]:
    """Let hosts with places left learn what is not known: a quarter of the places to what takes longest."""
    given: dict[str, list[Duty]] = {name: [] for name in hosts}
    reserved = {name: round(LONGEST_PART * each.places) for name, each in hosts.items()}
    wanted = [(each, *_candidates(each, hosts)) for each in functions]
    wanted = [each for each in wanted if each[1]]
    soonest = sorted(wanted, key=lambda each: (_seconds(*each), -each[0].share, each[0].key))
    room = sum(each.places for each in hosts.values())
    fair = int(UNTIMED_SHARE * room / max(1, len(wanted)))
    done: set[str] = set()
    for order, spared in ((soonest, reserved), (list(reversed(soonest)), dict.fromkeys(hosts, 0))):
        for function, able, part in order:
            if function.key in done:
                continue
            number = min(_asked(function, fair), len(able))
            free = [name for name in able if len(given[name]) < hosts[name].places - spared[name]]
            if len(free) < min(SPREAD, len(able)):
                continue
            done.add(function.key)
            for name in _round_robin(free, hosts)[:number]:
                calls = max(LEAST_CALLS, min(part, -(-3 * NEED_CALLS // (2 * number))))
                given[name].append(Duty(function=function.key, purpose=Purpose.SCOUT, calls=calls, kind=function.kind))
    return given


def _asked(function: FleetFunction, fair: int) -> int:
    """Return how many hosts are to scout: more for what is called rarely, since a few would be at it for hours.

    ``fair`` is the number for functions that nobody timed yet, if it is more than usual.

    The median of what hosts say of their rates decides, so one that boasts moves nothing.
    """
    if len(function.rates) < SPREAD:
        return max(ASKED, fair)
    typical = statistics.median(function.rates.values())
    return max(ASKED, math.ceil(min(1e6, 1.5 * NEED_CALLS / max(typical * WITHIN_S, 1e-9))))


def _candidates(function: FleetFunction, hosts: Mapping[str, FleetHost]) -> tuple[list[str], int]:
    """Return the hosts that may learn a function, those soonest done first, and how many calls each is to give."""
    able = [name for name in sorted(function.hosts) if name in hosts and function.key not in hosts[name].missed]
    part = -(-NEED_CALLS // max(1, min(SPREAD, len(able))))
    # one that has given its part gives no more while others can: what it sends counts once
    fresh = [name for name in able if function.calls.get(name, 0) < part]
    chosen = fresh if len(fresh) >= min(SPREAD, len(able)) else able
    lots = {name: at for at, name in enumerate(_by_lot(chosen, function.key, "scout"))}
    return sorted(chosen, key=lambda name: (-function.rates.get(name, 0.0), lots[name])), part


def _seconds(function: FleetFunction, able: Sequence[str], part: int) -> float:
    """Return how long the fastest hosts need, as they say; of a function nobody timed yet: soon, so that it is tried.

    The last of those that would be chosen decides: one host that boasts moves nothing.
    """
    rates = [function.rates[name] for name in able[:SPREAD] if name in function.rates]
    return part / max(min(rates), 1e-9) if rates else 60.0


def _round_robin(names: Sequence[str], hosts: Mapping[str, FleetHost]) -> list[str]:
    """Return names in their order, one of each stratum in turn."""
    strata: dict[str, list[str]] = {}
    for name in names:
        strata.setdefault(hosts[name].stratum, []).append(name)
    found: list[str] = []
    for turn in range(max(map(len, strata.values()), default=0)):
        found += [each[turn] for each in strata.values() if turn < len(each)]
    return found


def _by_lot(names: Iterable[str], key: str, epoch: str) -> list[str]:
    def lot(name: str) -> bytes:
        return hashlib.blake2b(f"{epoch}\0{key}\0{name}".encode(), digest_size=16).digest()

    return sorted(names, key=lot)
