"""A violation is told with the names around its function."""

from __future__ import annotations

from specmine.cli.text.violations import portrait
from specmine.daemon.documents.violation_context import violations_document
from tests.support.changing import lived, slower
from tests.support.planted import unimodal


def test_a_violation_names_the_callers_of_its_function() -> None:
    """Those that samples showed, in JSON and in words."""
    planted = (unimodal(callers=(("above", 1.0),)), unimodal("above", rate=5.0))
    life = lived(planted, 260.0, [(150.0, "smooth", slower(3.0))])
    document = violations_document(life.state)
    (entry,) = document["violations"]
    assert entry["callers"] == ["above"]
    lines = portrait(entry, document["at"], 80)
    assert any(line.startswith("where") and "all its calls; called by above" in line for line in lines)
