"""Levels over hosts for people: what changed first, and what to do where hosts cannot tell."""

from __future__ import annotations

from typing import Any

from specmine.cli.text.fleet import levels_text


def _build(verdict: str, hosts: list[int], method: str) -> dict[str, Any]:
    return {"base": "v1", "new": "v2", "verdict": verdict, "hosts": hosts, "method": method, "text": f"f: {verdict}"}


def _document(*builds: dict[str, Any]) -> dict[str, Any]:
    return {
        "hosts": 3,
        "hosts_that_stand_out": [],
        "hosts_that_changed": [],
        "builds": list(builds),
        "functions": [{"text": "f: 3 us"}],
    }


def test_a_build_on_too_few_hosts_is_told_with_what_compares_it() -> None:
    """Not as functions that are undecided: a reader would take that for an answer about the build."""
    document = _document(_build("undecided", [2, 1], "none"), _build("undecided", [2, 1], "none"))
    text = levels_text(document, everything=False)
    assert "undecided" not in text
    assert text.count("Build v2 runs on 1 host: too few") == 1
    assert "specmine compare --fleet URL v1 v2" in text


def test_functions_that_hosts_could_compare_are_counted() -> None:
    """What changed is a line of its own; the others are counted by verdict."""
    builds = (_build("worse", [9, 9], "levels"), _build("equivalent", [9, 9], "levels"),
              _build("undecided", [9, 9], "levels"))  # fmt: skip
    lines = levels_text(_document(*builds), everything=False).splitlines()
    assert lines == ["f: worse.", "Other functions of the new build: 1 equivalent, 1 undecided; --all lists them."]
