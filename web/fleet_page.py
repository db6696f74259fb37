"""The page of a fleet: what is wrong on which host, builds that changed, the hosts, what many hosts say together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
from jinja2 import Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from specmine import __version__
from specmine.analysis.charts.sheet import style_sheet
from specmine.analysis.wording.violations import is_problem
from specmine.daemon.documents.json_text import json_text
from specmine.model.errors import SpecmineError
from specmine.model.text import count, plural, size

from . import words
from .app import OwnHost
from .templating import environment

Overview = Mapping[str, Any]
FRESH_S = 30.0
"""A fleet is read at most so often, however often the page is asked for."""
MOST_ROWS = 200
"""Of each table; --format json of the commands has all."""
PAGES = (("/", "Fleet"),)
_UNAVAILABLE = 503


def make_fleet_app(read: Callable[[], Overview], host: str, now_s: Callable[[], float] = time.monotonic) -> Starlette:
    """Return the application.

    Parameters
    ----------
    read : callable
        Returns ``specmine.fleet_overview/1``, or raises SpecmineError.
    host : str
        What the server listens on: requests for other hosts are refused.
    now_s : callable
        A monotonic clock, s.
    """
    page = _Page(read, now_s)
    style = style_sheet().encode()
    routes = [
        Route("/", page.answer),
        Route("/style.css", lambda _: Response(style, media_type="text/css", headers={"Cache-Control": "max-age=600"})),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(partial(OwnHost, host=host))
    return app


class _Page:
    def __init__(self, read: Callable[[], Overview], now_s: Callable[[], float]) -> None:
        self._read, self._now_s, self._lock = read, now_s, threading.Lock()
        self._known: tuple[float, Overview] | None = None
        self._templates: Environment = environment()

    async def answer(self, request: Request) -> Response:
        """Return the page or its JSON; a thread reads the fleet, one at a time."""
        return await anyio.to_thread.run_sync(self._answer, request)

    def _answer(self, request: Request) -> Response:
        as_json = request.query_params.get("format") == "json"
        try:
            overview = self._overview()
        except SpecmineError as error:
            if as_json:
                document = json_text({"error": error.message, "remedy": error.remedy})
                return Response(document, _UNAVAILABLE, media_type="application/json")
            headline = "The fleet cannot be read now"
            return self._html("problem.html", _UNAVAILABLE, title=headline, headline=headline, text=error.message,
                              remedy=error.remedy, choices=())  # fmt: skip
        if as_json:
            return Response(json_text(overview), media_type="application/json")
        return self._html("fleet.html", 200, title="Fleet", **values(overview))

    def _overview(self) -> Overview:
        with self._lock:
            if self._known is None or self._now_s() - self._known[0] > FRESH_S:
                self._known = self._now_s(), self._read()
            return self._known[1]

    def _html(self, template: str, status: int, **given: Any) -> Response:
        common = {"path": "/", "pages": PAGES, "problems": 0, "at": "", "host": "", "version": __version__,
                  "json_address": "/?format=json"}  # fmt: skip
        text = self._templates.get_template(template).render(**{**common, **given})
        return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


def values(overview: Overview) -> dict[str, Any]:
    """Return the values of the template ``fleet.html``."""
    status, levels = overview["status"], overview["levels"]
    now = datetime.fromisoformat(str(overview["at"])).astimezone(UTC)
    problems = [each for each in overview["violations"] if is_problem(each) and not each.get("because")]
    changed = [each for each in levels["builds"] if each["verdict"] in ("worse", "better")]
    sharing = status["sharing"]
    return {
        "at": words.date(now),
        "problems": len(problems),
        "lead": _lead(len(problems), levels, changed),
        "outliers": [
            f"{each['text']}." for each in (*levels["hosts_that_changed"], *levels["hosts_that_stand_out"])
        ][:MOST_ROWS],
        "changed": [f"{each['text']}." for each in changed][:MOST_ROWS],
        "tiles": [
            {"value": count(sum(status["hosts"].values())), "text": _states(status["hosts"])},
            {"value": count(sharing["stated"]), "text": f"of {count(status['functions'])} functions stated together"},
            {"value": count(status["inbox"]["pushes"]), "text": "pushes wait to be loaded"},
            {"value": size(status["bytes"]), "text": "held by the database"},
        ],
        "notes": _notes(status),
        "violations": [
            {"entry": each, "host": each["host"], "since": words.ago(each.get("since"), now)}
            for each in overview["violations"][:MOST_ROWS]
        ],
        "hosts": [
            {**each, "seen": words.ago(each["seen_at"], now) or "never",
             "labels": " ".join(f"{key}={value}" for key, value in sorted(each["labels"].items()))}
            for each in overview["hosts"][:MOST_ROWS]
        ],
        "more_hosts": max(0, len(overview["hosts"]) - MOST_ROWS),
        "functions": levels["functions"][:MOST_ROWS],
        "more_functions": max(0, len(levels["functions"]) - MOST_ROWS),
    }  # fmt: skip


def _lead(problems: int, levels: Overview, changed: list[Mapping[str, Any]]) -> str:
    found = []
    if problems:
        found.append(plural(problems, "problem"))
    if hosts := levels["hosts_that_changed"]:
        found.append(f"{plural(len(hosts), 'host')} changed")
    if outliers := levels["hosts_that_stand_out"]:
        found.append(f"{plural(len(outliers), 'host')} that stand{'s' if len(outliers) == 1 else ''} out")
    if changed:
        found.append(f"{plural(len(changed), 'function')} changed by a build")
    return f"{', '.join(found)}." if found else "No open violation, no host that stands out, no build that is slower."


def _states(hosts: Mapping[str, int]) -> str:
    return f"hosts: {', '.join(f'{number} {state}' for state, number in hosts.items())}" if hosts else "hosts"


def _notes(status: Overview) -> list[str]:
    notes = []
    if not status["loader"]:
        notes.append("Nobody loads: start specmine fleet serve.")
    if not status["sharing"]["planner"]:
        notes.append("Nobody plans: each host observes all by itself.")
    if status["refused"]:
        notes.append(f"{plural(status['refused'], 'push')} refused lately: a host sends what cannot be read.")
    return notes
