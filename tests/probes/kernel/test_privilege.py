"""Which capabilities permit BPF, from what /proc says of processes of different kinds."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import sys
from pathlib import Path

import pytest

from specmine.model.errors import HostError
from specmine.probes.kernel import privilege

NOBODY, ROOT, IN_LINUX_5_7 = 0, 0x1FF_FFFF_FFFF, 0x3F_FFFF_FFFF
UNIT = sum(1 << bit for bit in privilege.CAPABILITIES.values())
ADMIN, BPF, PERFMON, PTRACE = 1 << 21, 1 << 39, 1 << 38, 1 << 19
ONLY_NETWORK = struct.pack("<5I", 0x0200_0001, 1 << 10, 0, 0, 0)
"""What `setcap cap_net_bind_service+ep` writes."""


@pytest.fixture(autouse=True)
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the place of /proc/self/status."""
    path = tmp_path / "status"
    monkeypatch.setattr(privilege, "_STATUS", path)
    return path


def have(status: Path, effective: int) -> None:
    """Let this process have these effective capabilities, and others that it could take."""
    status.write_text(f"Name:\tCapEff: 0\nCapInh:\t0\nCapPrm:\t{ROOT:016x}\nCapEff:\t{effective:016x}\nCapBnd:\t0\n")


@pytest.mark.parametrize("effective", [ROOT, UNIT, BPF | PERFMON, ADMIN, IN_LINUX_5_7], ids=hex)
def test_what_permits_bpf_is_not_refused(status: Path, effective: int) -> None:
    """CAP_BPF and CAP_PERFMON do, and CAP_SYS_ADMIN, which is all that kernels before 5.8 know."""
    have(status, effective)
    privilege.check_bpf("/nowhere/python3")


@pytest.mark.parametrize(
    ("effective", "missing"),
    [
        (NOBODY, "CAP_BPF and CAP_PERFMON"),
        (PTRACE, "CAP_BPF and CAP_PERFMON"),
        (BPF, "CAP_PERFMON"),
        (ROOT & ~ADMIN & ~BPF, "CAP_BPF"),
    ],
)
def test_what_is_missing_is_named(status: Path, effective: int, missing: str) -> None:
    """One line, with what to do, and the code of a missing privilege."""
    have(status, effective)
    with pytest.raises(HostError) as refused:
        privilege.check_bpf("/nowhere/python3")
    assert refused.value.message == f"the kernel does not permit BPF without {missing}"
    assert refused.value.remedy == "run as root or with CAP_BPF and CAP_PERFMON"
    assert refused.value.exit_code == 4


def test_root_of_a_user_namespace_is_left_to_the_kernel(status: Path) -> None:
    """Its capabilities look like those of root."""
    have(status, ROOT)
    assert privilege.lacking(privilege.effective_capabilities()) == []
    privilege.check_bpf("/nowhere/python3")


def test_an_interpreter_with_rights_of_its_own_is_left_to_the_kernel(
    status: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set-uid, or with capabilities of its file, it may load what we may not."""
    have(status, NOBODY)
    interpreter = tmp_path / "python3"
    shutil.copy(sys.executable, interpreter)
    with pytest.raises(HostError):
        privilege.check_bpf(str(interpreter))
    interpreter.chmod(0o755 | stat.S_ISUID)
    privilege.check_bpf(str(interpreter))
    interpreter.chmod(0o755)
    attributes = {(str(interpreter), "security.capability"): ONLY_NETWORK}
    monkeypatch.setattr(os, "getxattr", lambda path, name: attributes[str(path), name])
    privilege.check_bpf(str(interpreter))


def test_capabilities_for_watching_others_are_named_apart(status: Path) -> None:
    """CAP_SYS_ADMIN stands for those that were once parts of it, and for no other."""
    have(status, ADMIN)
    assert privilege.lacking(privilege.effective_capabilities()) == ["CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE"]
    assert privilege.lacking(UNIT) == []
    assert privilege.lacking(NOBODY) == list(privilege.CAPABILITIES)


def test_without_proc_that_is_said() -> None:
    """Not that capabilities are missing: nobody knows."""
    with pytest.raises(HostError, match=r"cannot read .*; mount /proc"):
        privilege.check_bpf("/nowhere/python3")
