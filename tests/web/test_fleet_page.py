"""The page of a fleet: what is wrong first, on which host; the same as JSON; hostile names stay text."""

from __future__ import annotations

import re
from typing import Any

from starlette.testclient import TestClient

from specmine.model.errors import InputError
from specmine.web.fleet_page import FRESH_S, make_fleet_app

_EVIL = "<script>alert(1)</script>\x1b[2J"


def _overview(**more: Any) -> dict[str, Any]:
    return {
        "schema": "specmine.fleet_overview/1", "at": "2026-11-22T03:12:40+00:00",
        "status": {
            "hosts": {"active": 2, "silent": 1}, "loader": True, "refused": 0, "functions": 4, "bytes": 1 << 30,
            "inbox": {"pushes": 0, "oldest_seconds": None},
            "sharing": {"planner": True, "duties": {"panel": 3}, "stated": 3, "waiting_to_be_mined": 0},
        },
        "hosts": [{"host": "web-1", "state": "active", "labels": {"role": _EVIL}, "version": "0.1",
                   "seen_at": "2026-11-22T03:10:40+00:00"},
                  {"host": "web-2", "state": "active", "labels": {}, "version": "", "seen_at": None}],
        "levels": {
            "hosts_that_changed": [{"host": "web-2", "text": "web-2 alone became slower, 1.5 times"}],
            "hosts_that_stand_out": [{"host": "web-1", "text": "web-1 alone is slower, 2.3 times"}],
            "builds": [{"verdict": "worse", "text": "parse (app) is slower with build v2"},
                       {"verdict": "undecided", "text": "not said"}],
            "functions": [{"function": _EVIL, "module": "app", "build": "v2", "hosts": 2, "lifetimes": 2, "text": "",
                           "median": {"seconds": 0.0123, "low": None, "high": None}, "between_hosts_ratio": None}],
        },
        "violations": [{"host": "web-1", "function": "checksum", "module": "app", "program": "shop", "state": "open",
                        "what": "level", "direction": "slower", "factor": 2.1, "since": "2026-11-22T03:02:40+00:00"}],
    } | more  # fmt: skip


def _client(overview: dict[str, Any]) -> TestClient:
    return TestClient(make_fleet_app(lambda: overview, "127.0.0.1"), base_url="http://127.0.0.1")


def test_it_begins_with_what_is_wrong() -> None:
    """How many, which host, which build; then what is open where; what was not decided is not said."""
    text = _client(_overview()).get("/").text
    assert text.count("<h1>") == 1
    assert text.rstrip().endswith("</html>")
    parts = (
        "1 problem",
        "1 host changed",
        "web-2 alone",
        "web-1 alone",
        "slower with build v2",
        "checksum",
        "Last heard of",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "not said" not in text
    assert "2.10" in text
    assert re.search(r"2\W+min ago", text)


def test_names_of_others_stay_text() -> None:
    """No markup, no control character."""
    text = _client(_overview()).get("/").text
    assert "<script>" not in text
    assert "\x1b" not in text


def test_all_well_and_nobody_at_work() -> None:
    """One sentence if nothing is wrong; a note if nobody loads or plans."""
    levels: dict[str, Any] = {"hosts_that_stand_out": [], "hosts_that_changed": [], "builds": [], "functions": []}
    status = {**_overview()["status"], "loader": False, "hosts": {}}
    text = _client(_overview(levels=levels, violations=[], hosts=[], status=status)).get("/").text
    assert "No open violation" in text
    assert "Nobody loads" in text
    assert "No host is enrolled" in text


def test_the_same_as_json_and_only_for_this_host() -> None:
    """What a script gets is the document itself; other names of the host are refused; other addresses are none."""
    client = _client(_overview())
    assert client.get("/?format=json").json() == _overview()
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/hosts").status_code == 404
    assert client.get("/").headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_the_fleet_is_read_at_most_twice_a_minute() -> None:
    """However often the page is asked for; a fleet that does not answer is said."""
    now, reads = [0.0], [0]

    def read() -> dict[str, Any]:
        reads[0] += 1
        if reads[0] > 2:
            raise InputError("no answer", remedy="wait")
        return _overview()

    client = TestClient(make_fleet_app(read, "127.0.0.1", lambda: now[0]), base_url="http://127.0.0.1")
    for _ in range(3):
        assert client.get("/").status_code == 200
    assert reads == [1]
    now[0] += FRESH_S + 1
    client.get("/")
    assert reads == [2]
    now[0] += FRESH_S + 1
    answer = client.get("/")
    assert (answer.status_code, "no answer" in answer.text) == (503, True)
    assert client.get("/?format=json").json() == {"error": "no answer", "remedy": "wait"}
