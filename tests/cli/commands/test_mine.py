"""mine, record and replay as far as the command line goes: the session behind them is a stand-in."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon import foreground
from specmine.daemon import replay as replaying
from specmine.daemon.foreground import MineOptions, MineResult, Progress
from specmine.model.errors import HostError, InputError
from specmine.probes.kernel import privilege
from tests.support.paths import SUPPORT
from tests.support.patience import patient

DATA = SUPPORT / "data" / "cli"
Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def privileged(monkeypatch: pytest.MonkeyPatch) -> None:
    """All capabilities, whoever runs the tests."""
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: -1)


@pytest.fixture
def mined(monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]) -> list[MineOptions]:
    """A session that learns the sample at once; what it was asked for."""
    asked: list[MineOptions] = []

    def mine(options: MineOptions, progress: Progress) -> MineResult:
        asked.append(options)
        progress(lambda: document)
        return MineResult(document=document, unnamed="nosuch" in options.functions)

    monkeypatch.setattr(foreground, "mine", mine)
    return asked


def mined_text() -> str:
    """Return the text of the sample: its assertions, and what was timed besides."""
    timed = (
        "Timed, but not for long enough to know what is normal: 1 function.\n"
        "  b (app): half of the calls within 910 ns, 99 % within 4.4 \N{MICRO SIGN}s\n\n"
    )
    return (DATA / "assertions.txt").read_text().replace("6 functions:", f"{timed}6 functions:")


def test_all_options_reach_the_session(mined: list[MineOptions], tmp_path: Path, outcome: Outcome) -> None:
    """What stands on the command line is what the session is asked for."""
    (tmp_path / "c.yaml").write_text("")
    code, out, err = outcome(
        "mine", "--duration", "1m30s", "--budget", "2%", "--function", "z", "--function", "a*",
        "--ignore", "b", "--store", tmp_path / "s.db", "--record", tmp_path / "r", "--user", "nobody",
        "--config", tmp_path / "c.yaml", "--", "sh", "--version",
    )  # fmt: skip
    assert code == 0
    assert out == mined_text()
    assert "specmine: " in err
    assert mined == [
        MineOptions(
            command=("sh", "--version"), duration_s=90.0, budget=0.02, functions=("z", "a*"), ignore=("b",),
            store=tmp_path / "s.db", record=tmp_path / "r", user="nobody", config=tmp_path / "c.yaml",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-p", "7"], MineOptions(pid=7)),
        (["--exe", "/bin/x"], MineOptions(exe=Path("/bin/x"))),
        (["--unit", "a.service", "--duration", "0.5"], MineOptions(unit="a.service", duration_s=0.5)),
        (["sh", "--duration", "3"], MineOptions(command=("sh", "--duration", "3"))),
        (["--budget", "0.5", "-p", "7"], MineOptions(pid=7, budget=0.5)),
    ],
)
def test_ways_to_choose(
    arguments: list[str], expected: MineOptions, mined: list[MineOptions], outcome: Outcome
) -> None:
    """Each way to choose a program works alone; options after CMD belong to CMD."""
    assert outcome("mine", *arguments)[0] == 0
    assert mined == [expected]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say which program"),
        (["-p", "1", "--exe", "/x"], "choose one program, not -p PID and --exe PATH"),
        (["-p", "1", "--", "sh"], "choose one program"),
        (["--unit", "u", "--user", "x"], "there is no CMD"),
        (["--", "/no/such/program"], "no such command"),
        (["--", "no-such-program"], "no such command"),
        (["--", "/etc/passwd"], "not executable"),
        (["-p", "1", "--duration", "0"], "between 0 s and a year"),
        (["-p", "1", "--duration", "nan"], "between 0 s and a year"),
        (["-p", "1", "--duration", "soon"], "is not a duration"),
        (["-p", "1", "--budget", "0"], "above 0"),
        (["-p", "1", "--budget", "150%"], "at most 100%"),
        (["-p", "1", "--budget", "-1%"], "is not a ratio"),
        (["-p", "one"], "is not a valid integer"),
        (["-p", "1", "--store", "/"], "cannot write the store /"),
        (["-p", "1", "--record", "/no/folder/r"], "no folder /no/folder"),
        (["-p", "1", "--output", "/no/folder/o"], "cannot write /no/folder/o"),
    ],
)
def test_wrong_usage_is_found_before_anything_starts(
    arguments: list[str], message: str, mined: list[MineOptions], outcome: Outcome
) -> None:
    """What is wrong with the options is one line and code 2, and nothing has started."""
    for command in ("mine", "record"):
        if command == "record" and {"--store", "--output", "--record"} & set(arguments):
            continue
        extra = ["--output", "/dev/null"] if command == "record" else []
        code, out, err = outcome(command, *extra, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
    assert mined == []


@pytest.mark.parametrize("choice", [["-p", "1"], ["--exe", "/bin/sh"], ["--unit", "u"], ["--", "sh"]])
def test_without_privilege_nothing_is_started(
    choice: list[str], mined: list[MineOptions], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Outcome
) -> None:
    """One line says what is missing, code 4; no session begins, no file is made."""
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 1 << privilege.CAPABILITIES["CAP_BPF"])
    for command in ("mine", "record"):
        code, out, err = outcome(command, "--output", tmp_path / "o", *choice)
        assert (code, out, err.count("\n")) == (4, "", 1)
        assert "without CAP_PERFMON; run as root" in err
    assert mined == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("choice", "said"),
    [(["-p", str(1 << 22)], "there is no process"), (["--exe", "/nowhere"], "/nowhere is not a file")],
)
def test_without_privilege_what_is_not_there_is_told_first(
    choice: list[str], said: str, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    """Privileges would not help: a wrong choice is code 2 for everybody."""
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    for command in ("mine", "record"):
        code, out, err = outcome(command, "--output", "-", *choice)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err


def test_the_interpreter_of_the_configuration_may_have_rights_of_its_own(
    mined: list[MineOptions], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Outcome
) -> None:
    """Where its file brings them, the session is begun; a configuration that is wrong is found before."""
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    interpreter, config = tmp_path / "python3", tmp_path / "c.yaml"
    interpreter.touch()
    interpreter.chmod(0o4755)
    config.write_text(f"kernel: {{interpreter: {interpreter}}}")
    assert outcome("mine", "--config", config, "-p", "1")[0] == 0
    assert mined == [MineOptions(pid=1, config=config)]
    config.write_text("kernel: {interpret: x}")
    assert outcome("mine", "--config", config, "-p", "1")[0] == 2


def test_a_refusal_loads_nothing_of_the_session() -> None:
    """What mines takes a second to import: who may not use it waits for none of that."""
    code = (
        "import sys; from specmine.probes.kernel import privilege; from specmine.cli.main import main\n"
        "privilege.effective_capabilities = lambda: 0\n"
        "try: main()\n"
        "finally: print(sorted(set(sys.modules) & {'numpy', 'specmine.daemon.foreground', 'specmine.probes.source'}))"
    )
    done = subprocess.run([sys.executable, "-c", code, "mine", "-p", "1"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "[]\n"), done.stderr


def test_nothing_stable_is_3(mined: list[MineOptions], document: dict[str, Any], outcome: Outcome) -> None:
    """Without a single stable function what there is is printed, with code 3."""
    document["functions"] = document["functions"][3:]
    code, out, _ = outcome("mine", "-p", "1")
    assert code == 3
    assert "Nothing is stable enough" in out
    assert "3 of 5 observations of at least 200 calls that agree [learning]" in out
    assert outcome("mine", "-p", "1", "--format", "json")[0] == 3


def test_output_gets_json_or_what_is_asked(
    mined: list[MineOptions], document: dict[str, Any], tmp_path: Path, outcome: Outcome
) -> None:
    """A file gets JSON unless text is asked for; standard output stays empty then."""
    target = tmp_path / "spec"
    code, out, err = outcome("mine", "-p", "1", "--output", target)
    assert (code, out) == (0, "")
    assert f"wrote {target}" in err
    assert json.loads(target.read_text()) == document
    outcome("mine", "-p", "1", "--output", target, "--format", "text")
    assert target.read_text() == mined_text()
    assert outcome("mine", "-p", "1", "--format", "json")[1].startswith('{\n "schema": "specmine.specification/1"')
    assert [each.name for each in tmp_path.iterdir()] == ["spec"]


@pytest.mark.parametrize(("status", "words"), [(0, "with status 0"), (3, "with status 3"), (-15, "by signal 15")])
def test_how_the_program_ended_is_said_and_is_not_our_code(
    status: int, words: str, mined: list[MineOptions], document: dict[str, Any], outcome: Outcome
) -> None:
    """The exit status of CMD is shown; it does not change ours."""
    document["program"]["exit_status"] = status
    code, out, _ = outcome("mine", "--", "sh")
    assert code == 0
    assert f"The program ended {words}.\n" in out


@pytest.mark.parametrize(("error", "code"), [(InputError("no process 9"), 2), (HostError("not root"), 4)])
def test_errors_of_the_session(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Outcome
) -> None:
    """What the session cannot do is one more line with its code; no file is left."""

    def mine(*_: object) -> MineResult:
        raise error

    monkeypatch.setattr(foreground, "mine", mine)
    got, out, err = outcome("mine", "-p", "9", "--output", tmp_path / "o")
    assert (got, out) == (code, "")
    assert err.splitlines()[-1] == f"specmine: {error}"
    assert not list(tmp_path.iterdir())


def test_named_functions_that_are_not_there_are_2(
    mined: list[MineOptions], document: dict[str, Any], outcome: Outcome
) -> None:
    """--function that names nothing in the program is a mistake; where that is not sure it is lack of data."""
    document["functions"] = []
    code, out, err = outcome("mine", "-p", "1", "--function", "nosuch", "--function", "no*")
    assert (code, out) == (2, "")
    assert err.endswith("specmine: no function of the program matches nosuch or no*\n")
    assert outcome("mine", "-p", "1", "--function", "z")[0] == 3


def test_record_keeps_what_was_seen(
    mined: list[MineOptions], document: dict[str, Any], tmp_path: Path, outcome: Outcome
) -> None:
    """record asks the session for a recording and prints no data; without an observation it is 3."""
    code, out, err = outcome("record", "-p", "1", "--duration", "2", "--output", tmp_path / "r")
    assert (code, out) == (0, "")
    assert mined == [MineOptions(pid=1, duration_s=2.0, record=tmp_path / "r")]
    assert "32 observations" in err
    document["functions"] = document["functions"][4:]
    assert outcome("record", "-p", "1", "--output", tmp_path / "r")[0] == 3


def test_replay_prints_what_mine_printed(
    mined: list[MineOptions],
    document: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    outcome: Outcome,
) -> None:
    """Replay of the same data gives the same bytes, in both formats and into a file."""
    monkeypatch.setattr(replaying, "replay", lambda path, *, settings, report: document)
    for form in ("text", "json"):
        code, out, err = outcome("replay", tmp_path / "r", "--format", form)
        assert (code, out, err) == (0, outcome("mine", "-p", "1", "--format", form)[1], "")
    outcome("replay", tmp_path / "r", "--output", tmp_path / "o")
    assert json.loads((tmp_path / "o").read_text()) == document
    document["functions"] = []
    assert outcome("replay", tmp_path / "r")[0] == 3


def test_replay_under_other_settings(
    monkeypatch: pytest.MonkeyPatch, document: dict[str, Any], tmp_path: Path, outcome: Outcome
) -> None:
    """With --config the settings of that file decide, and it is said that the loop is open."""
    given: list[Any] = []

    def replay(path: Path, *, settings: Any, report: Any) -> dict[str, Any]:
        given.append(settings)
        return document

    monkeypatch.setattr(replaying, "replay", replay)
    (tmp_path / "c.yaml").write_text("mining: {maximum_groups: 3}\n")
    _, _, err = outcome("replay", tmp_path / "r", "--config", tmp_path / "c.yaml")
    assert "open loop" in err
    assert given[0].mining.maximum_groups == 3
    (tmp_path / "c.yaml").write_text("minning: {}\n")
    code, _, err = outcome("replay", tmp_path / "r", "--config", tmp_path / "c.yaml")
    assert code == 2
    assert "minning" in err


@pytest.mark.parametrize("content", [None, b"", b"hello\n", b"\x1f\x8bno gzip", b"{}\n"])
def test_replay_of_what_is_no_recording_is_2(content: bytes | None, tmp_path: Path) -> None:
    """A missing or foreign file is one line."""
    if content is not None:
        (tmp_path / "r").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "specmine.cli", "replay", tmp_path / "r"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("specmine: ")


SESSION = textwrap.dedent(
    """
    import atexit, json, os, signal, sys, time
    from specmine.cli.main import main
    from specmine.daemon import foreground
    from specmine.probes.kernel import privilege

    def check(interpreter):
        if "early" in sys.argv:
            os.kill(os.getpid(), signal.SIGINT)

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    if "late" in sys.argv:
        atexit.register(interrupt)
    privilege.check_bpf = check
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as outside of nohup, which the tests may run under
    document = json.load(open(sys.argv.pop(1)))

    def mine(options, progress):
        until = time.monotonic() + 60
        print("ready", file=sys.stderr, flush=True)
        while progress(lambda: document) and time.monotonic() < until:
            time.sleep(0.01)
        if "stubborn" in options.functions:
            print("stopping", file=sys.stderr, flush=True)
            time.sleep(20)
        return foreground.MineResult(document=document)

    foreground.mine = mine
    main()
    """
)


def _started(*arguments: str) -> subprocess.Popen[str]:
    process = _session(*arguments)
    _wait_for(process, "ready\n")
    return process


def _session(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SESSION, str(DATA / "app.json"), "mine", "-p", "1", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for(process: subprocess.Popen[str], line: str) -> None:
    # Lines that came with it stay in this file's buffer, where communicate() does not see them
    assert process.stderr is not None
    while (got := process.stderr.readline()) != line:
        assert got, "it ended too early"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_shows_what_was_learned(number: signal.Signals) -> None:
    """The first signal ends the mining early, with its result and code 0."""
    process = _started("--format", "json")
    process.send_signal(number)
    out, _ = process.communicate(timeout=patient(60))
    assert process.returncode == 0
    assert json.loads(out)["functions"][0]["function"] == "z"


def test_an_interrupt_is_heard_in_the_background_of_a_shell() -> None:
    """A shell's script starts jobs with SIGINT ignored; `kill -INT` works all the same."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = _started("--format", "json")
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=patient(60))
    assert process.returncode == 0


def test_a_second_interrupt_gives_up() -> None:
    """The second ^C ends it at once with 130 and no data."""
    process = _started("--function", "stubborn")
    process.send_signal(signal.SIGINT)
    _wait_for(process, "stopping\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=patient(60))
    assert (process.returncode, out) == (130, "")
    assert err == "specmine: interrupted\n"


def test_an_interrupt_before_the_mining_ends_it_in_order() -> None:
    """One ^C while modules are imported is one ^C: the result so far and its code."""
    process = _session("--format", "json", "--function", "early")
    out, err = process.communicate(timeout=patient(60))
    assert (process.returncode, err) == (0, "ready\nspecmine: watching\n")
    assert json.loads(out)["functions"]


def test_an_interrupt_at_the_very_end_changes_nothing() -> None:
    """Who presses ^C once too often gets 130 all the same, and no traceback."""
    process = _started("--function", "stubborn", "--function", "late")
    process.send_signal(signal.SIGINT)
    _wait_for(process, "stopping\n")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=patient(60)) == ("", "specmine: interrupted\n")
    assert process.returncode == 130
