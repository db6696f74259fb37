"""What the entries of a specification say."""

from __future__ import annotations

from specmine.analysis.documents import title


def test_nameless_functions_carry_their_module_once() -> None:
    """`module+0xoff` needs no module beside it."""
    assert title({"function": "libapr-1.so.0+0x1f0", "module": "libapr-1.so.0"}) == "libapr-1.so.0+0x1f0"
    assert title({"function": "z", "module": "app"}) == "z (app)"


def test_a_function_of_the_programs_own_file_has_the_name_of_the_program() -> None:
    """People know redis, not the file that its name is a link to; a library keeps its name."""
    own = {"function": "call", "module": "redis-check-rdb", "program": "redis", "in_program": True}
    assert title(own) == "call (redis)"
    assert title({**own, "in_program": False}) == "call (redis-check-rdb)"
    assert title({**own, "program": "redis,other"}) == "call (redis-check-rdb)"
    assert title({**own, "function": "redis-check-rdb+0x10"}) == "redis-check-rdb+0x10"
