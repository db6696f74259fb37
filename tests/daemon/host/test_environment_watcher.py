"""What is known of the host reaches every observation and specification, and windows of experiments are marked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.config.tree import StoreSettings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Mark, Surveyed
from specmine.daemon.documents.json_text import json_text
from specmine.daemon.documents.specification import specification
from specmine.daemon.host.environment_watcher import EnvironmentWatcher
from specmine.daemon.loop import run
from specmine.daemon.persistence.recorder import StoreRecorder
from specmine.daemon.replay import recorder, replay
from specmine.daemon.worker.process import InlineWorker
from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import document
from specmine.experiments.results.journal import Journal, write_journal
from specmine.experiments.types import Finding, Host
from specmine.mining.assertions.checks import Check
from specmine.model.histogram import Histogram
from specmine.model.host.environment import Environment
from specmine.store import ExperimentWindow, environment_at, open_store
from tests.support.planted import unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource
from tests.support.violations import standing, violation

HOST = Host(cpus=(0, 1), boot_id="boot", kernel="6.18", cpu_model="A", hertz=250)
SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)
VECTOR = Environment(kernel="6.18", cpus=2, slice_seconds=0.004).document()


def journal_with(path: Path, value: float, start_ns: int, *, host: Host = HOST) -> None:
    """Write a journal in which a timeslice was measured for a second."""
    journal = Journal()
    result = document(
        EXPERIMENTS["timeslice"],
        Finding(value=value, interval=(value, value)),
        host,
        utc_ns=0,
        window_ns=(start_ns, start_ns + SECOND),
        cpu_ns=SECOND,
        cpus=(1,),
    )
    journal.add(result)
    write_journal(path, journal)


def test_the_journal_becomes_an_event_when_it_changes(tmp_path: Path) -> None:
    """The first look tells of the host; later ones only when an experiment was run, by whomever."""
    path = tmp_path / "experiments.json"
    survey = EnvironmentWatcher(path, lambda: HOST)
    first = survey.turn(SECOND)
    assert first is not None
    assert (first.environment["kernel"], first.environment["slice_seconds"], first.marks) == ("6.18", None, ())
    assert first.environment["properties"]["slice_seconds"]["reason"] == "never-measured"
    assert survey.turn(60 * SECOND) is None
    journal_with(path, 0.004, 61 * SECOND)
    assert survey.turn(61 * SECOND) is None, "it looks every two seconds only"
    later = survey.turn(63 * SECOND)
    assert later is not None
    assert later.environment["slice_seconds"] == 0.004
    assert later.environment["properties"]["slice_seconds"]["valid"]
    assert later.marks == (Mark(name="timeslice", start_ns=61 * SECOND, end_ns=62 * SECOND, cpus=(1,)),)


def test_windows_of_another_boot_are_not_marked(tmp_path: Path) -> None:
    """Times of another boot mean nothing on this one's clock, and its values hold no more."""
    path = tmp_path / "experiments.json"
    journal_with(path, 0.004, 0, host=replace(HOST, boot_id="before"))
    found = EnvironmentWatcher(path, lambda: HOST).turn(0)
    assert found is not None
    assert found.marks == ()
    assert found.environment["slice_seconds"] is None
    assert found.environment["properties"]["slice_seconds"]["reason"] == "stale"


