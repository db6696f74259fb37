"""What a user writes becomes a benchmark, or one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specmine.fleet.lab.benchmark import benchmark_from, read_benchmark
from specmine.model.errors import InputError

_BUILDS = {"v1": "./a {calls}", "v2": "./b {calls}"}

_YAML = """\
name: sort
run: ./sort {calls}
builds:
  v1: {recipe: "make -C /src/v1 PREFIX=$PWD install"}
  v2: {recipe: "make -C /src/v2 PREFIX=$PWD install"}
tolerance: 1%
timeout: 90s
where: {role: lab}
functions: [partition]
"""


def test_a_file(tmp_path: Path) -> None:
    """Recipes share a command; shares and durations have units."""
    path = tmp_path / "b.yaml"
    path.write_text(_YAML)
    made = benchmark_from(read_benchmark(path))
    assert [(each.label, each.command) for each in made.builds] == [("v1", "./sort {calls}"), ("v2", "./sort {calls}")]
    assert made.builds[1].recipe.startswith("make -C /src/v2")
    assert (made.tolerance, made.half_width, made.timeout) == (0.01, 0.004, 90.0)
    assert (made.functions, dict(made.where), made.told_calls) == (("partition",), {"role": "lab"}, True)


def test_what_is_stored_is_what_was_meant() -> None:
    """Also the order of the builds, which JSON in a database may lose."""
    made = benchmark_from({"name": "b", "builds": {"new": "x", "a": {"command": "y", "recipe": "r"}}, "lifetimes": 5})
    document = made.document()
    document["builds"] = dict(sorted(document["builds"].items()))
    assert benchmark_from(document) == made


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lifetime": 3}, "'lifetime'"),
        ({"builds": {"v1": "x"}}, "two builds"),
        ({"builds": {"v1": {"cmd": "x"}, "v2": "y"}}, "'cmd'"),
        ({"builds": {"v1": {"recipe": "x"}, "v2": "y"}}, "builds.v1 has no command"),
        ({"builds": {"v1": "x 'y", "v2": "y"}}, "cannot be split"),
        ({"name": "../x"}, "no name"),
        ({"measure": "guessed"}, "measure"),
        ({"summary": "trimmed"}, "summary"),
        ({"tolerance": "2 apples"}, "tolerance"),
        ({"calls": -1}, "calls"),
        ({"calls": 10**9}, "calls"),
        ({"lifetimes": 1}, "lifetimes"),
        ({"rebuilds": 2}, "rebuilds"),
        ({"timeout": "soon"}, "timeout"),
        ({"lease": 0.1}, "lease"),
        ({"retries": True}, "retries"),
        ({"measure": "mined", "builds": {"v1": "x {output}", "v2": "y"}}, "printed"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], says: str) -> None:
    """Keys that nobody knows, values that mean nothing."""
    with pytest.raises(InputError, match=says):
        benchmark_from({"name": "b", "builds": _BUILDS} | given)


@pytest.mark.parametrize("text", ["- a\n", "a: [", "", "\x00"])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    """One line, whatever it holds."""
    path = tmp_path / "b.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"b\.yaml"):
        read_benchmark(path)
    with pytest.raises(InputError, match="cannot read"):
        read_benchmark(tmp_path / "none.yaml")
