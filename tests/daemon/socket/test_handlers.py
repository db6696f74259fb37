"""Requests to the daemon's socket: what is refused, to whom, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.documents.status import DaemonFacts
from specmine.daemon.socket.budget_leases import BudgetLeases
from specmine.daemon.socket.handlers import RequestHandlers
from specmine.daemon.socket.peer import Peer
from specmine.model.errors import InputError, NoData
from specmine.store import open_store, read_store
from tests.support.changing import lived
from tests.support.planted import unimodal
from tests.support.stored import FUNCTION, SECOND, UTC, fill, observation


@pytest.fixture
def early() -> RequestHandlers:
    """Return the answers of a daemon that has published nothing yet."""
    return RequestHandlers(
        state=lambda: None,
        daemon=DaemonFacts,
        leases=BudgetLeases(0.01, lambda _: None),
        label=lambda *_: None,
        builds=frozenset,
    )


def test_before_the_first_news_the_daemon_says_so(early: RequestHandlers) -> None:
    """A question that comes too early is answered with exit code 3, not with an empty truth."""
    with pytest.raises(NoData, match="just started"):
        early({"command": "status"}, Peer(connection=1, pid=1, uid=0))


@pytest.mark.parametrize(
    "request_",
    [
        {"command": "share", "ratio": 0.1},
        {"command": "label", "build": "a", "name": "b"},
        {"command": "waits", "function": "key"},
    ],
)
def test_only_root_and_the_daemons_user_may_change(early: RequestHandlers, request_: dict[str, Any]) -> None:
    """Another user is refused before anything is looked at."""
    with pytest.raises(InputError, match="only root"):
        early(request_, Peer(connection=1, pid=1, uid=12345))


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"command": "nonsense"}, "unknown command 'nonsense'"),
        ({"command": "share"}, "ratio is a number"),
        ({"command": "share", "ratio": True}, "ratio is a number"),
        ({"command": "share", "ratio": 7}, "ratio is a number"),
        ({"command": "label", "build": "a"}, "needs name"),
        ({"command": "label", "build": "", "name": "b"}, "needs build"),
        ({"command": "label", "build": "a", "name": "\ud800"}, "name is printable text of 1 to 200"),
        ({"command": "label", "build": "a", "name": "b\n"}, "name is printable text of 1 to 200"),
        ({"command": "label", "build": "a", "name": " "}, "name is printable text of 1 to 200"),
        ({"command": "label", "build": "a", "name": "b" * 201}, "name is printable text of 1 to 200"),
        ({"command": "acknowledge", "function": "f", "comment": "\ud800"}, "comment is printable text"),
        ({"command": "trend"}, "functions is a list"),
        ({"command": "trend", "functions": ["k"] * 21}, "functions is a list"),
        ({"command": "trends", "functions": ["k"] * 41}, "functions is a list"),
        ({"command": "trend", "functions": [7]}, "functions is a list"),
        ({"command": "trend", "functions": ["k"], "hours": 1e9}, "hours is a number"),
    ],
)
def test_a_wrong_request_is_named(early: RequestHandlers, request_: dict[str, Any], said: str) -> None:
    """What is missing or out of range stands in the error."""
    with pytest.raises(InputError, match=said):
        early(request_, Peer(connection=1, pid=1, uid=0))


def test_functions_have_the_label_of_their_build() -> None:
    """What somebody called a build chooses among functions, without a store."""
    life = lived((unimodal(),), 30.0)
    (function,) = life.state.functions.values()
    handlers = RequestHandlers(
        state=lambda: life.state,
        daemon=DaemonFacts,
        leases=BudgetLeases(0.01, lambda _: None),
        label=lambda *_: None,
        builds=frozenset,
        labels=lambda: {function.function.build_id: "v2"},
    )
    for request in ({"command": "specification"}, {"command": "show", "function": "smooth"}):
        (entry,) = handlers(request, Peer(connection=1, pid=1, uid=0))["functions"]
        assert entry["build"] == "v2"


def test_a_trend_is_read_from_the_daemons_store(tmp_path: Path) -> None:
    """Whoever may ask gets the windows of one function, also while the daemon writes."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(20)])
        handlers = RequestHandlers(
            state=lambda: None,
            daemon=DaemonFacts,
            leases=BudgetLeases(0.01, lambda _: None),
            label=lambda *_: None,
            builds=frozenset,
            utc_ns=lambda: UTC + 20 * SECOND,
            stored=lambda: read_store(tmp_path / "s.db"),
        )
        request = {"command": "trend", "functions": [FUNCTION.key], "hours": 1}
        found = handlers(request, Peer(connection=1, pid=1, uid=12345))
        several = handlers({**request, "command": "trends"}, Peer(connection=1, pid=1, uid=12345))
    assert sum(each["calls"] for each in found["points"]) == 2000
    assert list(several["functions"]) == [FUNCTION.key] and several["functions"][FUNCTION.key]


def test_who_asks_for_waits_has_them_followed() -> None:
    """The key of a function that is timed goes to the loop; another key, or one that is not timed, is refused."""
    life, followed = lived((unimodal(),), 40.0), list[tuple[str, ...]]()
    (function,) = life.state.functions.values()
    handlers = RequestHandlers(
        state=lambda: life.state,
        daemon=DaemonFacts,
        leases=BudgetLeases(0.01, lambda _: None),
        label=lambda *_: None,
        builds=frozenset,
        follow=followed.append,
    )
    root = Peer(connection=1, pid=1, uid=0)
    answer = handlers({"command": "waits", "function": function.key}, root)
    assert (answer["functions"], answer["seconds"] > 0, followed) == ([function.key], True, [(function.key,)])
    with pytest.raises(InputError, match="no function has the key"):
        handlers({"command": "waits", "function": "other"}, root)
    assert len(followed) == 1
