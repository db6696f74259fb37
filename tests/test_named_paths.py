"""Files that the documentation and the maps of the folders name are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FOLDERS = sorted(path.parent for pattern in ("*", "*/*", "*/*/*") for path in ROOT.glob(f"{pattern}/__init__.py"))
_TOP = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_a_document_names_exist(document: Path) -> None:
    """Links within the project, and paths in code spans that begin with one of its folders."""
    text = document.read_text(encoding="utf-8")
    links = [each.partition("#")[0] for each in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in each]
    missing = [each for each in links if each and not (document.parent / each).exists()]
    spans = re.findall(rf"(?<![\w/.<-])(?:{_TOP})/[\w./-]*\w/?", text)
    missing += [each for each in spans if not (ROOT / each).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_headings_that_a_document_links_to_exist(document: Path) -> None:
    """Links to a part of a page of the project, named as GitHub names it."""
    links = [each.partition("#") for each in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8"))]
    inside = [(name, part) for name, _, part in links if part and "://" not in name]
    missing = [
        (name, part) for name, part in inside if part not in _anchors(document.parent / name if name else document)
    ]
    assert not missing


def _anchors(page: Path) -> set[str]:
    """Return the names of a page's headings: lower case, without punctuation, with hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.strip().lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_modules_that_a_folder_names_exist(folder: Path) -> None:
    """What the docstring of a folder points to, in it or, for one within another, beside it."""
    told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = [each for each in re.findall(r"``([^`]+)``", told) if re.fullmatch(r"[\w.]+/?", each)]
    there = [path.name for at in {folder, folder.parent} - {ROOT} for path in at.iterdir()]
    missing = [each for each in names if not {each.rstrip("/"), f"{each}.py"} & {*there}]
    assert not missing
