"""Processes from what /proc says of them."""

from __future__ import annotations

import os

from specmine.probes.process.proc import parse_process, process

STAT = b"7 (%b) S 1 7 7 0 -1 4194560 120 0 0 0 3 2 0 0 20 0 1 0 4711 1000 10 " + b"0 " * 28


def test_any_name_is_read() -> None:
    """Names with parentheses, blanks, ends of line and bytes that are no text cost nothing."""
    for name in (b"shop", b"a) R 9 (b", b"a\x0cb\rc", b"\xff\n", b""):
        found = parse_process(7, STAT % name)
        assert found is not None
        assert (found.parent, found.start_ticks, found.zombie) == (1, 4711, False)
        assert found.name == name.decode(errors="replace")


def test_what_describes_no_process_is_none() -> None:
    """A text cut short, or of another form, is no process rather than an error."""
    for text in (b"", b"7 (a)", b"7 (a) S", STAT.replace(b"4711", b"x")):
        assert parse_process(7, text) is None
    own = process(os.getpid())
    assert own is not None and own.parent == os.getppid()
