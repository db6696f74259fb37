"""Which files unwatched processes execute, as far as was seen."""

from __future__ import annotations

import pytest

from specmine.probes.process import bystanders as subject
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.mappings import FileId


def test_what_is_shared_follows_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is shared from the look at the process that executes it until that is chosen, or looked at again."""
    maps: dict[int, frozenset[FileId]] = {1: frozenset({(8, 1)}), 2: frozenset({(8, 1), (8, 2)})}
    monkeypatch.setattr(subject, "executed_files", lambda pid: maps[pid])
    seen = Bystanders()

    def shared() -> list[bool]:
        return [seen.share((8, inode)) for inode in (1, 2, 3)]

    assert shared() == [False, False, False]
    seen.look_at(1)
    assert shared() == [True, False, False]
    seen.look_at(2)
    assert shared() == [True, True, False]
    seen.chosen(2)
    assert shared() == [True, False, False]
    maps[1] = frozenset({(8, 3)})
    seen.look_at(1)
    assert shared() == [False, False, True]
    seen.chosen(1)
    seen.hit((8, 2))
    assert shared() == [False, True, False], "a hit is not forgotten"
