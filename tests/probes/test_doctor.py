"""What doctor need not compile: a capability that is missing, and what was loaded earlier in this boot."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import pytest

from specmine.model.errors import ProbeError
from specmine.probes import doctor
from specmine.probes.kernel import loader, privilege
from specmine.probes.kernel.cache import write_json


def permit(monkeypatch: pytest.MonkeyPatch, effective: int) -> None:
    """Let this process have these capabilities."""
    for module in (doctor, privilege):
        monkeypatch.setattr(module, "effective_capabilities", lambda: effective)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, on a host where nothing can be compiled."""

    def refused(**_: Any) -> NoReturn:
        raise ProbeError("compiled")

    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(doctor, "load", refused)
    permit(monkeypatch, (1 << 64) - 1)
    tmp_path.chmod(0o700)
    return tmp_path


def bpf() -> dict[str, doctor.Check]:
    """Return the checks by name."""
    return {each.name: each for each in doctor.checks()}


def test_without_a_record_the_programs_are_compiled(folder: Path) -> None:
    """And with a damaged one."""
    assert bpf()["bpf"].detail == "compiled"
    loader._kept_at(folder, "/usr/bin/python3").write_text('{"mode": "multi"}')
    assert bpf()["bpf"].detail == "compiled"


def test_what_was_loaded_earlier_is_told(folder: Path) -> None:
    """With the kind of links that worked, and what was noted."""
    kept = loader.Earlier(mode="multi", notes=("session links: refused",), seconds=1.25)
    write_json(loader._kept_at(folder, "/usr/bin/python3"), asdict(kept))
    found = bpf()
    assert found["bpf"].ok and "earlier in this boot, in 1.2 s" in found["bpf"].detail
    assert found["links"].ok and found["links"].detail == "multi links work; session links: refused"


def test_a_record_that_others_could_have_written_counts_for_nothing(folder: Path) -> None:
    """Whoever may write it could say anything."""
    kept = loader.Earlier(mode="multi", notes=(), seconds=1.0)
    write_json(loader._kept_at(folder, "/usr/bin/python3"), asdict(kept))
    folder.chmod(0o777)
    assert bpf()["bpf"].detail == "compiled"


def test_a_missing_capability_is_told_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would only say the same after seconds."""
    permit(monkeypatch, 1 << privilege.CAPABILITIES["CAP_BPF"])
    found = bpf()
    assert not found["bpf"].ok and "without CAP_PERFMON" in found["bpf"].detail and "CAP_BPF" in found["bpf"].remedy
    missing = "CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON, CAP_CHECKPOINT_RESTORE"
    assert not found["privilege"].ok and found["privilege"].detail == f"missing {missing}"


def test_without_proc_doctor_still_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each check that needs it says so."""
    monkeypatch.undo()
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(privilege, "_STATUS", tmp_path / "nothing")
    found = bpf()
    for name in ("privilege", "bpf"):
        assert not found[name].ok and found[name].remedy == "mount /proc"
