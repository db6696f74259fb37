"""Load patterns in YAML: read whole, refused by name, run on a modelled host."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from specmine.experiments.library.yaml_patterns import pattern_of, read_pattern
from specmine.experiments.types import MS
from specmine.model.errors import InputError
from tests.support.simulated_host import Model, context_for, perform

PATTERN = """
name: one-beside
summary: what a demand of 1 ms takes beside one rival, over what it takes alone
cpus: one
loads:
  - label: alone
    tasks:
      - {name: timed, does: [{integer: 1ms}], measures: times, leads: true, cpu: 0, seconds: 0.5}
  - label: beside
    tasks:
      - {name: timed, does: [{integer: 1ms}], measures: times, leads: true, cpu: 0, seconds: 1, iterations: 300}
      - {name: rival, copies: 2, cpu: 0, seconds: 2}
derive: {task: timed, load: beside, statistic: mean, relative_to: alone}
stop: {rounds: 2, at_least: 1000}
"""


def test_a_pattern_is_an_experiment(tmp_path: Path) -> None:
    """Copies, calibrated demands, repeated rounds, a ratio: the mean beside two rivals is three times as long."""
    path = tmp_path / "pattern.yaml"
    path.write_text(PATTERN)
    experiment = read_pattern(path)
    assert (experiment.name, experiment.unit, experiment.cpus, experiment.hours) == ("one-beside", "", "one", -1)
    context = context_for(experiment)
    assert experiment.demands(context) == (("integer", MS),)
    finding, runs = perform(experiment, Model(), context)
    assert finding.value == pytest.approx(3.0, rel=0.03)
    assert len(runs) == 4
    assert [task.name for task in runs[1].load.tasks] == ["timed", "rival0", "rival1"]
    assert all(task.cpu == context.cpus[0] for run in runs for task in run.load.tasks)


def test_it_stops_when_enough_is_known() -> None:
    """Rounds end early once the median is settled."""
    tree = yaml.safe_load(PATTERN) | {"stop": {"rounds": 9, "at_least": 50, "half_width": 0.1}, "limit": 50}
    tree["derive"] = {"task": "timed", "load": "alone", "statistic": "median"}
    finding, runs = perform(pattern_of(tree), Model(), context_for(pattern_of(tree)))
    assert len(runs) == 2
    assert finding.value == pytest.approx(1e-3)
    assert finding.interval is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "No Name"}, "is not a word"),
        ({"loads": []}, "a list of loads"),
        ({"cpus": "seven"}, "none of one, two, all"),
        ({"extra": 1}, "unknown key extra"),
        ({"derive": {"task": "nobody"}}, "has no task 'nobody'"),
        ({"derive": {"task": "timed", "statistic": "mode"}}, "none of median"),
        ({"derive": {"task": "timed", "load": "elsewhere"}}, "no load 'elsewhere'"),
        ({"loads": [{"tasks": [{"name": "t", "seconds": 1}]}]}, "no task leads"),
        ({"loads": [{"tasks": [{"name": "t", "leads": True, "policy": "rr"}]}]}, "none of other, batch, idle"),
        ({"loads": [{"tasks": [{"name": "t", "leads": True, "seconds": 1000}]}]}, "not between 0 and 30"),
        ({"loads": [{"tasks": [{"name": "t", "leads": True, "does": [{"integer": "much"}]}]}]}, "not an amount"),
        ({"loads": [{"tasks": [{"name": "t", "leads": True, "does": [{"fly": 1}]}]}]}, "unknown key fly"),
        ({"stop": {"rounds": 1000}}, "over 30 s"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    """What is wrong is refused in one line with the file and the place."""
    path = tmp_path / "pattern.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(PATTERN) | change))
    with pytest.raises(InputError, match=message) as caught:
        read_pattern(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_pattern_is_refused(tmp_path: Path) -> None:
    """No file, no YAML, no mapping: one line each."""
    for text in (None, "a: [", "- 1", "42"):
        path = tmp_path / "pattern.yaml"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        with pytest.raises(InputError):
            read_pattern(path)
