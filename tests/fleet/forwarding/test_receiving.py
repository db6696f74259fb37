"""What a fleet says is taken apart by the forwarder: whatever it is, the daemon gets a small valid file."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from specmine.daemon.sharing.document import FILE, MOST_DUTIES, MOST_LEFT, read_received, statement_text
from specmine.fleet.codec import deflated
from specmine.fleet.database.pushing import Told
from specmine.fleet.forwarding.receiving import STALE_S, receive
from specmine.mining.borders.inference import Inference
from specmine.mining.fleet.statement import InheritedStatement

_STATED = InheritedStatement(function="ab+0x10", build_id="ab", learned=Inference(stable=True), hosts=8, median_ns=5e4)
_GOOD = {"function": "ab+0x10", "purpose": "panel", "calls": 200}


class FakeFleet:
    """Says what a test wants."""

    def __init__(self, document: bytes, statements: list[tuple[int, bytes]] | None = None, age_s: float = 1.0) -> None:
        self.document, self.news, self.age_s = document, statements or [], age_s

    def duties(self) -> Told:
        """Return the document."""
        return Told(age_s=self.age_s, document=self.document, newest=max((n for n, _ in self.news), default=0))

    def statements(self, since: int) -> list[tuple[int, bytes]]:
        """Return those that are newer."""
        return [each for each in self.news if each[0] > since]


def _packed(value: object) -> bytes:
    return deflated(json.dumps(value).encode())


_BOMB = b"\x01" + zlib.compress(bytes(1 << 26))
_DEEP = deflated(b"[" * 100_000)
_NO_FORM = _packed({"duties": [[], {}, {"function": "a", "purpose": "own", "calls": 1}], "left": [7]})


@pytest.mark.parametrize(
    "document",
    [b"", b"\x01junk", b"\x00[]", _packed({"duties": 7}), _packed({"left": "x"}), _BOMB, _DEEP, _NO_FORM],
    ids=["nothing", "junk", "a list", "no list", "a text", "a bomb", "deep", "no form"],
)
def test_whatever_is_said_the_file_is_valid(document: bytes, tmp_path: Path) -> None:
    """Nothing is asked for that has no form; statements that cannot be read are left out, others taken."""
    news = [(1, b"junk"), (2, deflated(statement_text(_STATED).encode())), (3, deflated(b"{}"))]
    received = receive(tmp_path, FakeFleet(document, news), "boot", lambda: 7)
    assert received is not None
    written = read_received((tmp_path / FILE).read_bytes())
    assert (written.duties, written.left, written.number) == ((), (), 3)
    assert [each.function for each in written.statements] == ["ab+0x10"]


def test_too_much_is_cut(tmp_path: Path) -> None:
    """A centre that asks for everything gets no more than a host may take."""
    wild = {"duties": [_GOOD] * 5000, "left": [f"ab+0x{number:x}" for number in range(20_000)]}
    receive(tmp_path, FakeFleet(_packed(wild)), "boot", lambda: 7)
    written = read_received((tmp_path / FILE).read_bytes())
    assert (len(written.duties), len(written.left)) == (MOST_DUTIES, MOST_LEFT)


def test_what_nobody_planned_lately_is_not_taken(tmp_path: Path) -> None:
    """The file stays as it was, so its age tells the daemon when it is alone."""
    receive(tmp_path, FakeFleet(_packed({"duties": [_GOOD]})), "boot", lambda: 7)
    before = (tmp_path / FILE).read_bytes()
    assert receive(tmp_path, FakeFleet(_packed({}), age_s=STALE_S + 1), "boot", lambda: 99) is None
    assert (tmp_path / FILE).read_bytes() == before


def test_statements_add_up(tmp_path: Path) -> None:
    """Each contact brings what is new; a newer one of a function takes the place of the older."""
    for number, hosts in ((1, 8), (2, 9)):
        text = json.dumps({**json.loads(statement_text(_STATED)), "hosts": hosts})
        receive(tmp_path, FakeFleet(_packed({}), [(number, deflated(text.encode()))]), "boot", lambda: 7)
    written = read_received((tmp_path / FILE).read_bytes())
    assert [each.hosts for each in written.statements] == [9]
    (tmp_path / FILE).write_text("damaged", encoding="ascii")
    assert receive(tmp_path, FakeFleet(_packed({})), "boot", lambda: 8) is not None
