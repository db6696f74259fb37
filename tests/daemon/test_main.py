"""``specmined`` from the outside: its exit codes, its lines, its size, its unit."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specmine.daemon.config.tree import default_text
from specmine.daemon.main import main
from specmine.daemon.system import logging as logs
from tests.support.paths import ROOT
from tests.support.patience import patient

HEAVY = ("bcc", "scipy", "sklearn", "sqlalchemy", "capstone", "elftools", "rich", "click")


def specmined(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the daemon as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "specmine.daemon.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(120),
    )


def test_the_default_configuration_passes_the_check(tmp_path: Path) -> None:
    """--check-config says fine on stdout and leaves with 0; that nothing would be watched is said, too."""
    path = tmp_path / "c.yaml"
    path.write_text(default_text())
    done = specmined("--check-config", "--config", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"{path}: fine\nno program is named, so specmined would not start: name one under programs\n",
        "",
    )


def test_an_empty_name_is_not_the_working_folder() -> None:
    """It is a wrong usage, and named."""
    done = specmined("--config", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "specmined: argument --config: the value is empty; see `specmined --help`\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget: {overhed: 1%}", "unknown key budget.overhed; did you mean budget.overhead?"),
        ("windows: {length: 5}", "windows.length: 5 has no unit"),
        ("a: [", "not YAML"),
        ("socket: {group: nosuch}", "socket.group: there is no group 'nosuch'"),
        ("kernel: {interpreter: /nonexistent}", "kernel.interpreter: '/nonexistent' is not a file"),
    ],
)
def test_a_bad_configuration_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    """Checking and running end alike: exit code 2 and one line that names the mistake."""
    path = tmp_path / "c.yaml"
    path.write_text(text)
    for arguments in (["--check-config"], []):
        done = specmined("--config", str(path), *arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert said in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_wrong_usage_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown option and a file that is not there are usage errors."""
    with pytest.raises(SystemExit) as caught:
        main(["--nonsense"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "specmined: unrecognized arguments: --nonsense; see `specmined --help`\n"
    assert main(["--config", "/nonexistent.yaml"]) == 2
    assert "cannot read the configuration /nonexistent.yaml" in capsys.readouterr().err


def test_a_full_disk_under_the_answer_is_one_line(tmp_path: Path) -> None:
    """What --check-config says got lost: that is an error, and no traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "specmine.daemon.main", "--check-config"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "specmined: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_nothing_to_watch_is_one_line(tmp_path: Path) -> None:
    """Without programs the daemon says so and leaves with 2."""
    path = tmp_path / "c.yaml"
    path.write_text("log: {level: error}")
    done = specmined("--config", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"specmined: no programs are configured; .*\n", done.stderr)


def test_without_privilege_the_daemon_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what is missing and leaves with 4: no lock is taken, no store made, nothing compiled."""
    path = tmp_path / "c.yaml"
    state = f"host_lock: {tmp_path}/lock\nstore: {{path: {tmp_path}/store.db}}\nsocket: {{path: {tmp_path}/sock}}\n"
    path.write_text(f"programs: [{{pid: 1}}]\n{state}")
    monkeypatch.setattr("specmine.probes.kernel.privilege.effective_capabilities", lambda: 0)
    assert main(["--config", str(path)]) == 4
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "without CAP_BPF and CAP_PERFMON; run as root" in error
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_the_daemon_holds_no_heavy_library() -> None:
    """All that the daemon's process imports leaves it small and free of parsers and solvers."""
    code = (
        "import sys; import specmine.daemon.main, specmine.daemon.service, specmine.probes.source;"
        f" heavy = sorted(set(sys.modules) & set({HEAVY!r}));"
        " status = open('/proc/self/status').read();"
        " print(heavy, status.split('RssAnon:')[1].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy, private_kb = done.stdout.rsplit(" ", 1)
    assert heavy == "[]"
    # memory of its own: how much of shared libraries is resident differs between hosts
    assert int(private_kb) < 45_000


def test_an_installed_unit_is_accepted_by_systemd(tmp_path: Path) -> None:
    """systemd-analyze verify has nothing to say about the unit."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "specmined.service"
    text = (ROOT / "systemd" / "specmined.service").read_text(encoding="utf-8")
    unit.write_text(re.sub(r"(?m)^(Exec\w+=)\S*specmined", r"\g<1>/bin/true", text))
    done = subprocess.run([tool, "verify", str(unit)], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "specmined" in line]
    assert (done.returncode, told) == (0, [])


def test_the_unit_gives_only_the_capabilities_needed() -> None:
    """The bounding set is the measured one, and nothing hides /proc or breaks BPF."""
    text = (ROOT / "systemd" / "specmined.service").read_text(encoding="utf-8")
    settings = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
    needed = {
        "CAP_BPF",
        "CAP_PERFMON",
        "CAP_SYS_PTRACE",
        "CAP_DAC_READ_SEARCH",
        "CAP_CHECKPOINT_RESTORE",
    }
    assert set(settings["CapabilityBoundingSet"].split()) == needed
    assert settings["NoNewPrivileges"] == "yes"
    assert settings["ProtectSystem"] == "strict"
    assert settings["Type"] == "notify-reload" or "ExecReload" in settings
    assert not {"PrivateUsers", "ProcSubset", "PrivatePIDs"} & set(settings)
    # whoever has CAP_SYS_PTRACE sees all processes nevertheless
    assert settings["ProtectProc"] == "invisible" and "CAP_SYS_PTRACE" in settings["AmbientCapabilities"].split()


def test_the_units_exposure_does_not_grow(tmp_path: Path) -> None:
    """systemd-analyze rates it 1.4 of 10 or better: what is open is what the daemon needs."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed")
    unit = shutil.copy(ROOT / "systemd" / "specmined.service", tmp_path)
    command = [tool, "security", "--offline=true", "--no-pager", "--threshold=14", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze does not rate files")
    assert done.returncode == 0, done.stdout[-200:]


def test_the_paths_of_the_unit_are_those_of_the_defaults() -> None:
    """The folders that systemd makes are where the default configuration puts its files."""
    text = (ROOT / "systemd" / "specmined.service").read_text(encoding="utf-8")
    settings = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
    assert f"/var/lib/{settings['StateDirectory']}/specmine.db" in default_text()
    assert f"/run/{settings['RuntimeDirectory']}/specmined.sock" in default_text()


def test_the_unit_is_scraped_where_the_configuration_says() -> None:
    """Its socket has the default address, is passed by the name that is asked for, and comes and goes with it."""
    unit, listening = (
        (ROOT / "systemd" / f"specmined.{kind}").read_text(encoding="utf-8") for kind in ("service", "socket")
    )
    settings = dict(re.findall(r"(?m)^(\w+)=(.*)$", listening))
    assert f"listen: {settings['ListenStream']}\n" in default_text()
    assert settings["FileDescriptorName"] == "metrics"
    assert settings["BindsTo"] == "specmined.service"
    assert "Wants=specmined.socket\n" in unit
    assert "Environment=SPECMINE_METRICS_SOCKET=passed\n" in unit


class Stream:
    """A text stream that remembers."""

    def __init__(self, fileno: int = -1) -> None:
        self.text, self._fileno = "", fileno

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def fileno(self, *, urgent: bool = False) -> int:
        if self._fileno < 0:
            raise ValueError("no file")
        return self._fileno


def logged(stream: Stream, form: str) -> str:
    """Log one hostile event and return its line."""
    logs.set_up(level="info", form=form, stream=stream)  # type: ignore[arg-type]
    log = logging.getLogger("specmine.test")
    log.debug("unseen")
    log.warning("a name", extra=logs.facts(name='f"\n<0>level=error', calls=7, ratio=0.12345678))
    return stream.text


def test_a_log_line_is_one_line_of_facts() -> None:
    """A name with a newline in it cannot begin a line of its own."""
    line = logged(Stream(), "logfmt")
    assert line.count("\n") == 1
    assert re.fullmatch(
        r'time=\S+Z level=warning message="a name" name="f\\"\\n<0>level=error" calls=7 ratio=0\.123457\n',
        line,
    )


def test_a_log_line_can_be_json() -> None:
    """One object a line."""
    line = json.loads(logged(Stream(), "json"))
    assert (line["level"], line["message"], line["name"], line["calls"]) == (
        "warning",
        "a name",
        'f"\n<0>level=error',
        7,
    )


def test_the_journal_gets_priorities(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where stderr leads to the journal a line begins with its priority and has no time of its own."""
    with (tmp_path / "journal").open("w") as file:
        status = os.fstat(file.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        assert logged(Stream(file.fileno()), "logfmt").startswith("<4>level=warning")


def test_an_unexpected_failure_is_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake of ours ends the daemon with 1, so that systemd starts it again, and is logged in one line."""
    path = tmp_path / "c.yaml"
    path.write_text("programs: [{pid: 1}]")
    monkeypatch.setattr("specmine.probes.kernel.privilege.effective_capabilities", lambda: -1)
    monkeypatch.setattr("specmine.daemon.service.Daemon.run", lambda _: dict[str, None]()["missing"])
    assert main(["--config", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "level=critical" in error and "KeyError" in error


def test_no_error_steers_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands in an error, a file's name for example, is escaped."""
    assert main(["--config", str(tmp_path / "\x1b[2J.yaml")]) == 2
    shown = capsys.readouterr().err
    assert "\\x1b[2J.yaml" in shown and "\x1b" not in shown
