"""The links that make the top-level folders one package; a folder without one is missing from the wheel."""

from __future__ import annotations

from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "specmine"


def test_every_code_folder_is_linked_and_nothing_else() -> None:
    """The links in src/specmine are the top-level folders that are packages."""
    folders = {p.parent.name for p in ROOT.glob("*/__init__.py")}
    links = {p.name for p in PACKAGE.iterdir() if p.is_symlink()}
    assert folders
    assert links == folders


def test_links_are_relative_and_lead_to_their_folder() -> None:
    """Each link is ../../NAME, so that a clone works wherever it lies."""
    for link in (p for p in PACKAGE.iterdir() if p.is_symlink()):
        assert str(link.readlink()) == f"../../{link.name}"
        assert link.resolve() == ROOT / link.name
