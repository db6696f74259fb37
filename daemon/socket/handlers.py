"""What the daemon answers on its socket, command by command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.wait_requests import ASKED_NS
from specmine.daemon.documents.detectable import detectable_facts
from specmine.daemon.documents.specification import specification
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.documents.trend import MOST_BUILDS, MOST_TRENDS, trend_of, trends_of
from specmine.daemon.documents.violation_context import violations_document, violations_of
from specmine.daemon.regression.acknowledgements import acknowledgement_now, matching_alarms, open_alarms, shown_with
from specmine.daemon.regression.watcher import ChangeWatcher
from specmine.daemon.system.kill_switch import DEFAULT, switch
from specmine.mining.assertions.expression import Formula
from specmine.model.clock import utc_ns
from specmine.model.errors import InputError, NoData
from specmine.model.globs import matches
from specmine.store import Store

from .budget_leases import BudgetLeases
from .peer import Peer
from .request_fields import comment_of, label_of, optional_text, span_asked, text_of
from .violation_requests import keys_of_program, matching_violations, names_of_open, user_of, with_explained

Request = Mapping[str, Any]


class RequestHandlers:
    """Answers requests from the last published state; runs on the server's thread."""

    def __init__(
        self,
        *,
        state: Callable[[], ControllerState | None],
        daemon: Callable[[], DaemonFacts],
        leases: BudgetLeases,
        label: Callable[[str, str], None],
        builds: Callable[[], frozenset[str]],
        labels: Callable[[], Mapping[str, str]] = dict,
        changes: ChangeWatcher | None = None,
        acknowledge: Callable[[tuple[str, ...], str, str], None] = lambda *_: None,
        follow: Callable[[tuple[str, ...]], None] = lambda _: None,
        utc_ns: Callable[[], int] = utc_ns,
        kill_switch: Path = DEFAULT,
        stored: Callable[[], Store] | None = None,
    ) -> None:
        """Take the sources of the answers.

        Parameters
        ----------
        state : callable
            Returns the last published state, None before the first.
        daemon : callable
            Returns what the controller does not know, for the status.
        leases : BudgetLeases
            The leases of the budget.
        label : callable
            Labels a build.
        builds : callable
            Returns the build-ids that the store holds.
        labels : callable
            Returns the labels of builds.
        changes : ChangeWatcher, optional
            Has the alarms between builds.
        acknowledge : callable
            Gets the ids of violations that a person knows, the person's name, and the comment.
        follow : callable
            Gets the keys of functions whose waits somebody wants followed.
        utc_ns : callable
            The wall clock.
        kill_switch : path
            The file that keeps all probes off.
        stored : callable, optional
            Opens the daemon's store, to be read only.
        """
        self._state = state
        self._daemon_facts = daemon
        self._leases = leases
        self._label = label
        self._builds = builds
        self._labels = labels
        self._changes = changes
        self._acknowledge_violations = acknowledge
        self._follow = follow
        self._utc_ns = utc_ns
        self._kill_switch = kill_switch
        self._stored = stored
        self._commands: dict[str, Callable[[Request, Peer], dict[str, Any]]] = {
            "status": lambda request, peer: status_of(self._now(), self._daemon_facts()),
            "specification": lambda request, peer: self._specification(bool(request.get("detail"))),
            "functions": lambda request, peer: self._specification(False),
            "show": self._show,
            "trend": self._trend,
            "trends": self._trends,
            "violations": lambda request, peer: violations_document(self._now()),
            "label": self._give_label,
            "acknowledge": self._acknowledge,
            "waits": self._follow_waits,
            "share": self._lease,
            "off": lambda request, peer: self._switch(peer, off=True),
            "on": lambda request, peer: self._switch(peer, off=False),
        }

    def __call__(self, request: Request, peer: Peer) -> dict[str, Any]:
        """Return the result of a request.

        Raises
        ------
        SpecmineError
            If it cannot be answered.
        """
        command = self._commands.get(request["command"])
        if command is None:
            raise InputError(f"unknown command {request['command']!r}", remedy=f"known: {', '.join(self._commands)}")
        return command(request, peer)

    def _now(self) -> ControllerState:
        state = self._state()
        if state is None:
            raise NoData("the daemon has only just started", remedy="ask again in a few seconds")
        return state

    def _specification(self, detail: bool) -> dict[str, Any]:
        state = self._now()
        document = self._labelled(specification(state, detail=detail))
        return with_detectable(document, state) if detail else document

    def _labelled(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a specification whose functions have the labels of their builds."""
        labels = self._labels()
        document["functions"] = [
            {**each, "build": labels[each["build_id"]]} if each["build_id"] in labels else each
            for each in document["functions"]
        ]
        return document

    def _show(self, request: Request, peer: Peer) -> dict[str, Any]:
        """Return the specification of the functions that a glob names."""
        glob, state = text_of(request, "function"), self._now()
        wanted = {
            (each.function.build_id, each.function.name, each.function.module)
            for each in state.functions.values()
            if matches(each.function, [glob])
        }
        document = self._labelled(specification(state, detail=True))
        document["functions"] = [
            each for each in document["functions"] if (each["build_id"], each["function"], each["module"]) in wanted
        ]
        if not document["functions"]:
            raise InputError(f"no function matches {glob!r}", remedy="specmine functions lists them")
        return with_detectable(document, state)

    def _trend(self, request: Request, peer: Peer) -> dict[str, Any]:
        """Return how the durations of a function went; a list has its keys, one of each build."""
        keys, length_ns = span_asked(request, MOST_BUILDS, 2)
        if self._stored is None:
            raise NoData("this daemon keeps no windows")
        with self._stored() as store:
            return trend_of(store, keys, self._utc_ns(), length_ns, self._behaviours(keys))

    def _behaviours(self, keys: Sequence[str]) -> dict[str, Formula]:
        """Return what is stated of a function now: expression to formula, {} for a single behaviour."""
        state = self._state()
        known = [state.functions[key] for key in keys if key in state.functions] if state is not None else []
        results = [each.explanation.result for each in known if each.state is State.EXPLAINED]
        parts = [part for each in results if each is not None for part in each.behaviours]
        return {each.expression: each.formula for each in parts} if len(parts) > 1 else {}

    def _trends(self, request: Request, peer: Peer) -> dict[str, Any]:
        """Return the medians of many functions."""
        keys, length_ns = span_asked(request, MOST_TRENDS, 6)
        if self._stored is None:
            raise NoData("this daemon keeps no windows")
        with self._stored() as store:
            return trends_of(store, keys, self._utc_ns(), length_ns)

    def _give_label(self, request: Request, peer: Peer) -> dict[str, Any]:
        _check_right(peer)
        wanted, name = text_of(request, "build"), label_of(request)
        state = self._state()
        living = {each.build_id for each in state.lifetimes.values()} if state else set()
        known = sorted((self._builds() | living) - {""})
        found = [each for each in known if each == wanted] or [each for each in known if each.startswith(wanted)]
        if len(found) != 1:
            raise InputError(
                f"{len(found) or 'no'} builds begin with {wanted!r}",
                remedy="give more digits"
                if found
                else f"known: {', '.join(each[:12] for each in known[:5]) or 'none'}",
            )
        self._label(found[0], name)
        return {"build_id": found[0], "label": name}

    def _acknowledge(self, request: Request, peer: Peer) -> dict[str, Any]:
        """List what is open; with a function acknowledge its violations and alarms, or undo that of the alarms."""
        entries = open_alarms(self._changes.changes) if self._changes is not None else []
        if request.get("function") is None:
            violations = [each for each in self._violations() if each["state"] == "open"]
            return {"violations": violations, "changes": [dict(each) for each in entries]}
        _check_right(peer)
        glob, undo = text_of(request, "function"), bool(request.get("undo"))
        build, program = optional_text(request, "build"), optional_text(request, "program")
        comment = comment_of(request)
        state = self._state()
        functions = state.functions if state is not None else {}
        known = violations_of(state) if state is not None and not undo else ()
        among = keys_of_program(state, program)
        found = with_explained(matching_violations(known, functions, glob, build, among), known)
        if among is not None:
            names = {(functions[key].function.name, functions[key].function.module) for key in among}
            entries = [each for each in entries if (each["function"], each["module"]) in names]
        opened = () if found else names_of_open(known, functions)
        changes = self._acknowledge_changes(
            entries, glob, build, comment, undo=undo, required=not found, violated=opened
        )
        if found:
            by = user_of(peer, request.get("by"))
            self._acknowledge_violations(tuple(each.id for each in found), by, comment)
        ids = {each.id for each in found}
        shown = [
            {**each, "state": "acknowledged", "comment": comment or None}
            for each in self._violations()
            if each["id"] in ids
        ]
        return {"violations": shown, "changes": changes}

    def _follow_waits(self, request: Request, peer: Peer) -> dict[str, Any]:
        """Have the waits of one function followed: others pay for it, so not everybody may."""
        _check_right(peer)
        key, state = text_of(request, "function"), self._now()
        function = state.functions.get(key)
        if function is None:
            raise InputError(f"no function has the key {key!r}", remedy="specmine functions lists them")
        if function.probe.watch is None and function.state not in FINISHED:
            reason = function.reason.text if function.reason else function.state.value
            raise NoData(f"{function.function.name} is not timed now: {reason}")
        self._follow((key,))
        return {"functions": [key], "seconds": ASKED_NS / 10**9}

    def _violations(self) -> list[dict[str, Any]]:
        state = self._state()
        found: list[dict[str, Any]] = violations_document(state)["violations"] if state is not None else []
        return found

    def _acknowledge_changes(
        self,
        entries: Sequence[Mapping[str, Any]],
        glob: str,
        build: str,
        comment: str,
        *,
        undo: bool,
        required: bool,
        violated: Sequence[str],
    ) -> list[dict[str, Any]]:
        """Acknowledge alarms between builds, or undo that; ``required``: InputError if there is none."""
        try:
            found = matching_alarms(entries, glob, build, undo=undo, violated=violated)
        except InputError:
            if required:
                raise
            return []
        known = None if undo else [acknowledgement_now(each, self._utc_ns(), comment) for each in found]
        if self._changes is not None:
            self._changes.acknowledge(found, known)
        shown = known if known is not None else [None for _ in found]
        return [shown_with(each, one) for each, one in zip(found, shown, strict=True)]

    def _lease(self, request: Request, peer: Peer) -> dict[str, Any]:
        """Lease part of the budget to the peer, until its connection ends."""
        _check_right(peer)
        ratio = request.get("ratio")
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1:
            raise InputError(f"ratio is a number above 0 and at most 1, not {ratio!r}")
        return {"granted_ratio": self._leases.grant(peer.connection, float(ratio))}

    def _switch(self, peer: Peer, *, off: bool) -> dict[str, Any]:
        """Create or remove the kill switch; the probes follow it even if the loop hangs."""
        _check_right(peer)
        switch(self._kill_switch, off=off)
        return {"kill_switch": str(self._kill_switch)}


def with_detectable(document: dict[str, Any], state: ControllerState) -> dict[str, Any]:
    """Return a specification whose functions tell which slowdowns would be found, and how soon."""
    threshold = state.detection.threshold
    document["functions"] = [
        {**each, "detectable": detectable_facts(state.functions[each["key"]], state.now_ns, threshold)}
        for each in document["functions"]
    ]
    return document


def _check_right(peer: Peer) -> None:
    if not peer.may_change:
        raise InputError("only root and the daemon's own user may do this", remedy="run as root")
