"""The layout holds: one package of links, folders that can be read at a glance, tests where their subject is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "specmine"
MOST = 20
"""Files of code in a folder, beside its subfolders and ``__init__.py``."""
_CODE = (".py", ".c", ".h")


def _folders() -> list[Path]:
    return sorted(path.parent for path in ROOT.glob("*/__init__.py"))


def _files(*tops: Path) -> list[Path]:
    return [path for top in tops for path in top.rglob("*") if path.suffix in _CODE and path.is_file()]


def test_every_code_folder_is_linked_and_nothing_else() -> None:
    """The links in src/specmine are the top-level folders that are packages: one without is missing from the wheel."""
    folders = {path.name for path in _folders()}
    links = {path.name for path in PACKAGE.iterdir() if path.is_symlink()}
    assert folders
    assert links == folders


def test_links_are_relative_and_lead_to_their_folder() -> None:
    """Each link is ../../NAME, so that a clone works wherever it lies."""
    for link in (path for path in PACKAGE.iterdir() if path.is_symlink()):
        assert str(link.readlink()) == f"../../{link.name}"
        assert link.resolve() == ROOT / link.name


def test_no_folder_holds_more_files_than_a_reader_takes_in() -> None:
    """At most twenty files of code in a folder."""
    files = Counter(path.parent for path in _files(*_folders(), ROOT / "bench") if path.name != "__init__.py")
    assert files
    assert {str(folder): count for folder, count in files.items() if count > MOST} == {}


def test_a_test_is_named_after_what_it_tests() -> None:
    """tests/ROOM/test_x.py tests ROOM/x, or the whole of ROOM/x/; what needs a live kernel may end in _live."""
    names = {
        str(path.relative_to(ROOT).with_suffix("")).removesuffix(".bpf") for path in _files(*_folders(), ROOT / "bench")
    }
    names |= {str(path.parent) + "/" + path.parent.name for path in map(Path, names)}
    names |= {str(Path(name).parent) for name in names}
    rooms = [ROOT / "tests" / folder.name for folder in (*_folders(), ROOT / "bench")]
    astray = []
    for path in (path for room in rooms for path in room.rglob("test_*.py")):
        subject = path.relative_to(ROOT / "tests").with_name(path.stem.removeprefix("test_"))
        if not {str(subject), str(subject).removesuffix("_live")} & names:
            astray.append(str(path.relative_to(ROOT)))
    assert astray == []
