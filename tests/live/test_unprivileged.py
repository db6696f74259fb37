"""With the unit's capabilities and no others specmine times functions, and as root it refuses to parse as root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.breakpoints import family
from tests.support.paths import ROOT
from tests.support.patience import patient
from tests.support.product import SPECMINE, SPECMINED, daemon, run, running, wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not there"),
]

Programs = Callable[..., Path]
UNIT = ROOT / "systemd" / "specmined.service"
NOBODY = 65534
NUMBERS = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_PTRACE": 19,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
    "CAP_CHECKPOINT_RESTORE": 40,
}


def capabilities() -> list[str]:
    """Return the capabilities that the unit keeps."""
    found = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1).split()


def confined(uid: int) -> list[str]:
    """Return the words before a command that runs with the unit's capabilities only."""
    kept = ",".join(f"+{name.removeprefix('CAP_').lower()}" for name in capabilities())
    ambient = [f"--inh-caps={kept}", f"--ambient-caps={kept}"] if uid else [f"--inh-caps=-all,{kept}"]
    user = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return ["setpriv", *user, *ambient, f"--bounding-set=-all,{kept}", "--no-new-privs"]


def effective(pid: int | str) -> int:
    """Return the effective capabilities of a process."""
    found = re.search(r"^CapEff:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found.group(1), 16)


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return a folder of each user's own: who runs first compiles there."""
    found = {uid: tmp_path_factory.mktemp("cache") for uid in (NOBODY,)}
    for uid, folder in found.items():
        os.chown(folder, uid, uid)
    return found


@pytest.fixture(params=[NOBODY], ids=["nobody"])
def user(
    request: pytest.FixtureRequest, caches: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Who runs it; a folder of its own for what it writes."""
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", request.param, request.param)
    monkeypatch.setenv("CACHE_DIRECTORY", str(caches[request.param]))
    return int(request.param)


def test_mine_times_a_function_with_the_units_capabilities(user: int, program: Programs, tmp_path: Path) -> None:
    """Loaded, calibrated and attached without more, `mine` times a function, and doctor is content."""
    path = program("single")
    (tmp_path / "c.yaml").write_text(f"kill_switch: {tmp_path}/off\nsocket: {{path: {tmp_path}/sock}}\n")
    with running(path, 120) as child:
        command = [SPECMINE, "mine", "-p", child.pid, "--config", tmp_path / "c.yaml", "--duration", "4"]
        mined = run([*confined(user), *map(str, command), "--function", "smooth", "--format", "json"])
        assert mined.returncode in (0, 3), mined.stderr
        document = json.loads(mined.stdout)
        assert any(each["timed"] > 0 for each in document["functions"])
        shown = run([*confined(user), SPECMINE, "doctor", "-p", str(child.pid), "--format", "json"])
        assert shown.returncode == 0, shown.stdout
        checks = {each["name"]: each for each in json.loads(shown.stdout)["checks"]}
        assert (
            checks["privilege"]["ok"] and checks["links"]["ok"] and checks["binaries"]["ok"] and checks["reader"]["ok"]
        )


def test_the_daemon_runs_with_the_units_capabilities(user: int, program: Programs, tmp_path: Path) -> None:
    """The daemon, started with nothing more, times functions of another user's process and ends in order."""
    path, state = program("single"), tmp_path / "state"
    with running(path, 300), daemon(state, programs=f"[{{exe: {path}}}]") as one:
        with one.log.open("ab") as log:
            command = [*confined(user), SPECMINED, "--config", str(one.config)]
            one.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        one.first_answer("status")
        assert effective(one.process.pid) == sum(1 << NUMBERS[name] for name in capabilities())

        def timed() -> bool:
            assert one.process is not None and one.process.poll() is None, one.log.read_text()
            return any(each["timed"] > 0 for each in (one.ask("functions") or {}).get("functions", ()))

        wait_until(timed, "a timed function")
        one.process.terminate()
        assert one.process.wait(patient(90)) == 0
        assert "level=error" not in one.log.read_text()


def test_root_without_the_right_to_be_another_does_not_parse(program: Programs, tmp_path: Path) -> None:
    """Root's files are root's with or without capabilities: one line says what is needed, and doctor finds it."""
    path = program("single")
    (tmp_path / "c.yaml").write_text(f"kill_switch: {tmp_path}/off\nsocket: {{path: {tmp_path}/sock}}\n")
    with running(path, 120) as child:
        command = [SPECMINE, "mine", "-p", child.pid, "--config", tmp_path / "c.yaml", "--duration", "4"]
        mined = run([*confined(0), *map(str, command)])
        assert mined.returncode == 4
        assert "cannot be confined" in mined.stderr and "CAP_SETUID" in mined.stderr
        assert "Traceback" not in mined.stderr
    shown = run([*confined(0), SPECMINE, "doctor", "--format", "json"])
    checks = {each["name"]: each for each in json.loads(shown.stdout)["checks"]}
    assert not checks["reader"]["ok"] and "CAP_SETUID" in checks["reader"]["remedy"]


def test_the_daemons_helpers_keep_less(user: int, program: Programs, tmp_path: Path) -> None:
    """Holder: what links take; reader: nothing, and a filter of system calls."""
    path, state = program("single"), tmp_path / "state"
    with running(path, 300), daemon(state, programs=f"[{{exe: {path}}}]") as one:
        with one.log.open("ab") as log:
            command = [*confined(user), SPECMINED, "--config", str(one.config)]
            one.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        one.first_answer("status")
        kept: dict[str, int] = {}
        for pid in family(one.process.pid)[1:]:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            kept |= {name: effective(pid) for name in ("holder", "parser") if name.encode() in words}
        assert kept == {"holder": 1 << NUMBERS["CAP_BPF"] | 1 << NUMBERS["CAP_PERFMON"], "parser": 0}
