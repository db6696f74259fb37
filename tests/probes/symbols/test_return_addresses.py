"""Return addresses that sampled stacks show."""

from __future__ import annotations

from specmine.probes.symbols.return_addresses import MOST_EACH, MOST_FUNCTIONS, ReturnAddresses


def test_each_frame_returns_to_where_the_next_one_stands() -> None:
    """The outermost frame returns to nowhere; frames without a function are left out."""
    known = ReturnAddresses()
    known.note_stack(["f", "", "main"], [(1, 0x10), (1, 0x20), (1, 0x30)])
    known.note_stack(["f", "g"], [(1, 0x12), (1, 0x25)])
    assert known.of("f") == ((1, 0x20), (1, 0x25))
    assert known.of("main") == known.of("g") == ()


def test_what_is_noted_is_bounded() -> None:
    """A function of many callers, and many functions, take bounded memory."""
    known = ReturnAddresses()
    for address in range(2 * MOST_EACH):
        known.note("f", (1, address))
    assert known.of("f") == tuple((1, address) for address in range(MOST_EACH))
    for number in range(MOST_FUNCTIONS):
        known.note(str(number), (1, number))
    assert known.of("f") == ()
    assert known.of("7") == ((1, 7),)


def test_layouts_that_others_get_are_forgotten() -> None:
    """The number of a layout is used again for another address space."""
    known = ReturnAddresses()
    known.note("f", (1, 5))
    known.note("f", (2, 6))
    known.forget_layouts({1})
    assert known.of("f") == ((2, 6),)
