"""A program that is deployed again is watched on: calls are counted in whatever file its build lies now."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.product import Daemon, daemon, running, wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

Programs = Callable[..., Path]


def counted(one: Daemon, name: str) -> int:
    """Return how many calls of a function were counted."""
    functions: list[dict[str, Any]] = (one.ask("functions") or {}).get("functions", [])
    return sum(each["calls_counted"] for each in functions if each["function"] == name)


def wait_for_calls(one: Daemon, name: str) -> None:
    """Wait until more calls are counted than now."""
    before = counted(one, name)
    wait_until(lambda: counted(one, name) > before + 20, f"calls of {name}")


def put(source: Path, target: Path) -> None:
    """Put a copy under the name, as package managers do: another file, moved over the old one."""
    fresh = target.with_suffix(".new")
    shutil.copy(source, fresh)
    fresh.rename(target)


def test_the_same_build_under_a_new_inode_is_followed(program: Programs, tmp_path: Path) -> None:
    """Restarted three times from another copy, then from the first one by another name: each time calls are counted."""
    path, source = tmp_path / "shop", program("single")
    put(source, path)
    with daemon(tmp_path, programs=f"[{{exe: {path}}}]", functions="{watch: [smooth]}") as one:
        one.start()
        inodes = set()
        for _ in range(4):
            inodes.add(os.stat(path).st_ino)
            with running(path, 300) as child:
                wait_for_calls(one, "smooth")
                assert child.poll() is None
            put(source, path)
        assert len(inodes) > 1
        status = one.ask("status") or {}
        assert {each["build_id"] for each in status["lifetimes"]} <= {""} | {
            each["build_id"] for each in (one.ask("functions") or {})["functions"]
        }


def test_workers_that_are_replaced_one_by_one_are_counted(program: Programs, tmp_path: Path) -> None:
    """While some run from the old copy and some from the new one calls are counted, and when all are new as well."""
    path, source = tmp_path / "shop", program("single")
    put(source, path)
    with daemon(tmp_path, programs=f"[{{exe: {path}}}]", functions="{watch: [smooth]}") as one:
        one.start()
        with running(path, 300) as first:
            wait_for_calls(one, "smooth")
            put(source, path)
            with running(path, 300), running(path, 300):
                wait_for_calls(one, "smooth")
                first.kill()
                first.wait()
                wait_for_calls(one, "smooth")
