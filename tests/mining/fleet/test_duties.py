"""Duties: nobody does more than it may, panels are drawn by lot, a liar gives others nothing to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from specmine.mining.fleet.duties import (
    ASKED,
    CHANGED_TIMES,
    LEAST_CALLS,
    NEED_CALLS,
    PANEL,
    PANEL_CALLS,
    SPREAD,
    TRIED_CALLS,
    UNTIMED_SHARE,
    Assignment,
    FleetFunction,
    FleetHost,
    assignments,
    drawn_panel,
    is_enough,
)
from specmine.mining.fleet.duty import Purpose

_NAMES = [f"h{number}" for number in range(60)]
_HOSTS = [FleetHost(name=name, stratum="ab"[number % 2]) for number, name in enumerate(_NAMES)]


def _function(key: str = "f", **more: object) -> FleetFunction:
    return FleetFunction(key=key, **{"hosts": frozenset(_NAMES), **more})  # type: ignore[arg-type]


def _asked(found: dict[str, Assignment], purpose: Purpose, key: str = "f") -> set[str]:
    return {
        name for name, each in found.items() for duty in each.duties if duty.purpose is purpose and duty.function == key
    }


_functions = st.builds(
    FleetFunction,
    key=st.integers(0, 10**6).map(str),
    hosts=st.frozensets(st.sampled_from(_NAMES), max_size=40),
    known=st.booleans(),
    stated=st.booleans(),
    rates=st.dictionaries(st.sampled_from(_NAMES), st.floats(0, 1e6), max_size=20),
    calls=st.dictionaries(st.sampled_from(_NAMES), st.integers(0, 10**6), max_size=20),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(_functions, max_size=30, unique_by=lambda one: one.key), st.integers(1, 12), st.integers(0, 500))
def test_nobody_is_asked_for_more_than_it_may(functions: list[FleetFunction], places: int, week: int) -> None:
    """Places of a host bound its scouting; each is asked only for what it runs; the same input gives the same."""
    hosts = [replace(each, places=places) for each in _HOSTS]
    found = assignments(hosts, functions, week=week)
    assert found == assignments(list(reversed(hosts)), list(reversed(functions)), week=week)
    runs = {one.key: one.hosts for one in functions}
    for name, each in found.items():
        assert sum(duty.purpose is Purpose.SCOUT for duty in each.duties) <= places
        assert all(name in runs[duty.function] for duty in each.duties)
        assert not {duty.function for duty in each.duties} & set(each.left)
    unknown = sum(not one.known and not one.stated and bool(one.hosts) for one in functions)
    for one in functions:
        scouts = _asked(found, Purpose.SCOUT, one.key)
        assert len(one.rates) >= SPREAD or len(scouts) <= max(
            ASKED, UNTIMED_SHARE * places * len(hosts) / max(1, unknown)
        )
        assert one.known or not _asked(found, Purpose.PANEL, one.key)


def test_what_is_not_known_is_learned_on_a_few_hosts() -> None:
    """Each gives its part, those that are called most are asked, and the others leave it to them."""
    rates = {name: float(number) for number, name in enumerate(_NAMES)}
    found = assignments(_HOSTS, [_function(rates=rates)], week=1)
    assert _asked(found, Purpose.SCOUT) == set(_NAMES[-ASKED:])
    assert {duty.calls for each in found.values() for duty in each.duties} == {NEED_CALLS // SPREAD}
    assert sum("f" in each.left for each in found.values()) == len(_NAMES) - ASKED


def test_what_can_be_mined_comes_from_several_hosts() -> None:
    """Half of what is asked for is tried; a host that sends much counts for its part alone."""
    part = NEED_CALLS // SPREAD
    few = TRIED_CALLS // part
    assert is_enough(_function(calls=dict.fromkeys(_NAMES[:few], part)))
    assert is_enough(_function(calls=dict.fromkeys(_NAMES, -(-TRIED_CALLS // len(_NAMES)))))
    assert not is_enough(_function(calls=dict.fromkeys(_NAMES[: few - 1], 100 * part)))
    assert is_enough(_function(hosts=frozenset(_NAMES[:1]), calls={_NAMES[0]: TRIED_CALLS}))


def test_a_panel_is_drawn_by_lot() -> None:
    """Each host as often as any other, whatever its rates; of each stratum in proportion; both scipy's judgement."""
    rates = {name: float(number) for number, name in enumerate(_NAMES)}
    times: Counter[str] = Counter()
    for number in range(300):
        key = f"f{number}"
        found = assignments(_HOSTS, [_function(key, known=True, stated=True, rates=rates)], week=3)
        panel = _asked(found, Purpose.PANEL, key)
        assert panel == set(drawn_panel(key, _HOSTS, PANEL, 3))
        assert sum(int(name[1:]) % 2 for name in panel) == PANEL // 2
        times.update(panel)
    fastest = sum(times[name] for name in _NAMES[-20:])
    assert binomtest(fastest, 300 * PANEL, 1 / 3).pvalue > 1e-3


def test_a_panel_stays_when_a_host_goes() -> None:
    """One that goes is replaced, the others stay; after a week half of them do, after two nobody has to."""
    hosts = [FleetHost(name=name) for name in _NAMES]
    before = drawn_panel("f", hosts, 10, 7)
    gone = before[4]
    after = drawn_panel("f", [each for each in hosts if each.name != gone], 10, 7)
    assert set(before) - set(after) == {gone}
    assert len(set(after) - set(before)) == 1
    for week in range(20):
        stay = set(drawn_panel("f", hosts, 10, week)) & set(drawn_panel("f", hosts, 10, week + 1))
        assert len(stay) >= 5
    assert len({tuple(drawn_panel("f", hosts, 10, week)) for week in range(20)}) > 10


