"""The specification document, to the letter of its contract."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents import function as functions
from specmine.daemon.documents.json_text import json_text
from specmine.daemon.documents.specification import SCHEMA, specification
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.mining.assertions.expression import evaluate, from_records, parse, render
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.function import Reason
from specmine.model.observation import Kind
from tests.support.planted import Planted, Way, paper_program, unimodal
from tests.support.simulated import PRICES, SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)
STABLE = {"single", "explaining", "explained", "unexplained"}


def program() -> tuple[Planted, ...]:
    """Return a program with a function of every kind."""
    refused = Reason(code="unwinder", text="an exception would abort it", remedy="none")
    broken = Way(callers="(unknown)", weight=0.2, classes=((0.5, 2e4, 0.1), (0.5, 2e5, 0.1)), complete=False)
    z, *others = paper_program()
    return (
        replace(z, ways=(*z.ways, broken)),
        *others,
        unimodal(),
        unimodal("slow", rate=5.0),
        unimodal("never", rate=1000.0, refused=(Kind.COUNT, refused)),
        unimodal("cold", rate=10.0, own=0.0045, inclusive=0.0045),
    )


@pytest.fixture(scope="module")
def states() -> list[ControllerState]:
    """Return what was known after every step of a mining."""
    clock, seen = FakeClock(), []

    def listen(step: Step) -> None:
        seen.append(step.state)

    source = SimulatedSource(program(), clock, seed=3)
    run(source, SHORT, clock, InlineWorker(), listeners=[listen], deadline_ns=15 * SECOND)
    return seen


def test_every_field_of_the_contract_is_there(states: list[ControllerState]) -> None:
    """A document of the end of a run has all fields of specmine.specification/1 with the right types."""
    document = json.loads(json_text(specification(states[-1])))
    assert document["schema"] == SCHEMA == "specmine.specification/1"
    assert document["program"]["path"] == "/opt/app" and document["program"]["exit_status"] is None
    collection = document["collection"]
    assert collection["seconds"] == 15 and collection["overhead_budget_ratio"] == 0.01
    assert 0 < collection["overhead_ratio"] <= 0.01 and collection["lost"] == {}
    wanted = {
        "function": str, "module": str, "build_id": str, "aliases": list, "state": str, "calls": int,
        "calls_counted": int, "calls_exact": bool, "watched_seconds": float, "timed": int,
        "observations": int, "borders_seconds": list,
        "borders": list, "classes": list, "behaviours": list, "paths": list,
    }  # fmt: skip
    for entry in document["functions"]:
        for name, kind in wanted.items():
            assert isinstance(entry[name], kind) or (kind is float and isinstance(entry[name], int)), name
        assert entry["reason"] is None or set(entry["reason"]) == {"code", "text", "remedy"}
        interval = entry["calls_interval"]
        assert interval is None or interval[0] <= entry["calls"] <= (interval[1] or entry["calls"])
        assert interval is None or entry["calls"] or entry["watched_seconds"], "nobody looked, and 0 is called sure"
        assert not entry["calls_exact"] or interval == [entry["calls"]] * 2


def test_lists_are_in_order(states: list[ControllerState]) -> None:
    """Functions, behaviours and paths are sorted by calls, then name."""
    for state in states[::20]:
        functions = specification(state)["functions"]
        assert functions == sorted(functions, key=lambda each: (-each["calls"], each["function"]))
        for entry in functions:
            for name, second in (("behaviours", "expression"), ("paths", "frames")):
                assert entry[name] == sorted(entry[name], key=lambda each: (-each["calls"], each[second]))


def test_what_is_claimed_at_each_state(states: list[ControllerState]) -> None:
    """Before a function is stable nothing is claimed; single has one behaviour; shares add up to 1."""
    seen = set()
    for state in states[::5]:
        for entry in specification(state)["functions"]:
            seen.add(entry["state"])
            if entry["state"] not in STABLE:
                assert (entry["borders_seconds"], entry["behaviours"], entry["classes"]) == ([], [], [])
                continue
            assert len(entry["classes"]) == len(entry["borders_seconds"]) + 1
            assert entry["classes"][-1]["upper_seconds"] is None
            assert [each["upper_seconds"] for each in entry["classes"][:-1]] == sorted(entry["borders_seconds"])
            assert sum(each["share"] for each in entry["classes"]) == pytest.approx(1, abs=1e-6)
            for each in entry["behaviours"]:
                assert sum(each["shares"]) == pytest.approx(1, abs=1e-6)
            if entry["state"] == "single":
                assert [each["expression"] for each in entry["behaviours"]] == ["true"]
                assert entry["borders_seconds"] == [] and entry["behaviours"][0]["formula"] == [[]]
            for place, each in enumerate(entry["behaviours"]):
                assert each["paths"] == sum(path["behaviour"] == place for path in entry["paths"])
            assert entry["state"] != "explaining" or entry["behaviours"] == []
    assert {"candidate", "timing", "single", "explaining", "explained", "refused"} <= seen


def test_expressions_select_their_paths(states: list[ControllerState]) -> None:
    """Formula, text and the paths assigned to a behaviour agree; incomplete paths belong to none."""
    z = next(each for each in specification(states[-1])["functions"] if each["function"] == "z")
    assert len(z["behaviours"]) == 2
    for path in z["paths"]:
        edges = set(zip(path["frames"], path["frames"][1:], strict=False))
        fulfilled = [
            place for place, each in enumerate(z["behaviours"]) if evaluate(from_records(each["formula"]), edges)
        ]
        if path["complete"]:
            assert fulfilled == [path["behaviour"]]
            assert 0.5 < path["certainty"] <= 1
        else:
            assert path["behaviour"] is path["certainty"] is None
    assert sum(not path["complete"] for path in z["paths"]) == 1
    for each in z["behaviours"]:
        assert render(parse(each["expression"])) == each["expression"]
        assert parse(each["expression"]) == from_records(each["formula"])
    assert all(path["frames"][-1] == "z" for path in z["paths"])


def test_durations_are_stated_without_the_probes_cost(states: list[ControllerState]) -> None:
    """A border is a bucket's edge less the bias of the probes, with the width of a bucket as its uncertainty."""
    z = next(each for each in specification(states[-1])["functions"] if each["function"] == "z")
    edges = BUCKET_EDGES
    (border,) = z["borders"]
    at = border["seconds"] * 1e9 + PRICES.bias_ns
    assert min(abs(edges - at)) < 1e-3
    assert border["uncertainty_seconds"] * 1e9 == pytest.approx(at / 32, rel=0.5)
    assert border["evidence"]["found"] >= 5
    assert z["borders_seconds"] == [border["seconds"]]


