"""One run of one build: made by its recipe, executed, its durations read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specmine.fleet.lab.measuring import Bench, GivenUp, Measured, RunFailed, counted
from specmine.model.clock import SystemClock
from tests.support.labs import benchmark


def _bench(tmp_path: Path, command: str, **given: Any) -> Bench:
    made = benchmark(builds={"v1": command, "v2": "false"}, folder=str(tmp_path), **given)
    return Bench(benchmark=made, folder=tmp_path / "work", clock=SystemClock())


def _sh(script: str) -> str:
    return f'/bin/sh -c "{script}"'


def _lists(found: Measured) -> dict[str, list[float]]:
    return {each.function: list(each.durations_ns) for each in found.found if each.durations_ns is not None}


def test_csv_and_ndjson_by_function(tmp_path: Path) -> None:
    """On standard output or in a file; in the order of time, where lines have one."""
    (tmp_path / "p.sh").write_text("echo function,duration_ns; echo f,5; echo g,7; echo f,$SPECMINE_CALLS\n")
    csv = _bench(tmp_path, "/bin/sh p.sh")
    csv.folder.mkdir()
    assert _lists(csv.run("v1", 0, 3)) == {"f": [5, 3], "g": [7]}
    (tmp_path / "o.sh").write_text(
        'printf \'{"duration_ns": 5, "time_ns": 2}\\n{"duration_ns": 6, "time_ns": 1}\\n\' > "$1"; echo hello\n'
    )
    ndjson = _bench(tmp_path, "/bin/sh o.sh {output}")
    assert _lists(ndjson.run("v1", 0, 2)) == {"all": [6, 5]}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (_sh("echo duration_ns; echo x"), "line 2"),
        (_sh("echo hello"), "neither CSV nor NDJSON|lacks|cannot tell"),
        ("true", "no duration"),
        (_sh("echo broken >&2; exit 9"), "exit status 9: broken"),
        ("./not-there", "not-there"),
    ],
)
def test_runs_that_give_nothing(tmp_path: Path, command: str, says: str) -> None:
    """Each with its reason."""
    bench = _bench(tmp_path, command)
    bench.folder.mkdir()
    with pytest.raises(RunFailed, match=says):
        bench.run("v1", 0, 3)


def test_a_recipe_is_followed_once_for_each_making(tmp_path: Path) -> None:
    """In an empty folder, in which the command runs; one that fails is no run."""
    recipe = f"ls -A > seen; echo x >> {tmp_path}/made; echo 'echo duration_ns; echo 8' > app"
    made = benchmark(builds={"v1": {"recipe": recipe, "command": "/bin/sh app"},
                             "v2": {"recipe": "echo no >&2; exit 2", "command": "true"}})  # fmt: skip
    bench = Bench(benchmark=made, folder=tmp_path / "work", clock=SystemClock())
    bench.folder.mkdir()
    for making in (0, 0, 1):
        assert _lists(bench.run("v1", making, 1)) == {"all": [8]}
    assert (tmp_path / "made").read_text() == "x\nx\n"
    assert (bench.make("v1", 1) / "seen").read_text() == "seen\n"
    with pytest.raises(RunFailed, match="its recipe failed: exit status 2: no"):
        bench.run("v2", 0, 1)


def test_functions_that_nobody_asked_for_are_left_out(tmp_path: Path) -> None:
    """By glob."""
    bench = _bench(tmp_path, _sh("printf 'function,duration_ns\\nread,5\\nwrite,7\\n'"), functions=["wr*"])
    bench.folder.mkdir()
    assert _lists(bench.run("v1", 0, 1)) == {"write": [7]}


def test_a_run_that_is_given_up(tmp_path: Path) -> None:
    """It is nobody's failure."""
    bench = _bench(tmp_path, "sleep 99")
    bench.folder.mkdir()
    bench.every_s = 0.02
    with pytest.raises(GivenUp):
        bench.run("v1", 0, 1, lambda: False)


def test_what_counts(tmp_path: Path) -> None:
    """The planned calls after the warm-up; rarer functions keep what they have; too few of all is a failure."""
    lines = "".join(f"f,{at}\\n" for at in range(10)) + "g,1\\ng,2\\ng,3\\n"
    bench = _bench(tmp_path, _sh(f"printf 'function,duration_ns\\n{lines}'"))
    bench.folder.mkdir()
    found = bench.run("v1", 0, 10).found
    kept = counted(found, 2, 5)
    assert [list(each.durations_ns) for each in kept if each.durations_ns is not None] == [[2, 3, 4, 5, 6], [3]]
    assert [each.warmup for each in kept] == [2, 2]
    with pytest.raises(RunFailed, match="8 calls after its warm-up, 9 are planned"):
        counted(found, 2, 9)
    with pytest.raises(RunFailed):
        counted(found, 20, None)
    assert [each.sample.calls for each in counted(found, 0, None)] == [10, 3]
