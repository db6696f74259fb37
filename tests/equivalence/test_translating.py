"""Old names become new ones everywhere, and nothing else becomes different."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.equivalence import renames
from tests.equivalence.comparing import difference
from tests.equivalence.run import DATA, Workshop, steps, translate_recording, workshop
from tests.equivalence.translating import reworded, translated

NEW_FIELDS = {"calls": "ended_calls", "function": "function_key", "window_calls": "calls_of_a_window"}
OLD_RECORDING = DATA / "single.jsonl.gz"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording under the names of today."""
    path = tmp_path_factory.mktemp("today") / "single.jsonl.gz"
    translate_recording(OLD_RECORDING, path)
    return path


def renamed_since(recording: Path, to: Path) -> dict[str, str]:
    """Write a recording as if some of its fields had had other names, and a digest over these; return their table."""
    before = {new: old for new, old in NEW_FIELDS.items()}
    with gzip.open(recording, "rt", encoding="utf-8") as file, gzip.open(to, "wt", encoding="utf-8") as out:
        for line in file:
            old: dict[str, Any] = translated(json.loads(line), before)
            for action in old.get("actions", ()):
                if action["action"] == "mine":
                    action["inputs"] = "0" * 32
            out.write(json.dumps(old) + "\n")
    return {old: new for new, old in before.items()}


def test_a_recording_of_other_names_leads_to_the_same(recording: Path, tmp_path: Path) -> None:
    """Fields of events and actions are renamed, digests computed again, and replay finds no difference."""
    keys = renamed_since(recording, tmp_path / "old.jsonl.gz")
    translate_recording(tmp_path / "old.jsonl.gz", tmp_path / "new.jsonl.gz", keys)
    with workshop() as shop:
        found = [shop.command("replay", str(path)) for path in (recording, tmp_path / "new.jsonl.gz")]
    assert found[0] == found[1]
    assert "smooth" in found[0].text


def test_another_decision_still_shows_under_new_names(recording: Path, tmp_path: Path) -> None:
    """Only digests are computed again: an action that differs stops the replay."""
    keys = renamed_since(recording, tmp_path / "old.jsonl.gz")
    lines = gzip.decompress((tmp_path / "old.jsonl.gz").read_bytes()).decode()
    (tmp_path / "old.jsonl.gz").write_bytes(gzip.compress(lines.replace('"hertz": 49', '"hertz": 50', 1).encode()))
    translate_recording(tmp_path / "old.jsonl.gz", tmp_path / "new.jsonl.gz", keys)
    with workshop() as shop:
        found = shop.command("replay", str(tmp_path / "new.jsonl.gz"))
    assert (found.code, found.error.startswith("specmine: event 0: action 1 is")) == (2, True)


def test_every_step_of_a_recording_is_taken(recording: Path) -> None:
    """Steps are numbered as they were, to the last."""
    lines = gzip.decompress(recording.read_bytes()).decode().splitlines()
    assert [step.number for step in steps(recording)] == [json.loads(line)["number"] for line in lines[1:]]


def test_keys_below_one_parent_alone_are_renamed() -> None:
    """The longer entry wins, lists do not count, and two keys never fall together."""
    table = {"budget.inside": "overhead", "inside": "within"}
    old = {"budget": [{"inside": 1}], "inside": {"inside": 2}}
    assert translated(old, table) == {"budget": [{"overhead": 1}], "within": {"within": 2}}
    with pytest.raises(ValueError, match="two keys under budget"):
        translated({"budget": {"inside": 1, "overhead": 2}}, table)


def test_values_and_sentences_change_but_names_of_functions_do_not() -> None:
    """A table of values belongs to a key; words change in texts with a space alone."""
    old = {"state": "told", "function": "left", "text": "what is left of it"}
    new = translated(old, {}, {"state": {"told": "reported"}}, {"left": "provisional"})
    assert new == {"state": "reported", "function": "left", "text": "what is provisional of it"}


def test_phrases_are_found_across_the_ends_of_lines() -> None:
    """The longest phrase wins; a part of a word is none."""
    words = {"comes off": "is detached", "off": "away"}
    assert reworded("it comes\n  off; off, offer", words) == "it is detached; away, offer"


@pytest.mark.parametrize(
    ("name", "golden", "now", "shows"),
    [
        ("x.json", '{"a": {"inside": 1}, "b": 2}\n--- exit code 0\n', '{"b": 2, "a": {"overhead": 1}}', "exit code"),
        ("x.json", '{"inside": 1}\n', '{"overhead": 1.0}\n', '+ "overhead": 1.0'),
        ("x.json", '{"inside": 1}\n', '{"overhead": 1}\n', ""),
        ("x.txt", "inside the program\nhere\n", "overhead of the\nprogram here\n", ""),
        ("x.txt", "other\nhere\n", "other here\n", "+other here"),
        ("x.txt", "# HELP m_inside_total inside the program\nm_inside_total 1.0\n",
         "# HELP m_overhead_total overhead of the program\nm_overhead_total 1.0\n", ""),
        ("x.txt", "# HELP m_inside_total inside the program\nm_inside_total 1.0\n",
         "# HELP m_overhead_total overhead of the program\nm_overhead_total 2.0\n", "+m_overhead_total 2.0"),
    ],
)  # fmt: skip
def test_outputs_are_equal_but_for_names(
    name: str, golden: str, now: str, shows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of output is compared under its tables, numbers strictly."""
    monkeypatch.setattr(renames, "JSON_KEYS", {"inside": "overhead"})
    monkeypatch.setattr(renames, "METRICS", {"m_inside": "m_overhead"})
    monkeypatch.setattr(renames, "WORDS", {"inside the program": "overhead of the program"})
    found = difference(name, golden, now)
    assert (shows in found) if shows else found == ""


def test_configuration_is_translated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A configuration file of before has the keys of today."""
    monkeypatch.setattr(renames, "CONFIGURATION_KEYS", {"budget.inside": "overhead", "finding": "sampling"})
    Workshop(tmp_path)
    text = (tmp_path / "settings.yaml").read_text()
    assert "overhead: 2%" in text
    assert "sampling:" in text
