"""A push is what was put in."""

from __future__ import annotations

from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import Push, encode_push, pushes_of
from specmine.fleet.received import boots_of, decode_push
from specmine.store import Document
from tests.support.stored import FUNCTION, HOST, LIFETIME, observation

_ROWS = tuple(FoldedRow(observation=observation(number, names=("b", "?")), windows=1) for number in range(20))
_PUSH = Push(records=(HOST, LIFETIME, FUNCTION), rows=_ROWS)
_BYTES = encode_push(_PUSH)


def test_a_push_comes_back() -> None:
    """Records, rows, histograms, paths and times."""
    back = decode_push(_BYTES)
    assert back.records == _PUSH.records
    for one, other in zip(back.rows, _ROWS, strict=True):
        left, right = one.observation, other.observation
        assert (left.histogram, left.calls, left.bias_ns, left.end_ns) == (
            right.histogram, right.calls, right.bias_ns, right.end_ns,
        )  # fmt: skip
        assert [part.path for part in left.paths] == [part.path for part in right.paths]
    assert boots_of(back) == {"boot"}


def test_a_large_push_becomes_several() -> None:
    """Each within the limit, together the same."""
    parts = [decode_push(each) for each in pushes_of(_PUSH, most=2000)]
    assert len(parts) > 3
    assert sum(len(each.rows) for each in parts) == len(_ROWS)
    assert sum(len(each.records) for each in parts) == 3


def test_what_does_not_fit_alone_is_counted_as_lost() -> None:
    """A single record beyond the limit is given up, and the push says so."""
    document = Document(
        name="specification", document={"functions": [{"noise": str(number)} for number in range(5000)]}
    )
    (part,) = (decode_push(each) for each in pushes_of(Push(records=(document,)), most=2000))
    assert (part.lost, part.records) == (1, ())
