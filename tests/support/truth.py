"""What a mining of the target programs must find; shared by tests and by ``bench/truth/mine.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.replay import events

Document = Mapping[str, Any]
NEAR = 0.05
"""How far a share may be from the truth."""


def function_named(document: Document, name: str) -> Mapping[str, Any]:
    """Return one function of a specification."""
    found: list[Mapping[str, Any]] = [each for each in document["functions"] if each["function"] == name]
    assert len(found) == 1, [each["function"] for each in document["functions"]]
    return found[0]


def wrong_about_paths(document: Document, counts: Mapping[str, int]) -> str:
    """Return what is wrong with z of ``paths``, '' if it is as the program says.

    Parameters
    ----------
    document : mapping
        A specification.
    counts : mapping
        What the program counted: calls of z by path, and how many were slow; over b->c none was.
    """
    z = function_named(document, "z")
    shares = {each["expression"]: each["shares"] for each in z["behaviours"]}
    if set(shares) != {"b->c", "not b->c"}:
        return f"z is {z['state']}, {z['reason']}, with behaviours {sorted(shares)}"
    fast = 1 - counts["slow"] / (counts["abz"] + counts["acz"])
    truth = {"b->c": [1.0, 0.0], "not b->c": [fast, 1 - fast]}
    for expression, true in truth.items():
        if len(shares[expression]) != 2 or farthest(shares[expression], true) > NEAR:
            return f"{expression} has shares {shares[expression]}, the truth is {true}"
    return ""


def wrong_about_single(document: Document) -> str:
    """Return what is wrong with the functions of ``single``, '' if none of its own has a border."""
    smooth = function_named(document, "smooth")
    if smooth["state"] != "single":
        return f"smooth is {smooth['state']}, {smooth['reason']}"
    cut = [each["function"] for each in document["functions"] if each["module"] == "single" and each["borders"]]
    return f"there are borders in {cut}" if cut else ""


def farthest(found: list[float], true: list[float]) -> float:
    """Return the largest distance of two lists of shares."""
    return max(abs(a - b) for a, b in zip(found, true, strict=True))


def seconds_until_settled(recording: Path, name: str) -> float | None:
    """Return when a recorded mining came to the last state of a function, in seconds from its start."""
    state, since, now = ControllerState(), None, None
    for _, event, _ in events(recording):
        state, _ = decide(state, event)
        for each in state.functions.values():
            if each.function.name == name and each.state is not now:
                now, since = each.state, state.now_ns
    return None if since is None else (since - state.began_ns) * 1e-9
