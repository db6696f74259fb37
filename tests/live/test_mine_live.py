"""``specmine mine`` on programs whose truth is known, and the replay of what it recorded."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.product import specmine
from tests.support.truth import wrong_about_paths, wrong_about_single

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

Programs = Callable[..., Path]


def mined(*arguments: object, seconds: int) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Mine a command; return how that ended and the true counts that the command printed."""
    done = specmine("mine", "--duration", seconds, "--format", "json", *arguments, timeout_s=seconds + 60)
    assert done.returncode == 0, done.stderr
    counts: dict[str, Any] = json.loads(next(line for line in done.stderr.splitlines() if line.startswith("{")))
    return done, counts


def test_behaviours_are_told_apart_and_replay_is_exact(program: Programs, tmp_path: Path) -> None:
    """z has the behaviours b->c and not b->c with the true shares; replay prints the same anywhere."""
    recording = tmp_path / "recording"
    done, counts = mined("--record", recording, "--", program("paths"), 120, seconds=25)
    assert wrong_about_paths(json.loads(done.stdout), counts) == ""
    document = json.loads(done.stdout)
    assert document["schema"] == "specmine.specification/1"
    assert document["program"]["exit_status"] == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for seed, zone, folder in (("1", "Asia/Kathmandu", elsewhere), ("77", "America/St_Johns", Path("/"))):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "OMP_NUM_THREADS": seed[0]}
        again = specmine("replay", "--format", "json", recording, cwd=folder, env=environment)
        assert again.returncode == 0, again.stderr
        assert again.stdout == done.stdout


def test_one_behaviour_has_no_border(program: Programs) -> None:
    """A skewed duration with one mode gets no border, in the function or its caller."""
    done, _ = mined("--", program("single"), 120, seconds=15)
    assert wrong_about_single(json.loads(done.stdout)) == ""
