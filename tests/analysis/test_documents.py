"""What the entries of a specification say."""

from __future__ import annotations

from specmine.analysis.documents import title


def test_nameless_functions_carry_their_module_once() -> None:
    """`module+0xoff` needs no module beside it."""
    assert title({"function": "libapr-1.so.0+0x1f0", "module": "libapr-1.so.0"}) == "libapr-1.so.0+0x1f0"
    assert title({"function": "z", "module": "app"}) == "z (app)"
