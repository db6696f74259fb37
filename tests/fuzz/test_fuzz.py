"""A small fixed share of what `make fuzz` feeds to the product; tests/support/fuzz has what is damaged and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzz.run import fuzz

SHARES = {"stores": 36, "recordings": 12, "configurations": 24, "imports": 24, "documents": 30, "conversations": 60}
"""Attempts of each kind that take some seconds; damaged ELF files are in tests/probes/elf/parser/test_main.py."""
NEEDED = {"conversations": ("answered", "refused", "http 200", "http 421")}
"""Outcomes of each kind that show that the fuzzer still reaches what it is to reach."""


@pytest.mark.parametrize("kind", SHARES)
def test_damaged_input_is_refused_in_one_line_or_read(kind: str, tmp_path: Path) -> None:
    """No crash, hang, traceback, control character or other exit code, and bounded memory."""
    result = fuzz(kind, SHARES[kind], 2, tmp_path)
    assert result.faults == []
    assert result.attempts == SHARES[kind]
    assert not {*NEEDED.get(kind, ("0", "2"))} - {*result.outcomes}
