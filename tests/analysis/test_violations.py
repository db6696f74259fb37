"""The violations that a store holds are told with the time of its newest data."""

from __future__ import annotations

from pathlib import Path

from specmine.analysis.violations import violations_in
from specmine.model.violation import ViolationState
from specmine.store import Document, Writes, open_store, stored
from tests.support.violations import SECOND, violation


def test_the_time_is_that_of_the_newest_part(tmp_path: Path) -> None:
    """A violation is written when it opens or closes, the specification up to some minutes earlier or later."""
    path = tmp_path / "s.db"
    found = violation("ab+0x10")
    assert found.found_ns == 154 * SECOND
    for at, closed_ns, expected in ((120, None, "00:02:34"), (160, None, "00:02:40"), (160, 170, "00:02:50")):
        collection = {"at": f"1970-01-01T00:0{at // 60}:{at % 60:02}.000Z"}
        document = {"schema": "specmine.specification/1", "functions": [], "collection": collection}
        one = found if closed_ns is None else found.closed(ViolationState.RECOVERED, closed_ns * SECOND)
        with open_store(path) as store:
            store.write(Writes((Document(name="specification", document=document), stored(one, 0))), 0)
        assert violations_in(path)["at"] == f"1970-01-01T{expected}.000Z"
