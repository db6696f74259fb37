"""show: one function, found by any of its names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Outcome = Callable[..., tuple[int, str, str]]
Keep = Callable[[Mapping[str, Any]], Path]


@pytest.mark.parametrize(
    "name",
    [
        "std::map<int, std::string>::operator[](int const&)",
        "std::map<int, std::string>::operator[]",
        "_ZNSt3mapIiSsEixERKi",
        "std::*",
        "*operator*",
        "5f1d9c0a77e2b34c9d1e+0x4200",
        "std::map<int, std::string>::operator[](int const&) (app)",
    ],
)
def test_show_finds_a_function_by_any_of_its_names(name: str, store: Path, outcome: Outcome) -> None:
    """Display name, name without parameters, mangled name, key and globs find a function."""
    code, out, _ = outcome("show", name, "--store", store, "--format", "json")
    assert code == 0
    shown = json.loads(out)
    assert (shown["schema"], shown["mangled"]) == ("specmine.function/1", "_ZNSt3mapIiSsEixERKi")


@pytest.mark.parametrize("form", ["text", "json"])
def test_functions_of_no_such_name_is_2(form: str, store: Path, outcome: Outcome) -> None:
    """A glob that names no function is an error; a state that none of those named is in is not."""
    code, out, err = outcome("functions", "--function", "Z", "--store", store, "--format", form)
    assert (code, out) == (2, "")
    assert err == "specmine: no function matches Z; did you mean z; see `specmine functions`\n"
    code, _, err = outcome("functions", "--function", "Z", "--function", "Y", "--store", store, "--format", form)
    assert (code, err) == (2, "specmine: no function matches Z or Y; see `specmine functions`\n")
    assert outcome("functions", "--function", "z", "--function", "Y", "--store", store, "--format", form)[0] == 0
    asked = ("functions", "--function", "z", "--state", "refused", "--store", store, "--format", form)
    assert outcome(*asked)[0] == 0


def test_show_of_none_or_several_is_2(store: Path, keep: Keep, document: dict[str, Any], outcome: Outcome) -> None:
    """No match and several matches are errors that say which names there are."""
    code, out, err = outcome("show", "Z", "--store", store)
    assert (code, out) == (2, "")
    assert err == "specmine: no function matches Z; did you mean z; see `specmine functions`\n"
    code, out, err = outcome("show", "?", "--store", store)
    assert (code, out) == (2, "")
    assert err == "specmine: 3 functions match ?: z (app), a (app) and b (app); name one of them\n"
    document["functions"].append({**document["functions"][0], "build_id": "77aa", "key": "77aa+0x4000"})
    code, _, err = outcome("show", "z", "--store", keep(document))
    assert code == 2
    assert "z (app) of build 77aa" in err


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        ([80_000, 120_000], "100,000 calls (estimated, 95% 80,000 to 120,000)"),
        ([80_000, None], "100,000 calls (at least 80,000; too fast to count)"),
        (None, "100,000 calls (estimated)"),
    ],
)
def test_show_tells_how_well_calls_are_known(
    interval: list[int | None] | None, told: str, keep: Keep, document: dict[str, Any], outcome: Outcome
) -> None:
    """An estimated number has its interval, or its lower end where probes took most of the time."""
    entry = next(each for each in document["functions"] if each["function"] == "z")
    entry |= {"calls": 100_000, "calls_exact": False, "calls_interval": interval}
    code, out, _ = outcome("show", "z", "--store", keep(document))
    assert code == 0
    assert told in " ".join(out.split())


@pytest.mark.parametrize(("uncertainty", "told"), [(4.5e-6, True), (1e-7, False)])
def test_show_says_how_well_durations_are_known(
    uncertainty: float, told: bool, keep: Keep, document: dict[str, Any], outcome: Outcome
) -> None:
    """Where an entry is single-stepped, what that adds is not known well, and the median is only near the truth."""
    document["functions"][0] |= {"uncertainty_seconds": uncertainty, "grade": "stepped"}
    document["functions"][0]["quantiles"]["p50"]["seconds"] = 2.4e-5
    name = document["functions"][0]["function"]
    _, out, _ = outcome("show", name, "--store", keep(document))
    assert ("its durations are known to +/- 4.5 \N{MICRO SIGN}s" in " ".join(out.split())) is told


@pytest.mark.parametrize(("sampled", "told"), [(0.0, False), (0.25, True)])
def test_show_says_the_share_of_time_only_if_it_was_sampled(
    sampled: float, told: bool, keep: Keep, document: dict[str, Any], outcome: Outcome
) -> None:
    """0 is what nobody looked at; the table of functions has a dash there."""
    entry = next(each for each in document["functions"] if each["function"] == "z")
    entry |= {"time_share": sampled}
    code, out, _ = outcome("show", "z", "--store", keep(document))
    assert code == 0
    assert ("of the program's wall-clock time" in " ".join(out.split())) is told
