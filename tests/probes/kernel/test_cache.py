"""The cache's folder does not grow with every update and boot."""

from __future__ import annotations

import os
from pathlib import Path

from specmine.probes.kernel.cache import KEPT, is_ours, prepare, prune, read_json, write_json


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


def test_a_folder_that_others_may_write_is_no_cache(tmp_path: Path) -> None:
    """What lies there goes into the kernel: links, other owners and writable folders are refused."""
    folder, link = tmp_path / "cache", tmp_path / "link"
    assert prepare(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    link.symlink_to(folder)
    assert not is_ours(link)
    folder.chmod(0o770)
    assert not prepare(folder)
    folder.chmod(0o755)
    assert prepare(folder)
    if os.geteuid() == 0:
        os.chown(folder, 65534, -1)
        assert not prepare(folder)


def test_what_is_damaged_is_as_good_as_missing(tmp_path: Path) -> None:
    """A file is written as a whole, and read as a JSON object or not at all."""
    path = tmp_path / "loaded-x.json"
    assert read_json(path) == {}
    write_json(path, {"seconds": 1.5})
    assert read_json(path) == {"seconds": 1.5}
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    for text in ('{"seconds": ', "[1]", "\xff"):
        path.write_bytes(text.encode("latin-1"))
        assert read_json(path) == {}
    write_json(tmp_path / "nowhere" / "file.json", {})