def test_a_new_build_on_few_hosts_has_a_control() -> None:
    """All hosts of the canary, and as many with the old build, at the same time."""
    old = _function("old", known=True, stated=True, hosts=frozenset(_NAMES[5:]))
    new = _function("new", known=True, hosts=frozenset(_NAMES[:5]), predecessor="old")
    found = assignments(_HOSTS, [old, new], week=1)
    assert _asked(found, Purpose.CANARY, "new") | _asked(found, Purpose.SCOUT, "new") == set(_NAMES[:5])
    assert len(_asked(found, Purpose.CONTROL, "old")) == 5
    assert len(_asked(found, Purpose.PANEL, "old")) == PANEL - 5


def test_who_does_not_deliver_is_left_out() -> None:
    """Another host takes its place."""
    rates = {name: float(number) for number, name in enumerate(_NAMES)}
    hosts = [replace(each, missed=frozenset({"f"})) if each.name == "h59" else each for each in _HOSTS]
    found = assignments(hosts, [_function(rates=rates)], week=1)
    assert _asked(found, Purpose.SCOUT) == set(_NAMES[-ASKED - 1 : -1])


def test_one_host_that_lies_moves_nobody_elses_duties_beyond_its_place() -> None:
    """Rates, calls and functions that it makes up: what others are asked differs by the one place that it takes."""
    keys = [f"f{number}" for number in range(40)]
    rates = {name: 1.0 + number for number, name in enumerate(_NAMES)}
    honest = [_function(key, rates=rates) for key in keys]
    before = assignments(_HOSTS, honest, week=1)
    lies = {
        "rates": [_function(key, rates={**rates, "h0": 1e12}) for key in keys],
        "calls": [_function(key, rates=rates, calls={"h0": 10**12}) for key in keys],
        "functions": [*honest, *(_function(f"lie{number}", hosts=frozenset({"h0"})) for number in range(5000))],
    }
    for what, functions in lies.items():
        after = assignments(_HOSTS, functions, week=1)
        for key in keys:
            others = _asked(after, Purpose.SCOUT, key) - {"h0"}
            assert len(others) >= SPREAD - 1, what
            assert len(_asked(before, Purpose.SCOUT, key) - others) <= 1, what
        for name in _NAMES[1:]:
            assert {duty.function for duty in after[name].duties} <= set(keys), what
            assert set(after[name].left) <= set(keys), what
            assert len(after[name].duties) <= len(before[name].duties), what


def test_two_hosts_both_learn() -> None:
    """Nothing is left to a single other host: it may lie, or be gone."""
    hosts = _HOSTS[:2]
    found = assignments(hosts, [_function(hosts=frozenset({"h0", "h1"}))], week=1)
    assert _asked(found, Purpose.SCOUT) == {"h0", "h1"}
    alone = assignments(hosts, [_function(hosts=frozenset({"h0"}))], week=1)
    assert _asked(alone, Purpose.SCOUT) == {"h0"}
    assert all(not each.left for each in (*found.values(), *alone.values()))


def test_what_is_called_rarely_is_learned_by_many() -> None:
    """A little from each, in the time of a minute; what is called often by twelve."""
    for rate, number in ((100.0, ASKED), (1.0, 50), (0.01, 60)):
        found = assignments(_HOSTS, [_function(rates=dict.fromkeys(_NAMES, rate))], week=1)
        scouts = [duty for each in found.values() for duty in each.duties]
        assert len(scouts) == number
        assert sum(duty.calls for duty in scouts) >= NEED_CALLS


def test_what_nobody_timed_is_asked_of_as_many_hosts_as_have_places() -> None:
    """Few functions are asked of most hosts, for few calls each; each of many functions of twelve hosts."""
    places = sum(each.places for each in _HOSTS)
    for number in (60, 240, 600):
        found = assignments(_HOSTS, [_function(str(each)) for each in range(number)], week=1)
        asked = [len(_asked(found, Purpose.SCOUT, str(each))) for each in range(number)]
        wanted = max(ASKED, int(UNTIMED_SHARE * places / number))
        assert max(asked) == wanted and asked.count(wanted) >= 0.7 * min(number, places // wanted)
        calls = {duty.calls for each in found.values() for duty in each.duties}
        assert max(calls) <= max(LEAST_CALLS, 2 * NEED_CALLS / wanted)


def test_what_two_hosts_found_changed_each_looks_at() -> None:
    """Nobody leaves it to others, and its panel is asked for more; of one host nothing follows: it may lie."""
    for changed, left, calls in ((("h1",), 30, PANEL_CALLS), (("h1", "h2"), 0, PANEL_CALLS * CHANGED_TIMES)):
        function = _function(known=True, stated=True, changed=frozenset(changed))
        found = assignments(_HOSTS, [function, _function("g", known=True, stated=True)], week=1)
        assert sum("f" in each.left for each in found.values()) == left
        assert {duty.calls for each in found.values() for duty in each.duties if duty.function == "f"} == {calls}
        assert sum("g" in each.left for each in found.values()) == 30