def test_a_store_knows_the_environment_of_every_observation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observations have what was known when they ended, and those in whose window load ran are marked."""
    clock = FakeClock()
    # by the real clock simulated observations are years old, and the store merges them
    monkeypatch.setattr("specmine.daemon.persistence.recorder.utc_ns", lambda: 1_700_000_000 * SECOND)
    began_ns = clock.now_ns()
    marks = (Mark(name="noise", start_ns=began_ns + 4 * SECOND, end_ns=began_ns + 5 * SECOND, cpus=(1,)),)
    waiting = [(1, VECTOR, ()), (8, VECTOR | {"slice_seconds": 0.003}, marks)]

    def inbox(now_ns: int) -> Iterable[Surveyed]:
        if waiting and now_ns >= began_ns + waiting[0][0] * SECOND:
            _, environment, seen = waiting.pop(0)
            yield Surveyed(now_ns=now_ns, environment=environment, marks=seen)

    stored = StoreRecorder(tmp_path / "s.db", StoreSettings(), pytest.fail)
    source = SimulatedSource((unimodal(rate=400.0),), clock)
    state = run(source, SHORT, clock, InlineWorker(), listeners=[stored.listen], inbox=inbox, deadline_ns=15 * SECOND)
    assert stored.close()
    with open_store(tmp_path / "s.db", read_only=True) as store:
        contents = store.load(newest=100)
    assert len(contents.observations) >= 6
    (host,) = contents.hosts
    slices = set()
    for window in contents.observations:
        environment = environment_at(contents.environments, host.boot_id, window.end_ns + host.utc_offset_ns)
        assert environment is not None
        late = window.end_ns >= began_ns + 9 * SECOND
        assert not late or environment["slice_seconds"] == 0.003
        slices.add(environment["slice_seconds"])
    assert slices == {0.003, 0.004}
    assert contents.experiment_windows == (
        ExperimentWindow(
            boot_id=host.boot_id, start_ns=marks[0].start_ns, end_ns=marks[0].end_ns, name="noise", cpus=(1,)
        ),
    )
    stated = specification(state)
    assert stated["environment"]["slice_seconds"] == 0.003
    assert [each["name"] for each in stated["collection"]["experiments"]] == ["noise"]


def test_a_replay_states_the_same_environment(tmp_path: Path) -> None:
    """The vector is part of a recording: the replayed specification is equal byte for byte."""
    clock = FakeClock()
    recording, listen = recorder(tmp_path / "r", "0")
    told = [Surveyed(now_ns=clock.now_ns(), environment=VECTOR, marks=(Mark(name="noise", start_ns=1, end_ns=2),))]
    with recording:
        state = run(
            SimulatedSource((unimodal(),), clock),
            SHORT,
            clock,
            InlineWorker(),
            listeners=[listen],
            inbox=lambda now_ns: [told.pop()] if told else [],
            deadline_ns=5 * SECOND,
        )
    assert json_text(replay(tmp_path / "r")) == json_text(specification(state))
    assert json.loads(json_text(specification(state)))["environment"]["slice_seconds"] == 0.004


def test_a_violation_at_one_slice_names_the_host() -> None:
    """A quarter of the calls one slice longer: the violated function names its cause, if the vector is known."""
    clock = FakeClock()
    source = SimulatedSource((unimodal(rate=400.0),), clock)
    states = run(source, SHORT, clock, InlineWorker(), deadline_ns=15 * SECOND)
    key, each = next((key, each) for key, each in states.functions.items() if each.history.longest)
    rng = np.random.default_rng(1)
    usual = rng.normal(1e6, 1e4, 4000)
    newest = np.concatenate([rng.normal(1e6, 1e4, 750), rng.normal(5e6, 1e4, 250)])
    check = Check(subject="true", verdict="violated", calls=1000, shares=(1.0,), p_value=0.0)
    last = replace(each.history.longest[-1], histogram=Histogram.from_durations(newest))
    histogram = Histogram.from_durations(np.concatenate([usual, newest]))
    changed = replace(
        each,
        history=replace(each.history, histogram=histogram, timing=(last,), paths=()),
        verification=replace(each.verification, checks=(check,)),
        violations=standing(violation(key)),
    )
    state = replace(states, functions={key: changed})
    (entry,) = specification(state)["functions"]
    assert entry["verdict"] == "violated"
    assert entry["host_causes"] == []
    state, _ = decide(state, Surveyed(now_ns=state.now_ns, environment=VECTOR))
    (entry,) = specification(state)["functions"]
    (cause,) = entry["host_causes"]
    assert (cause["code"], cause["times"]) == ("slices", 1)
    assert cause["gained_share"] == pytest.approx(0.25, abs=0.01)
    assert cause["excess_seconds"] == pytest.approx(0.004, rel=0.04)
