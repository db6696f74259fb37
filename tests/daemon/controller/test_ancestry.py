"""Which functions call which."""

from __future__ import annotations

from specmine.daemon.controller.ancestry import Ancestry
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.profile import Profile
from specmine.model.function import Function


def calling(callers: dict[str, tuple[str, ...]]) -> Ancestry:
    """Return the ancestry of functions by the callers of each."""
    return Ancestry(
        {
            name: FunctionState(
                identity=Identity(function=Function(build_id="b", offset=number, name=name, module="m")),
                profile=Profile(callers=tuple((caller, 1.0) for caller in of)),
            )
            for number, (name, of) in enumerate(callers.items())
        }
    )


def test_callers_are_followed_outward() -> None:
    """Callers of callers count, a recursion ends, and siblings are apart."""
    ancestry = calling({"main": (), "a": ("main", "a"), "b": ("a",), "c": ("main",)})
    assert ancestry.of("b") == {"a", "main"}
    assert not ancestry.is_apart("b", ["c", "main"])
    assert not ancestry.is_apart("main", ["b"])
    assert ancestry.is_apart("b", ["c"])
    assert ancestry.is_apart("c", ["a", "b"])
    assert ancestry.is_apart("main", [])
