"""``specmine mine`` on programs whose truth is known, and the replay of what it recorded."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.product import PATIENCE_S, specmine
from tests.support.truth import function_named, wrong_about_single

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

Programs = Callable[..., Path]
ROUND_S = 8
ROUNDS = 12
BUDGET = ("--budget", "20%")


def mined(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Mine a command for a round and return how that ended."""
    done = specmine(
        "mine", "--duration", ROUND_S, *BUDGET, "--format", "json", *arguments, timeout_s=ROUND_S + PATIENCE_S
    )
    assert done.returncode in (0, 3), done.stderr
    return done


def learned(store: Path, path: Path, name: str, state: str, *options: str) -> dict[str, Any]:
    """Mine into a store, round after round, until a function is learned: how soon that is depends on the host."""
    for _ in range(ROUNDS):
        done = mined("--store", store, *options, "--", path, 600)
        document: dict[str, Any] = json.loads(done.stdout)
        if function_named(document, name)["state"] == state:
            return document
    raise AssertionError(f"{name} is {function_named(document, name)}")


def test_behaviours_are_distinguished(program: Programs, tmp_path: Path) -> None:
    """z has the behaviours b->c and not b->c, of which the first is faster; bench.truth.mine judges the shares."""
    document = learned(tmp_path / "store", program("paths"), "z", "explained", "--function", "z")
    shares = {each["expression"]: each["shares"] for each in function_named(document, "z")["behaviours"]}
    assert shares.keys() == {"b->c", "not b->c"}
    assert shares["b->c"][0] > shares["not b->c"][0]
    assert document["schema"] == "specmine.specification/1"
    assert document["program"]["exit_status"] == 0


def test_replay_is_exact(program: Programs, tmp_path: Path) -> None:
    """The replay of a recorded mining prints the same specification, wherever it runs."""
    recording = tmp_path / "recording"
    done = mined("--record", recording, "--", program("paths"), 600)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for seed, zone, folder in (("1", "Asia/Kathmandu", elsewhere), ("77", "America/St_Johns", Path("/"))):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "OMP_NUM_THREADS": seed[0]}
        again = specmine("replay", "--format", "json", recording, cwd=folder, env=environment)
        assert again.returncode == done.returncode, again.stderr
        assert again.stdout == done.stdout


@pytest.mark.alone  # other tests give durations a second mode
def test_one_behaviour_has_no_border(program: Programs, tmp_path: Path) -> None:
    """A skewed duration with one mode gets no border, in the function or its caller."""
    document = learned(tmp_path / "store", program("single"), "smooth", "single")
    assert wrong_about_single(document) == ""
