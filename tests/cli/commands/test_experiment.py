"""``specmine experiment``: list, show, predict, and what run refuses; run itself is tested live."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specmine.cli.text.experiments import quantity
from specmine.experiments.host.facts import read_host
from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import document
from specmine.experiments.results.journal import Journal, write_journal
from specmine.experiments.types import SECOND, Finding
from specmine.model.buckets import BUCKET_EDGES

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a journal with one value of this host and one of another boot."""
    journal, host = Journal(), read_host()
    finding = Finding(value=0.004, interval=(0.0039, 0.0041), ground_truth=0.004, samples=60)
    for name, boot in (("timeslice", host.boot_id), ("noise", "another boot")):
        result = document(
            EXPERIMENTS[name], finding, host, utc_ns=1_700_000_000 * SECOND, window_ns=(0, SECOND), cpu_ns=SECOND
        )
        result["host"]["boot_id"] = boot
        journal.add(result)
    path = tmp_path / "experiments.json"
    write_journal(path, journal)
    return path


def test_list_names_all(outcome: Outcome) -> None:
    """Both formats list every experiment with its parameters."""
    code, out, err = outcome("experiment", "list", "--format", "json")
    listed = json.loads(out)
    assert (code, err, listed["schema"]) == (0, "", "specmine.experiment-list/1")
    assert [each["name"] for each in listed["experiments"]] == list(EXPERIMENTS)
    code, out, _ = outcome("experiment", "list")
    assert code == 0
    assert all(re.search(rf"^{name} ", out, re.MULTILINE) for name in EXPERIMENTS)
    assert max(map(len, out.splitlines())) <= 80


def test_show_tells_age_and_what_no_longer_holds(outcome: Outcome, state: Path) -> None:
    """A value of this boot is valid with its age; one of another boot is stale, never fresh."""
    code, out, _ = outcome("experiment", "show", "--state", str(state), "--format", "json")
    results = {each["name"]: each for each in json.loads(out)["results"]}
    assert code == 0
    assert results["timeslice"]["valid"]
    assert results["timeslice"]["age_seconds"] > 1e6
    assert (results["noise"]["valid"], results["noise"]["reason"]["code"]) == (False, "stale")
    code, out, _ = outcome("experiment", "show", "--state", str(state))
    assert re.search(r"^timeslice +4 ms", out, re.MULTILINE)
    code, out, _ = outcome("experiment", "show", "noise", "--state", str(state))
    assert code == 3
    assert "another boot" in out


def test_show_without_anything_is_no_data(outcome: Outcome, tmp_path: Path) -> None:
    """Exit code 3 and one line that says what to do."""
    code, out, err = outcome("experiment", "show", "--state", str(tmp_path / "none.json"))
    assert (code, out) == (3, "")
    assert "specmine experiment run" in err
    assert err.count("\n") == 1
    code, out, _ = outcome("experiment", "show", "--state", str(tmp_path / "none.json"), "--format", "json")
    assert (code, json.loads(out)) == (3, {"schema": "specmine.experiment/1", "results": []})


def test_show_of_one_name_is_one_result(outcome: Outcome, state: Path) -> None:
    """As ``run`` prints it; several names give a list, and what has not run is in it without a value."""

    def shown(*names: str) -> tuple[int, Any]:
        code, out, _ = outcome("experiment", "show", *names, "--state", str(state), "--format", "json")
        return code, json.loads(out)

    code, one = shown("timeslice")
    assert (code, one["schema"], one["name"], one["value"]) == (0, "specmine.experiment/1", "timeslice", 0.004)
    code, one = shown("cores")
    assert (code, one["name"], one["value"], one["valid"], one["samples"]) == (3, "cores", None, False, 0)
    assert (one["interval"], one["reason"]["code"], one["age_seconds"]) == (None, "never-measured", None)
    code, several = shown("timeslice", "cores")
    assert (code, [each["name"] for each in several["results"]]) == (3, ["cores", "timeslice"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nonsense"), "no experiment 'nonsense'"),
        (("show", "nonsense"), "no experiment 'nonsense'"),
        (("run", "timeslice", "--set", "slize=1ms"), "no parameter 'slize=1ms'"),
        (("run", "timeslice", "--set", "slice"), "KEY=VALUE"),
        (("run", "timeslice", "--set", "slice=fast"), "slice:"),
        (("run", "noise", "-p", "4194304"), "no process"),
        (("run", "virtualization-constant", "--set", "reference=/nowhere"), "no result of virtualization-constant"),
        (("run", "virtualization-load", "--set", "disk=/nowhere"), "no folder"),
        (("run",), "missing argument"),
        (("predict", "--rivals", "1"), "FILE or --demand"),
    ],
)
def test_wrong_use_is_one_line(outcome: Outcome, arguments: tuple[str, ...], message: str) -> None:
    """Every mistake is refused before anything runs, with exit code 2."""
    code, out, err = outcome("experiment", *arguments)
    assert (code, out) == (2, "")
    assert message.lower() in err.lower()
    assert err.count("\n") == 1


