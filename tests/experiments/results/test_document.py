"""Results as the contract writes them, and the journal that never lets an old value look fresh."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import Document, document, skipped, stale_reason
from specmine.experiments.results.journal import MOST_WINDOWS, Journal, read_journal, write_journal
from specmine.experiments.types import SECOND, Check, Finding
from specmine.model.function import Reason
from tests.support.simulated_host import HOST

GOOD = Finding(
    value=0.004, interval=(0.0039, 0.0041), ground_truth=0.004, samples=60, evidence={"x": (1, float("nan"))}
)


def _document(finding: Finding, *, at_s: int = 1000, cpu_ns: int = SECOND) -> Document:
    return document(
        EXPERIMENTS["timeslice"],
        finding,
        HOST,
        utc_ns=at_s * SECOND,
        window_ns=(at_s * SECOND, (at_s + 2) * SECOND),
        cpu_ns=cpu_ns,
        cpus=(1,),
    )


def test_a_result_has_the_fields_of_the_contract() -> None:
    """One JSON object with name, value, interval, validity, reason, ground truth and samples; no NaN."""
    result = json.loads(json.dumps(_document(GOOD), allow_nan=False))
    assert result["schema"] == "specmine.experiment/1"
    assert (result["name"], result["value"], result["interval"]) == ("timeslice", 0.004, [0.0039, 0.0041])
    assert (result["valid"], result["reason"], result["ground_truth"], result["samples"]) == (True, None, 0.004, 60)
    assert result["evidence"]["x"] == [1, None]


def test_a_failed_check_takes_the_value_out() -> None:
    """What was derived is shown as unsure evidence, never as the value."""
    result = _document(replace(GOOD, checks=(Check(name="lost", value=0.73, low=0.47, high=0.53),)))
    assert (result["value"], result["interval"], result["valid"]) == (None, None, False)
    assert result["reason"]["code"] == "check"
    assert "lost is 0.73, not within 0.47 to 0.53" in result["reason"]["text"]
    assert result["evidence"]["unsure_value"] == 0.004


def test_a_skip_has_no_value_and_a_settled_none_is_valid() -> None:
    """Not measured and nothing there are different answers."""
    reason = Reason(code="busy-host", text="CPU 1 is 94% busy", remedy="try again later")
    result = skipped(EXPERIMENTS["timeslice"], reason, HOST, utc_ns=0, now_ns=0)
    assert (result["value"], result["valid"], result["cpu_seconds"]) == (None, False, 0.0)
    settled = _document(Finding(reason=Reason(code="no-quota", text="not limited"), conclusive=True))
    assert (settled["value"], settled["valid"], settled["reason"]["code"]) == (None, True, "no-quota")


def test_a_skip_leaves_the_old_value_with_its_old_time() -> None:
    """After a run that gave nothing the journal still holds the last valid result, unchanged."""
    journal = Journal()
    journal.add(_document(GOOD, at_s=1000))
    reason = Reason(code="busy-host", text="busy")
    journal.add(skipped(EXPERIMENTS["timeslice"], reason, HOST, utc_ns=9000 * SECOND, now_ns=0))
    entry = journal.entries["timeslice"]
    assert entry["valid"]["time"] == "1970-01-01T00:16:40.000Z"
    assert entry["last"]["time"] == "1970-01-01T02:30:00.000Z"
    assert entry["skipped"] == {"busy-host": 1}
    assert (entry["runs"], entry["cpu_seconds"]) == (1, 1.0)
    assert journal.value("timeslice") == 0.004


def test_a_value_of_another_host_is_stale() -> None:
    """A new boot, kernel, set of CPUs or limit ends a value's validity, and says which."""
    result = _document(GOOD)
    assert stale_reason(result, HOST) == ""
    assert "boot" in stale_reason(result, replace(HOST, boot_id="other"))
    assert "CPU limit" in stale_reason(result, replace(HOST, quota=(1, 2)))
    assert "CPUs allowed" in stale_reason(result, replace(HOST, cpus=(0,)))


def test_a_journal_survives_the_disk_and_damage_is_an_empty_one(tmp_path: Path) -> None:
    """What was written is read; nonsense, another schema or nothing give an empty journal."""
    path = tmp_path / "state" / "experiments.json"
    journal = Journal(boot_id="boot", units={"x:integer": 5})
    journal.add(_document(GOOD))
    write_journal(path, journal)
    assert read_journal(path) == journal
    path.write_text('{"schema": ')
    assert read_journal(path) == Journal()
    path.write_text('{"schema": "other/1"}')
    assert read_journal(path) == Journal()
    assert list(path.parent.iterdir()) == [path]


def test_the_journal_stores_when_load_ran() -> None:
    """It has the newest windows with their CPUs and their boot, a bounded number of them."""
    journal = Journal()
    for number in range(MOST_WINDOWS + 5):
        journal.add(_document(GOOD, at_s=10 * number))
    assert len(journal.windows) == MOST_WINDOWS
    newest = journal.windows[-1]
    assert (newest["name"], newest["boot_id"]) == ("timeslice", "boot")
    assert newest["window_ns"][0] == 10 * (MOST_WINDOWS + 4) * SECOND
