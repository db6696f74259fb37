"""A few hundred damaged ELF files; tests/support/fuzz/elf.py feeds as many as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.support.fuzz.elf import run


def test_damaged_files_do_no_harm(tmp_path: Path) -> None:
    """One child survives them all, none takes long or much memory, and refusals say why in words."""
    result = run(360, 2, tmp_path)
    assert result.faults == []
    assert len(result.children) == 1
    assert result.answers["rows"] > 100
    assert result.answers["refused"] > 50
    assert result.peak_bytes < 400 << 20
