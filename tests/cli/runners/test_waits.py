"""``show --waits``: the daemon is asked once, and answers that are newer than the question count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specmine.cli.runners import waits
from specmine.cli.runners.waits import followed_waits
from specmine.model.errors import NoData


def entry(at: str | None) -> Mapping[str, Any]:
    """Return a function whose waits were followed until a moment."""
    return {"function": "f", "key": "k", "waits": None if at is None else {"at": at}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Return what the daemon is asked; its answers come at once."""
    requests: list[Mapping[str, Any]] = []

    def ask(socket: Path | None, request: Mapping[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return {"functions": ["k"], "seconds": 0.2}

    monkeypatch.setattr(waits, "ask_daemon", ask)
    monkeypatch.setattr(waits, "LOOK_S", 0.01)
    monkeypatch.setattr(waits, "MORE_S", 0.0)
    return requests


def test_an_older_answer_does_not_count(asked: list[Mapping[str, Any]]) -> None:
    """What was followed before is there at first; then comes what was asked for."""
    answers = [[entry("then")], [entry("then")], [entry("now")], [entry("later")]]
    found = followed_waits(entry("then"), None, None, lambda: answers.pop(0))
    assert found == [entry("later")]
    assert asked == [{"command": "waits", "function": "k"}]


@pytest.mark.usefixtures("asked")
def test_no_call_in_the_time_is_no_data() -> None:
    """Then the exit code is 3, and the sentence names the function."""
    with pytest.raises(NoData, match="no call of f was followed"):
        followed_waits(entry(None), None, None, lambda: [entry(None)])


def test_a_store_cannot_look(
    keep: Callable[[Mapping[str, Any]], Path], document: dict[str, Any], outcome: Callable[..., tuple[int, str, str]]
) -> None:
    """That is an error of usage."""
    code, out, err = outcome("show", "z", "--waits", "--store", keep(document))
    assert (code, out) == (2, "")
    assert "a store cannot" in err
