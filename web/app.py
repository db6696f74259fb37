"""The application: addresses to pages, each as HTML or as the JSON that the commands print."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from specmine.analysis.charts.sheet import style_sheet
from specmine.analysis.documents import without_details
from specmine.daemon.documents.json_text import json_text
from specmine.daemon.documents.trend import MOST_BUILDS, MOST_TRENDS, SHORT_POINTS
from specmine.daemon.metrics.http import is_own_host
from specmine.model.errors import NoData, SpecmineError

from . import words
from .comparisons import Comparisons
from .documents import Documents, Entry, Latest, Source
from .pages import builds, function, functions, hosts, now
from .pages.frame import PAGES, frame
from .pages.violation_card import card
from .templating import environment

Handler = Callable[[Documents, Request], Response]
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_UNAVAILABLE = 503
TRENDS_S = 60.0
"""The small trends of a list are kept for so long at least ..."""
TRENDS_APART_S = 5.0
"""... and those of another list are read no sooner after them."""


def make_app(source: Source, host: str) -> Starlette:
    """Return the application.

    Parameters
    ----------
    source : Source
        Where the documents come from.
    host : str
        What the server listens on: requests for other hosts are refused (DNS rebinding).
    """
    pages = _Pages(source)
    routes = [
        Route("/", pages.answers(pages.now)),
        Route("/functions", pages.answers(pages.functions)),
        Route("/function", pages.answers(pages.function)),
        Route("/violation", pages.answers(pages.violation)),
        Route("/builds", pages.answers(pages.builds)),
        Route("/hosts", pages.answers(pages.hosts)),
        Route("/style.css", _style(style_sheet().encode())),
    ]
    app = Starlette(routes=routes, exception_handlers={404: pages.not_found})
    app.add_middleware(partial(OwnHost, host=host))
    return app


class OwnHost:
    """Refuses requests that carry the name of another host, and adds the headers that each answer has."""

    def __init__(self, app: Any, *, host: str) -> None:
        """Wrap an application."""
        self._app, self._host = app, host

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if not all(is_own_host(each, self._host) for each in asked):
            refused = Response("ask for this host by the name it listens on\n", 421, media_type="text/plain")
            await refused(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in given)]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _Pages:
    """The pages over one source."""

    def __init__(self, source: Source) -> None:
        self._latest = Latest(source)
        self._comparisons = Comparisons(source.store)
        self._templates = environment()
        self._now_s = time.monotonic
        self._next_trends_s = 0.0
        self._overview: functions.Overview | None = None
        self._short_trends: dict[tuple[str, ...], tuple[float, Mapping[str, Any]]] = {}
        self._trends: tuple[Mapping[str, Any] | None, dict[tuple[tuple[str, ...], int], Mapping[str, Any]]] = None, {}

    def answers(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that reads the documents first, on a thread, and says so where it cannot."""

        async def answer(request: Request) -> Response:
            return await anyio.to_thread.run_sync(self._answer, handler, request)

        return answer

    def _answer(self, handler: Handler, request: Request) -> Response:
        try:
            return handler(self._latest.documents(), request)
        except SpecmineError as error:
            headline = "Nothing to show yet" if isinstance(error, NoData) else "The data cannot be read now"
            return self._problem(request, headline, str(error), error.remedy, _UNAVAILABLE)

    def now(self, documents: Documents, request: Request) -> Response:
        """What is wrong."""
        if _wants_json(request):
            return _json(documents.violations)
        return self._html(request, "now.html", now.page(documents, lambda entry: self._trend(documents, [entry], 2)))

    def functions(self, documents: Documents, request: Request) -> Response:
        """All functions."""
        if _wants_json(request):
            return _json({"schema": "specmine.functions/1",
                          "functions": without_details(documents.specification)["functions"]})  # fmt: skip
        overview = self._overview
        if overview is None or overview.specification is not documents.specification:
            overview = self._overview = functions.Overview(documents.specification, documents.functions)
        values = functions.page(documents, request.query_params, self._trends_of, overview)
        return self._html(request, "functions.html", values)

    def function(self, documents: Documents, request: Request) -> Response:
        """One function."""
        entries = function.found(documents, request.query_params)
        names = {(each.get("function"), each.get("module"), each.get("program")) for each in entries}
        if not request.query_params.get("name") or not entries:
            name = request.query_params.get("name") or ""
            return self._problem(request, "No such function", f"No function {name!r} is known here.", "", 404)
        if len(names) > 1:
            choices = [
                (words.function_address(each), f"{each['function']} ({each.get('program') or each.get('module')})")
                for each in entries
            ]
            return self._problem(request, "Which one?", "Several functions have this name.", "", 300, choices)
        newest = max(entries, key=lambda each: str(each.get("since") or ""))
        if _wants_json(request):
            return _json({"schema": "specmine.function/1", **newest})
        others = [each for each in entries if each is not newest]
        hours = function.chosen_hours(request.query_params)
        known = self._trend(documents, entries, hours)
        return self._html(request, "function.html", function.page(documents, newest, others, known, hours))

    def _trend(self, documents: Documents, entries: Sequence[Entry], hours: int) -> Mapping[str, Any]:
        """Return how the durations of a function went, read once for the same documents; {} without windows."""
        keys = tuple(dict.fromkeys(str(each["key"]) for each in entries if each.get("key")))[:MOST_BUILDS]
        if self._trends[0] is not documents.specification:
            self._trends = documents.specification, {}
        known = self._trends[1]
        if (keys, hours) not in known:
            try:
                known[keys, hours] = self._latest.source.trend(keys, hours) if keys else {}
            except SpecmineError:
                known[keys, hours] = {}
        return known[keys, hours]

    def _trends_of(self, keys: Sequence[str]) -> Mapping[str, Any]:
        """Return how the medians of functions went, read as often as a new point may be there; {} without windows.

        Whoever asks for one list after the other gets some without: reading costs the daemon CPU time.
        """
        asked, now_s = tuple(keys[:MOST_TRENDS]), self._now_s()
        self._short_trends = {key: each for key, each in self._short_trends.items() if now_s < each[0]}
        if asked and asked not in self._short_trends:
            if now_s < self._next_trends_s:
                return {}
            self._next_trends_s = now_s + TRENDS_APART_S
            try:
                found = self._latest.source.trends(asked, functions.HOURS)
            except SpecmineError:
                found = {}
            until_s = now_s + max(TRENDS_S, functions.span_s(found) / SHORT_POINTS)
            self._short_trends[asked] = until_s, found
        return self._short_trends[asked][1] if asked else {}

    def violation(self, documents: Documents, request: Request) -> Response:
        """One violation, at an address that an alert can carry."""
        wanted = request.query_params.get("id", "")
        entry = next((each for each in documents.violations["violations"] if str(each.get("id")) == wanted), None)
        if entry is None:
            text = "It is not known here, or was closed long ago. `specmine violations --all` lists those kept."
            return self._problem(request, "No such change", text, "", 404)
        if _wants_json(request):
            return _json({"schema": "specmine.violations/1", "violations": [entry]})
        values = {**frame(documents, "/", str(entry.get("title"))), "card": card(entry, documents.at)}
        return self._html(request, "violation.html", values)

    def builds(self, documents: Documents, request: Request) -> Response:
        """Two builds."""
        known = self._comparisons.builds()
        chosen = _chosen(known, request.query_params)
        comparison, problem = self._comparisons.compared(*chosen)
        if _wants_json(request):
            changes = {"schema": "specmine.status/1", "changes": list(documents.status.get("changes") or ())}
            return _json(comparison if comparison is not None else changes)
        values = builds.page(
            documents, comparison, known, chosen, problem, lambda entry: self._comparisons.portrait(entry, *chosen)
        )
        return self._html(request, "builds.html", values)

    def hosts(self, documents: Documents, request: Request) -> Response:
        """The host."""
        if _wants_json(request):
            return _json(documents.status or {"schema": "specmine.status/1"})
        return self._html(request, "hosts.html", hosts.page(documents))

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Answer for an address that no page has."""
        return self._problem(request, "No such page", f"Nothing is at {request.url.path}.", "", 404)

    def _problem(
        self, request: Request, headline: str, text: str, remedy: str, status: int, choices: Any = ()
    ) -> Response:
        if _wants_json(request):
            return _json({"error": text, "remedy": remedy}, status)
        values = {"title": headline, "path": "", "pages": PAGES, "problems": 0, "at": "", "host": "", "version": "",
                  "headline": headline, "text": text, "remedy": remedy, "choices": choices}  # fmt: skip
        return self._html(request, "problem.html", values, status)

    def _html(self, request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
        asked = {**request.query_params, "format": "json"}
        text = self._templates.get_template(template).render(
            **values, json_address=words.address(request.url.path, **asked)
        )
        return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


def _style(sheet: bytes) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(sheet, media_type="text/css", headers={"Cache-Control": "max-age=600"})

    return answer


def _chosen(known: list[tuple[str, str]], query: Mapping[str, str]) -> tuple[str, str]:
    """Return the builds that a request names; else the two newest."""
    ids = [build for build, _ in known]
    old = query.get("old") if query.get("old") in ids else (ids[-2] if len(ids) > 1 else "")
    new = query.get("new") if query.get("new") in ids else (ids[-1] if len(ids) > 1 else "")
    return str(old), str(new)


def _wants_json(request: Request) -> bool:
    return request.query_params.get("format") == "json"


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json_text(document), status, media_type="application/json")
