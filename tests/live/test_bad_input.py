"""What users get wrong: each time one clear line, the exit code of the contract, and nothing left running."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.product import BIN, SPECMINED, Daemon, daemon, run, running, specmine, wait_for_probes, wait_until

pytestmark = pytest.mark.kernel

Programs = Callable[..., Path]
Done = subprocess.CompletedProcess[str]
UNKNOWN_PID = 4_194_303
NOT_OURS = re.compile(r'specmine: (watching|\d)|\{"')
"""Progress, and what the target program prints at its end."""
NO_BPF = ["setpriv", "--bounding-set=-bpf,-sys_admin"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
POWERLESS = ["setpriv", "--bounding-set=-all"]


def complaint(done: Done, code: int) -> str:
    """Check what every mistake has in common and return the one line."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line and not NOT_OURS.match(line)]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(("specmine: ", "specmined: "))
    return lines[0]


def no_root() -> list[str]:
    """Return how to run a command without any right; as nobody if nobody may run our interpreter."""
    can = subprocess.run([*NOBODY, sys.executable, "-c", ""], capture_output=True, check=False).returncode == 0
    return NOBODY if can else POWERLESS


def test_without_root(program: Programs) -> None:
    """Neither a command nor another's process can be watched; it says that privilege is missing."""
    refused = run([*no_root(), str(BIN / "specmine"), "mine", "--", shutil.which("sleep") or "", "9"])
    assert "run as root" in complaint(refused, 4)
    with running(program("single"), 60) as child:
        refused = run([*no_root(), str(BIN / "specmine"), "mine", "-p", str(child.pid)])
        assert "run as root" in complaint(refused, 4)


def test_doctor_tells_a_user_without_root_what_is_missing() -> None:
    """The doctor names the capabilities, says what to do, and ends with 4."""
    done = run([*no_root(), str(BIN / "specmine"), "doctor"])
    assert done.returncode == 4
    assert "CAP_BPF" in done.stdout
    assert "remedy" in done.stdout
    assert done.stderr == ""


def test_without_bpf(program: Programs, tmp_path: Path) -> None:
    """Root without CAP_BPF is told what the kernel does not permit, by command and daemon alike."""
    refused = run([*NO_BPF, str(BIN / "specmine"), "mine", "--", str(program("single")), "9"])
    assert "CAP_BPF" in complaint(refused, 4)
    one = Daemon(tmp_path, programs=f"[{{exe: {program('single')}}}]")
    assert "CAP_BPF" in complaint(run([*NO_BPF, SPECMINED, "--config", str(one.config)]), 4)


def test_an_unknown_pid() -> None:
    """A pid that nobody has is an input error."""
    assert f"no process {UNKNOWN_PID}" in complaint(specmine("mine", "-p", UNKNOWN_PID), 2)


def test_a_pid_that_exits_at_once() -> None:
    """A process that ends while specmine starts gives no data, or is gone already."""
    with running("sleep", 1) as child:
        done = specmine("mine", "-p", child.pid, "--duration", 30)
    assert done.returncode in (2, 3)
    if done.returncode == 2:
        assert "no process" in complaint(done, 2)
    else:
        assert "Traceback" not in done.stderr


def test_a_command_that_exits_at_once() -> None:
    """There was nothing to learn: exit code 3, long before the duration is over."""
    done = specmine("mine", "--duration", 60, "--", "true")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--exe", "/etc/passwd"], "not an ELF file"),
        (["--exe", "/nowhere"], "/nowhere is not a file"),
        (["--unit", "no-such-unit"], "no process runs in unit no-such-unit"),
        (["--", "no-such-command"], "cannot run no-such-command: no such command"),
        (["--", "/etc"], "cannot run /etc: not executable"),
        (["--user", "no-such-user", "--", "true"], "there is no user no-such-user"),
        (["--store", "/nowhere/store.db", "--", "true"], "there is no folder /nowhere"),
        (["--store", "/proc/store.db", "--", "true"], "cannot"),
        (["--store", "/etc", "--", "true"], "cannot write the store /etc"),
        (["--record", "/nowhere/recording", "--", "true"], "there is no folder /nowhere"),
        (["--output", "/nowhere/result", "--", "true"], "cannot write /nowhere/result"),
        (["--config", "/nowhere/config", "--", "true"], "cannot read the configuration /nowhere/config"),
    ],
)
def test_what_is_not_there_or_not_usable(arguments: list[str], words: str) -> None:
    """Each is named, and nothing is started."""
    assert words in complaint(specmine("mine", "--duration", 5, *arguments), 2)


def test_a_script_is_not_an_elf_file(tmp_path: Path) -> None:
    """A command that the kernel cannot execute is an input error with the kernel's reason."""
    script = tmp_path / "script"
    script.write_text("echo no interpreter line\n")
    script.chmod(0o755)
    assert "Exec format error" in complaint(specmine("mine", "--duration", 5, "--", script), 2)


def test_no_function_matches(program: Programs) -> None:
    """A hint that fits nothing is an input error, not an empty result."""
    done = specmine("mine", "--function", "no_such_function", "--duration", 1, "--", program("single"), 60)
    assert "no_such_function" in complaint(done, 2)


def test_a_misspelt_function_ends_early(program: Programs) -> None:
    """Long before the duration is over, and with what may be meant."""
    with running(program("single"), 6000) as child:
        done = specmine("mine", "--function", "smoth", "--duration", 5000, "-p", child.pid)
    said = complaint(done, 2)
    assert "smoth" in said and "did you mean smooth" in said


