"""The environment that a journal and the host's facts give."""

from __future__ import annotations

from dataclasses import replace

from specmine.experiments.host.environment import environment_of
from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import document
from specmine.experiments.results.journal import Journal
from specmine.experiments.types import SECOND, Finding
from tests.support.simulated_host import HOST


def test_the_vector_leaves_out_what_no_longer_holds() -> None:
    """Values of this boot are in it, those of another are unknown, never stale."""
    journal = Journal()
    for name, value in (("timeslice", 0.004), ("cores", 2.0)):
        host = HOST if name == "timeslice" else replace(HOST, boot_id="other")
        finding = Finding(value=value)
        journal.add(document(EXPERIMENTS[name], finding, host, utc_ns=0, window_ns=(0, SECOND), cpu_ns=1))
    found = environment_of(journal.entries, HOST)
    assert (found.slice_seconds, found.cores) == (0.004, None)
    assert found.document()["schema"] == "specmine.environment/1"
    assert (found.kernel, found.cpus, found.hertz) == ("6.18", 2, 250)


def test_a_property_comes_from_the_value_or_the_evidence_of_its_experiment() -> None:
    """The noise experiment gives the share lost, with its interval, and the cost of a tick from its evidence."""
    journal = Journal()
    finding = Finding(value=0.002, interval=(0.001, 0.003), evidence={"lost_a_tick_seconds": 7e-6})
    journal.add(document(EXPERIMENTS["noise"], finding, HOST, utc_ns=0, window_ns=(0, SECOND), cpu_ns=1))
    environment = environment_of(journal.entries, HOST)
    assert (environment.noise_ratio, environment.tick_cost_seconds) == (0.002, 7e-6)
    assert environment.properties["noise_ratio"].interval == (0.001, 0.003)
    assert environment.properties["tick_cost_seconds"].valid
