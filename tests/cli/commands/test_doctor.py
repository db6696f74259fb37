"""What doctor prints, and its exit code; the checks themselves are stand-ins."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import specmine.probes
from specmine.experiments.load import worker_binary

Outcome = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A check as probes/doctor.py makes it."""

    name: str
    ok: bool
    detail: str = ""
    remedy: str = ""
    needed: bool = True


GOOD = Found(name="root", ok=True, detail="uid 0", remedy="run as root")
SLOW = Found(name="uprobe-multi", ok=False, detail="perf events\x1b", remedy="a newer kernel", needed=False)
MISSING = Found(name="bcc", ok=False, detail="no module named bcc", remedy="apt install python3-bpfcc")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int | None]]:
    """Return what plans the checks of a host; the list it gives fills with the pids asked about."""

    def plan(*found: Found, compiler: bool = True) -> list[int | None]:
        asked: list[int | None] = []

        def checks(pid: int | None = None) -> list[Found]:
            asked.append(pid)
            return list(found)

        module = types.ModuleType("specmine.probes.doctor")
        module.checks = checks  # type: ignore[attr-defined]
        module.Check = Found  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "specmine.probes.doctor", module)
        monkeypatch.setattr(specmine.probes, "doctor", module, raising=False)
        monkeypatch.setattr(worker_binary, "can_be_had", lambda: compiler)
        return asked

    return plan


def test_a_ready_host_is_0(host: Callable[..., list[int | None]], outcome: Outcome) -> None:
    """What is only nice to have may be missing."""
    asked = host(GOOD, SLOW)
    code, out, err = outcome("doctor")
    assert (code, err) == (0, "")
    assert out == (
        "ok    root          uid 0\n"
        "warn  uprobe-multi  perf events\\x1b\n"
        "                    remedy: a newer kernel\n"
        "ok    compiler      a C compiler for the load of host experiments\n"
        "\n"
        "Ready.\n"
    )
    assert asked == [None]


def test_a_missing_need_is_4_with_its_remedy(host: Callable[..., list[int | None]], outcome: Outcome) -> None:
    """What is needed and missing is named with its remedy."""
    asked = host(GOOD, MISSING)
    code, out, _ = outcome("doctor", "-p", os.getpid())
    assert code == 4
    assert "FAIL  bcc       no module named bcc\n                remedy: apt install python3-bpfcc\n" in out
    assert out.endswith("Not ready: bcc.\n")
    assert asked == [os.getpid()]


def test_a_host_without_a_compiler_is_ready_but_warned(host: Callable[..., list[int | None]], outcome: Outcome) -> None:
    """Only host experiments need a compiler; the remedy says which package."""
    host(GOOD, compiler=False)
    code, out, _ = outcome("doctor")
    assert code == 0
    assert "warn  compiler  a C compiler for the load of host experiments\n                remedy: install gcc\n" in out


def test_json_has_the_contracts_fields(host: Callable[..., list[int | None]], outcome: Outcome) -> None:
    """JSON lists the checks as the contract says, with the same exit code."""
    host(GOOD, MISSING)
    code, out, _ = outcome("doctor", "--format", "json")
    assert code == 4
    document = json.loads(out)
    assert document["schema"] == "specmine.doctor/1"
    assert document["checks"][0]["remedy"] == ""
    assert document["checks"][1] == {
        "name": "bcc", "ok": False, "detail": "no module named bcc", "remedy": "apt install python3-bpfcc",
        "needed": True,
    }  # fmt: skip


def test_an_unknown_pid_is_2(host: Callable[..., list[int | None]], outcome: Outcome) -> None:
    """A process that is not there is the user's mistake, not the host's."""
    host(GOOD)
    assert outcome("doctor", "-p", 1 << 22) == (2, "", "specmine: there is no process 4194304; see `ps -e`\n")