def test_each_unfinished_function_says_what_it_needs(states: list[ControllerState]) -> None:
    """State, reason and remedy can be read at every moment for everything that is not finished."""
    for state in states[60::10]:
        for entry in specification(state)["functions"]:
            if entry["state"] in ("single", "explained"):
                assert entry["reason"] is None or entry["reason"]["code"] == "violated"
            else:
                assert entry["reason"] is not None and entry["reason"]["text"]
    last = {each["function"]: each for each in specification(states[-1])["functions"]}
    assert last["cold"]["reason"]["code"] == "cold"
    assert last["never"]["reason"]["code"] == "unwinder"
    assert last["slow"]["needed"].endswith("at this rate")


def test_the_text_is_canonical(states: list[ControllerState]) -> None:
    """Floats have 6 significant digits, the text ends in one newline, and detail only adds histograms."""
    document = specification(states[-1])
    text = json_text(document)
    assert text.endswith("}\n") and "NaN" not in text and "Infinity" not in text
    assert json_text(json.loads(text)) == text
    thirds = json.loads(json_text({"classes": [{"share": 1 / 7}] * 7, "shares": [1 / 7] * 7}))
    assert sum(thirds["shares"]) == sum(each["share"] for each in thirds["classes"]) == pytest.approx(1, abs=1e-7)
    assert json_text({"x": 1 / 3, "y": [2.0e-9 / 3]}) == '{\n "x": 0.333333,\n "y": [\n  6.66667e-10\n ]\n}\n'
    detailed = specification(states[-1], detail=True)
    for plain, more in zip(document["functions"], detailed["functions"], strict=True):
        histogram = more.pop("histogram")
        assert sum(calls for _, calls in histogram) == plain["timed"]
        assert more == plain


def test_what_is_kept_from_the_last_document_is_what_would_be_computed_anew(states: list[ControllerState]) -> None:
    """Statements follow from windows; calls, shares and prices from the present state."""
    for state in states[:: max(1, len(states) // 40)]:
        for detail in (False, True):
            kept = specification(state, detail=detail)
            functions.keep(set())
            assert kept == specification(state, detail=detail)
    half, last = (
        [each["calls"] for each in specification(state)["functions"]]
        for state in (states[len(states) // 2], states[-1])
    )
    assert half != last


def test_what_is_out_of_date_is_not_kept(states: list[ControllerState]) -> None:
    """A document without details, made once, would else hold the windows of its time for ever."""
    functions.keep(set())
    specification(states[len(states) // 2])
    specification(states[-1], detail=True)
    old = {key for key, _ in functions._known if (key, False) in functions._known}
    now = states[-1].functions
    assert all(now[key].history is states[len(states) // 2].functions[key].history for key in old)
    assert len(old) < len(now)


def test_of_functions_that_are_gone_nothing_is_kept(states: list[ControllerState]) -> None:
    """They hold windows."""
    specification(states[-1])
    functions.keep({next(iter(states[-1].functions))})
    assert len({key for key, _ in functions._known}) == 1


def test_it_says_when_the_windows_were(states: list[ControllerState]) -> None:
    """Those that are retained, and the newest ones that ``observed`` is of, of a function and of its behaviours."""
    document = specification(states[-1])
    collection = document["collection"]
    checked = 0
    for entry in document["functions"]:
        for part in (entry, *entry["behaviours"]):
            if part.get("observed"):
                newest, held = part["observed_span"], entry["windows_span"]
                assert collection["began"] <= held["start"] <= newest["start"] < newest["end"] <= held["end"]
                assert held["end"] <= collection["at"]
                checked += 1
    assert checked > 2
    never = next(each for each in document["functions"] if each["function"] == "never")
    assert never["windows_span"] is None
