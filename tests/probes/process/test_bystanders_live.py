"""Other users' file names do not end the watching of a program."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specmine.model.observation import Kind
from specmine.probes.process.mappings import executable_mappings
from tests.support.source_driver import driven, running

pytestmark = pytest.mark.kernel


@contextmanager
def nobodys_process(folder: Path, name: str) -> Iterator[int]:
    """Start a process of another user whose executable has this name."""
    path = shutil.copy("/bin/sleep", folder / name)
    with subprocess.Popen([path, "600"], user="nobody", group="nogroup", extra_groups=[], cwd="/") as child:
        try:
            yield child.pid
        finally:
            child.kill()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_another_users_file_names_cost_nothing(program: Callable[..., Path], folder: Path) -> None:
    """A watched program goes on being watched, whatever strangers before and after it map and whatever it maps."""
    target = folder / "x\udcff\x0c7f0000000000-7f0000001000 r-xp 00000000 fe:00 42 y"
    shutil.copy(program("paths"), target)
    with nobodys_process(folder, "a\x0cb") as first, running(target, 600) as child, driven(child.pid, "z") as driver:
        assert {each.path for each in executable_mappings(first)} >= {str(folder / "a\x0cb")}
        module = driver.functions[driver.watch("z", Kind.TIME)].frame.module
        assert module == target.name.replace("\udcff", "\\xff")
        driver.poll(lambda: driver.observations)
        with nobodys_process(folder, "c\x0b\u2028d"):
            number = len(driver.observations)
            driver.poll(lambda: len(driver.observations) >= number + 2)