def test_predict_uses_the_derived_slice(outcome: Outcome, state: Path, tmp_path: Path) -> None:
    """A 1 ms call beside one pinned rival: 25 % at 5 ms with the slice of the journal."""
    arguments = ("experiment", "predict", "--demand", "1ms", "--rivals", "1", "--cores", "1")
    code, out, _ = outcome(*arguments, "--state", str(state), "--format", "json")
    found = json.loads(out)
    assert (code, found["schema"]) == (0, "specmine.prediction/1")
    assert found["beside"]["slice_seconds"] == 0.004
    assert found["predicted"]["mean_seconds"] == pytest.approx(0.002)
    assert found["predicted"]["p95_seconds"] == pytest.approx(0.005)
    assert found["delayed_share"] == pytest.approx(0.25)
    code, _, err = outcome(*arguments, "--state", str(tmp_path / "none.json"))
    assert code == 3
    assert "--slice" in err


def test_predict_reads_durations_and_documents(outcome: Outcome, tmp_path: Path) -> None:
    """CSV of durations and the JSON of ``show`` give the same prediction."""
    csv = tmp_path / "durations.csv"
    csv.write_text("function,duration_ns\n" + "z,1000000\n" * 50 + "y,7\n")
    bucket = int((BUCKET_EDGES <= 1_000_000).sum()) - 1
    shown = tmp_path / "show.json"
    shown.write_text(json.dumps({"functions": [{"function": "z", "histogram": [[bucket, 50]]}]}))
    means = []
    for path in (csv, shown):
        code, out, _ = outcome(
            *("experiment", "predict", str(path), "--function", "z", "--rivals", "1", "--cores", "1"),
            *("--slice", "4ms", "--format", "json"),
        )
        assert code == 0
        means.append(json.loads(out)["predicted"]["mean_seconds"])
    assert means[0] == pytest.approx(0.002)
    assert means[1] == pytest.approx(means[0], rel=0.04)
    # of calls that were measured beside others, time on CPU counts
    late = int((BUCKET_EDGES <= 5_000_000).sum()) - 1
    entry = {"function": "z", "histogram": [[bucket, 38], [late, 12]], "on_cpu": {"histogram": [[bucket, 50]]}}
    shown.write_text(json.dumps(entry))
    arguments = ("experiment", "predict", str(shown), "--rivals", "1", "--cores", "1", "--slice", "4ms")
    code, out, _ = outcome(*arguments, "--format", "json")
    assert (code, json.loads(out)["predicted"]["mean_seconds"]) == (0, pytest.approx(means[1]))
    code, _, err = outcome("experiment", "predict", str(csv), "--function", "x", "--rivals", "1", "--slice", "4ms")
    assert code == 2
    assert "no durations" in err


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\0", b'{"schema": "specmine.specification/1"}'])
def test_run_replaces_no_foreign_file(content: bytes, outcome: Outcome, tmp_path: Path) -> None:
    """A file that holds no results of experiments stays as it is."""
    path = tmp_path / "other"
    path.write_bytes(content)
    code, out, err = outcome("experiment", "run", "additional-load", "--set", "seconds=10ms", "--state", path)
    assert (code, out, path.read_bytes()) == (2, "", content)
    assert "holds no results of experiments; name another file" in err


def test_predict_says_what_is_wrong_with_its_file(outcome: Outcome, tmp_path: Path) -> None:
    """A file that is not there, and one that is no text."""
    (tmp_path / "elf").write_bytes(b"\x7fELF\x02\x01\x01\0\r\x00\n")
    for path, words in (("/nonexistent", "cannot read /nonexistent: No such file"), (tmp_path / "elf", "binary file")):
        code, out, err = outcome("experiment", "predict", path, "--rivals", "1", "--slice", "4ms")
        assert (code, out) == (2, "") and words in err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_run_looks_and_answers_in_both_formats(outcome: Outcome, tmp_path: Path) -> None:
    """An experiment that only looks runs on any host; the journal has it then."""
    state = tmp_path / "state.json"
    arguments = (
        "experiment",
        "run",
        "additional-load",
        "--set",
        "seconds=400ms",
        "--wait",
        "60",
        "--state",
        str(state),
    )
    code, out, _ = outcome(*arguments, "--format", "json")
    result = json.loads(out)
    assert (code, result["name"], result["valid"]) == (0, "additional-load", True)
    assert 0 <= result["value"] <= 1
    code, out, _ = outcome(*arguments)
    assert out.startswith("additional-load: ")
    code, out, _ = outcome("experiment", "show", "--state", str(state))
    assert code == 0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "-"),
        ("none", "", "none"),
        (0.00402, "s", "4.02 ms"),
        (7.6e-5, "s", "76 us"),
        (1.98, "cores", "1.98 cores"),
    ],
)
def test_values_are_written_with_their_unit(value: object, unit: str, text: str) -> None:
    """Times get a scale, other values their unit, none a dash."""
    assert quantity(value, unit) == text