def test_a_corrupt_store_is_left_alone(tmp_path: Path) -> None:
    """A command does not touch a file that is no store."""
    store = tmp_path / "store.db"
    store.write_bytes(b"no database " * 1000)
    before = store.read_bytes()
    for command in (["mine", "--duration", "5", "--store", store, "--", "true"], ["functions", "--store", store]):
        assert f"{store} is not a store of specmine" in complaint(specmine(*command), 2)
        assert store.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [store.name]


def test_a_corrupt_store_is_set_aside_by_the_daemon(program: Programs, tmp_path: Path) -> None:
    """The daemon keeps the damaged file under another name, says so in one line, and watches."""
    with (
        running(program("paths"), 120) as child,
        daemon(tmp_path, programs=f"[{{pid: {child.pid}}}]", functions="{watch: [z]}") as one,
    ):
        damaged = b"SQLite format 3\x00" + b"damage" * 2000
        one.store.write_bytes(damaged)
        one.start()
        wait_for_probes(child.pid, one)
        aside = [path for path in tmp_path.iterdir() if "corrupt" in path.name]
        assert [path.read_bytes() for path in aside] == [damaged]
        told = [line for line in one.log.read_text().splitlines() if aside[0].name in line]
        assert len(told) == 1
        assert "level=warning" in told[0]


@pytest.mark.parametrize(
    ("section", "text", "words"),
    [
        ("budgett", "1", "unknown key budgett"),
        ("budget", "{overhed: 1%}", "did you mean budget.overhead"),
        ("programs", "[{pid: 4194303}]", "no process 4194303"),
        ("programs", "[{exe: /etc/passwd}]", "not an ELF file"),
        ("programs", "[]", "no programs are configured"),
        ("store", "{path: /proc/store.db}", "/proc/store.db"),
        ("store", "{path: /etc}", "store.path: /etc is a folder; name a file in it"),
        ("socket", "{path: /proc/socket}", "/proc/socket"),
    ],
)
def test_a_daemon_that_is_configured_wrongly(tmp_path: Path, section: str, text: str, words: str) -> None:
    """Each mistake is named in one line, exit code 2."""
    single = {"programs": f"[{{exe: {sys.executable}}}]", section: text}
    one = Daemon(tmp_path, **single)
    assert words in complaint(run([SPECMINED, "--config", str(one.config)]), 2)


def test_a_port_in_use(tmp_path: Path) -> None:
    """The address is named, and the key to change."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        one = Daemon(tmp_path, programs=f"[{{exe: {sys.executable}}}]", metrics=f"{{listen: '127.0.0.1:{port}'}}")
        line = complaint(run([SPECMINED, "--config", str(one.config)]), 2)
    assert f"127.0.0.1:{port}" in line
    assert "metrics.listen" in line


def test_a_second_daemon(program: Programs, tmp_path: Path) -> None:
    """One a host, one writer a store, one a socket: the second is told who was first, the first goes on."""
    first_folder, second_folder = tmp_path / "first", tmp_path / "second"
    first_folder.mkdir()
    second_folder.mkdir()
    with (
        running(program("single"), 120) as child,
        daemon(first_folder, programs=f"[{{pid: {child.pid}}}]") as first,
    ):
        process = first.start()
        first.first_answer()
        shared = {
            "host_lock": str(first_folder / "host.lock"),
            "store": f"{{path: {first.store}}}",
            "socket": f"{{path: {first.socket}}}",
        }
        for key, words in (
            ("host_lock", f"this host is in use by process {process.pid}"),
            ("store", f"the store {first.store} is in use by process {process.pid}"),
            ("socket", f"another daemon answers at {first.socket}"),
        ):
            second = Daemon(second_folder, programs=f"[{{pid: {child.pid}}}]", **{key: shared[key]})
            assert words in complaint(run([SPECMINED, "--config", str(second.config)]), 2)
        done = specmine("mine", "--store", first.store, "--duration", 5, "--", "true")
        assert f"the store {first.store} is in use by process {process.pid}" in complaint(done, 2)
        assert first.ask() is not None


def test_a_stripped_program_is_mined_by_offsets(program: Programs) -> None:
    """Functions without names are found, timed and shown by module and file offset."""
    for seconds in (5, 15, 45):  # how soon one is timed depends on the host
        done = specmine("mine", "--duration", seconds, "--format", "json", "--", program("paths", "stripped"), 60)
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 3)
        own = [each for each in json.loads(done.stdout)["functions"] if each["module"] == "paths"]
        if any(each["timed"] > 0 for each in own):
            break
    assert all(re.fullmatch(r"paths\+0x[0-9a-f]+|_start|_init", each["function"]) for each in own)
    assert any(each["timed"] > 0 for each in own)


def test_a_program_that_is_not_installed_yet_is_waited_for(program: Programs, tmp_path: Path) -> None:
    """The daemon starts, says what it waits for, and watches the program once it is there."""
    late = tmp_path / "late"
    with daemon(tmp_path, programs=f"[{{exe: {late}}}]", functions="{watch: [smooth]}") as one:
        one.start()
        one.first_answer("status")
        words = f"{late} is not there yet: it is waited for"
        wait_until(lambda: words in one.log.read_text(), "what is waited for")
        shutil.copy(program("single"), late)
        with running(late, 120) as child:
            wait_for_probes(child.pid, one)
