"""``specmine compare`` finds the builds in stores, by label, build-id or store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.analysis.lifetimes.from_store import windows_of_store
from specmine.mining.assertions.expression import parse
from specmine.model.batch import Lifetime
from specmine.model.call_path import Frame
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.split import unbroken
from specmine.store import Build, Host, Writes, open_store
from tests.support.insides import inside_of_calls
from tests.support.stored import fill, observation

Outcome = Callable[..., tuple[int, str, str]]
Compared = Callable[..., tuple[int, dict[str, Any]]]


def _store(
    path: Path, builds: dict[str, float], *, host: str = "boot", label: str | None = None, module: str = "app"
) -> Path:
    """Write a store in which each build has five lifetimes of one function, their windows past the warm-up."""
    rng = np.random.default_rng(len(host))
    with open_store(path) as store:
        store.write(Writes((Host(boot_id=host, hostname=f"{host}.example", utc_offset_ns=10**18),)), 10**18)
        for number, (build, factor) in enumerate(builds.items()):
            function = Function(build_id=build, offset=16 + number, name="handle", module=module)
            for at in range(5):
                lifetime = Lifetime(
                    id=f"{host}:{number}{at}:{100 * at}", pid=at, executable="/bin/app", build_id=build,
                    start_ns=at * 10**9, processes=0,
                )  # fmt: skip
                durations = factor * np.exp(rng.normal(0, 0.01)) * rng.lognormal(12, 0.1, 500)
                window = Observation(
                    function=function.key, lifetime=lifetime.id, kind=Kind.TIME, start_ns=(60 + at) * 10**9,
                    end_ns=(61 + at) * 10**9,
                    histogram=Histogram.from_durations(durations), calls=500, watched_ns=10**9,
                )  # fmt: skip
                store.write(Writes((function, lifetime, window)), 10**18)
            if label:
                store.write(Writes((Build(build_id=build, label=f"{label}{number}"),)), 10**18)
    return path


def test_two_builds_in_a_store(tmp_path: Path, compared: Compared) -> None:
    """Builds are named by label, by build-id or by its first digits; functions are matched by name."""
    path = _store(tmp_path / "s.db", {"aaaa1": 1.0, "bbbb2": 1.2}, label="v")
    for names in (("v0", "v1"), ("aaaa1", "bbbb2"), ("aa", "bb")):
        code, document = compared("--store", path, *names)
        (found,) = document["functions"]
        assert (code, found["verdict"], found["module"]) == (1, "worse", "app")
        assert found["ratio"] == pytest.approx(1.2, abs=0.04)
        assert found["change"]["cause"] == "code"


def test_windows_are_split_by_where_calls_were_blocked(tmp_path: Path) -> None:
    """A formula finds the calls that are known to fulfil it; where no call was blocked, all were not."""
    flush, calls = Frame("flush", "libc"), np.arange(300)
    stood = np.where(calls < 60, 9e5, 0.0)
    inside = inside_of_calls({flush: 1e3 + stood}, np.full(300, 1e5), blocked={flush: stood})
    quiet = observation(2)
    quiet = replace(quiet, split=unbroken(quiet.histogram), paths=())
    with open_store(tmp_path / "s.db") as store:
        fill(store, [replace(observation(1), inside=(inside,), histogram=inside.calls, paths=()), quiet])
    windows = windows_of_store(tmp_path / "s.db")

    def found(text: str) -> list[int]:
        return [one.histogram.total for one in windows if one.histogram and one.fulfils(parse(text))]

    assert found("blocked under flush") == found("blocked") == [60]
    assert found("not blocked") == [240, quiet.histogram.total]
    assert found("calls flush and not blocked under flush") == [240]
    assert found("blocked under parse") == []


def test_two_stores(tmp_path: Path, compared: Compared) -> None:
    """Two stores of one host are two sides."""
    first = _store(tmp_path / "a.db", {"aaaa1": 1.0})
    second = _store(tmp_path / "b.db", {"cccc2": 0.8})
    code, document = compared(first, second)
    assert (code, document["functions"][0]["verdict"]) == (0, "better")


def test_a_program_may_be_called_otherwise_in_the_new_build(tmp_path: Path, compared: Compared) -> None:
    """app-1 and app-2 are one program if they are all that differs."""
    first = _store(tmp_path / "a.db", {"aaaa1": 1.0}, module="app-1")
    second = _store(tmp_path / "b.db", {"cccc2": 1.2}, module="app-2")
    code, document = compared(first, second)
    assert (code, [(each["module"], each["verdict"]) for each in document["functions"]]) == (1, [("app-2", "worse")])


def _add_program(path: Path, build: str, executable: str, *names: str) -> None:
    """Write a lifetime of a program and its own functions."""
    with open_store(path) as store:
        lifetime = Lifetime(id=f"boot:9{build}:9", pid=9, executable=executable, build_id=build, start_ns=0,
                            processes=0)  # fmt: skip
        functions = [
            Function(build_id=build, offset=900 + number, name=name, module=executable.rsplit("/", 1)[-1])
            for number, name in enumerate(names)
        ]
        store.write(Writes((lifetime, *functions)), 10**18)


def _two_programs(tmp_path: Path, *names: str) -> tuple[Path, Path]:
    """Return two stores that share a function of a library; the second program has functions of these names too."""
    found = []
    for number, (program, own) in enumerate((("redis-server", ("main", "processCommand")), ("nginx", names))):
        path, build = tmp_path / f"{program}.db", f"{'ab'[number]}1"
        _store(path, {"lib1": 1.0}, host=f"boot{number}", module="libc.so.6")
        with open_store(path) as store:
            lives = [replace(each, executable=f"/usr/bin/{program}", build_id=build) for each in store.read(Lifetime)]
            store.write(Writes(tuple(lives)), 10**18)
        _add_program(path, build, f"/usr/bin/{program}", *own)
        found.append(path)
    return found[0], found[1]


def test_two_programs_are_not_compared(tmp_path: Path, outcome: Outcome) -> None:
    """Calls of a library from two programs say nothing of either: exit code 2, in one line."""
    code, out, err = outcome("compare", *_two_programs(tmp_path, "main", "ngx_http_handler"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "redis-server.db is of redis-server and" in err and "nginx.db is of nginx: no function of a program" in err


@pytest.mark.parametrize("names", [("main", "processCommand"), ()])
def test_a_program_of_another_name_is_compared(names: tuple[str, ...], tmp_path: Path, compared: Compared) -> None:
    """It is another version if it has functions of the same names; one whose functions are not known may be."""
    _, document = compared(*_two_programs(tmp_path, *names))
    assert [each["function"] for each in document["functions"]] == ["handle"]


def test_a_build_that_is_not_there(tmp_path: Path, outcome: Outcome) -> None:
    """An unknown build and an ambiguous one are exit 2 and name what there is."""
    path = _store(tmp_path / "s.db", {"aaaa1": 1.0, "aaab2": 1.2})
    code, _, err = outcome("compare", "--store", str(path), "aaaa", "zz")
    assert code == 2
    assert "aaaa1" in err
    assert "digits" in outcome("compare", "--store", str(path), "aaa", "aaab2")[2]
    assert outcome("compare", str(tmp_path / "none.db"), str(path))[0] == 2
