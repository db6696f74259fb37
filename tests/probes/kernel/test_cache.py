"""The cache's folder does not grow with every update and boot."""

from __future__ import annotations

import os
from pathlib import Path

from specmine.probes.kernel.cache import KEPT, prepare, prune


def test_the_newest_of_each_kind_stay_and_nothing_else_is_touched(tmp_path: Path) -> None:
    """What is old goes; rows, which have a bound of their own, and strangers' files do not."""
    for number in range(KEPT + 3):
        for name in (f"{number:032x}.json", f"prices-boot-session-{number}.json", f"facts-{number}.json"):
            (tmp_path / name).write_text("{}")
            os.utime(tmp_path / name, (number, number))
    (tmp_path / "rows").mkdir()
    prune(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    gone = {f"{number:032x}.json" for number in range(3)} | {f"prices-boot-session-{n}.json" for n in range(3)}
    assert not gone & left
    assert len(left) == 2 * KEPT + (KEPT + 3) + 1


def test_a_folder_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    """A cache is a convenience."""
    prune(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path: Path) -> None:
    """Who may not write there works without one; else the folder is made."""
    (tmp_path / "file").write_text("")
    assert not prepare(tmp_path / "file" / "below")
    assert not prepare(tmp_path / "file")
    assert prepare(tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder").is_dir()
