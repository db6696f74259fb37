"""The machine is chosen once, and one that nobody taught us is refused in a line."""

from __future__ import annotations

import platform

import pytest

from specmine.model.errors import HostError
from specmine.probes.arch.machine import machine


def test_another_machine_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the machine and those that would do."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(HostError, match="riscv64") as refused:
        machine.__wrapped__()
    assert "x86-64" in refused.value.remedy


def test_the_calibration_program_names_its_places() -> None:
    """Every function, entry and return address that calibration probes is within the program."""
    program = machine().calibration_program(100)
    places = ("outer", "deep", "wide", "start_deep", *program.emulated_after)
    names = {f"{place}_{grade}" for place in places for grade in ("emulated", "stepped")}
    assert names <= set(program.places)
    assert all(0 < place < len(program.image) for place in program.places.values())
