"""What an installation carries: every file of the code folders, from a wheel, a source archive, or -e."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from specmine.cli.setup.files import SHARED, UNITS
from tests.support.paths import ROOT

PACKAGED = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "src",
    "analysis",
    "cli",
    "daemon",
    "experiments",
    "mining",
    "model",
    "probes",
    "store",
    "systemd",
    "web",
)

_READ_DATA = """
import importlib.metadata
import importlib.resources
import specmine.daemon.config, specmine.probes
for name in ("calls.bpf.c", "histogram.h"):
    assert len(importlib.resources.files("specmine.probes").joinpath("bpf", name).read_bytes()) > 100
assert b"budget:" in importlib.resources.files("specmine.daemon.config").joinpath("default.yaml").read_bytes()
print(importlib.metadata.version("specmine"), specmine.__version__)
"""

pytestmark = pytest.mark.slow


def _run(command: Sequence[str | Path], folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def _pip(*arguments: str | Path, folder: Path, python: Path = Path(sys.executable)) -> str:
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python]
    return _run([*pip, "--quiet", "--disable-pip-version-check", *arguments], folder)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what is packaged: setuptools leaves build/ behind, and takes stale files from it."""
    copy = tmp_path_factory.mktemp("clone")
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                copy / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"),
            )
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel, built as ``pip install .`` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--wheel-dir", folder, clone, folder=folder)
    return next(folder.glob("specmine-*.whl"))


def _environment(folder: Path) -> Path:
    """Make an empty environment and return its interpreter."""
    venv.create(folder / "environment", with_pip=False, symlinks=True)
    return folder / "environment" / "bin" / "python"


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter that has what builds, and nothing else: pip would install it anew for each build."""
    folder = tmp_path_factory.mktemp("builder")
    python = _environment(folder)
    _pip("install", "--no-compile", "setuptools>=77", folder=folder, python=python)
    return python


def _code_files(clone: Path) -> set[str]:
    links = [p for p in (clone / "src" / "specmine").iterdir() if p.is_symlink()]
    files = {f"specmine/{p.relative_to(clone)}" for link in links for p in link.resolve().rglob("*") if p.is_file()}
    return files | {"specmine/__init__.py", "specmine/py.typed"}


def _carried(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {n for n in archive.namelist() if n.startswith("specmine/")}


def test_wheel_carries_every_file_of_the_code_folders(wheel: Path, clone: Path) -> None:
    """Code, BPF sources with their headers, the default configuration: all of it and nothing else."""
    expected = _code_files(clone)
    assert {"specmine/probes/bpf/calls.bpf.c", "specmine/daemon/config/default.yaml"} <= expected
    assert _carried(wheel) == expected


def test_wheel_by_way_of_a_source_archive_is_the_same(wheel: Path, clone: Path, builder: Path, tmp_path: Path) -> None:
    """The source archive holds files where the repository holds links, and gives the same wheel."""
    build = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
    _run([builder, "-c", build, tmp_path], clone)
    archive = next(tmp_path.glob("specmine-*.tar.gz"))
    how = ("--no-deps", "--no-build-isolation")
    _pip("wheel", *how, "--wheel-dir", tmp_path, archive, folder=tmp_path, python=builder)
    assert _carried(next(tmp_path.glob("specmine-*.whl"))) == _carried(wheel)


def test_installed_wheel_reads_its_data(wheel: Path, tmp_path: Path) -> None:
    """From any folder, an installed specmine finds its BPF sources and defaults, and has both commands."""
    python = _environment(tmp_path)
    _pip("install", "--no-deps", "--no-compile", wheel, folder=tmp_path, python=python)
    found, declared = _run([python, "-c", _READ_DATA], tmp_path).split()
    assert found == declared
    assert {"specmine", "specmined"} <= {p.name for p in python.parent.iterdir()}
    shared = {p.name for p in (python.parents[1] / "share/specmine").iterdir()}
    assert shared == {p.name for p in (ROOT / "systemd").iterdir()} > {*UNITS, *SHARED}, "what setup-service reads"


def test_editable_installation_reads_its_data(clone: Path, builder: Path, tmp_path: Path) -> None:
    """``pip install -e .`` finds the same, in the folders themselves."""
    _pip("install", "--no-deps", "--no-build-isolation", "--editable", clone, folder=tmp_path, python=builder)
    _run([builder, "-c", _READ_DATA], tmp_path)
