"""What tests of several folders share: when kernel tests run, the target programs and a cache, each made once."""

from __future__ import annotations

import os

# Before numpy is imported: on a busy host native threads wait for each other a hundred times longer than they compute.
# The product has one as well.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import ctypes
import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.turns import turn

PROGRAMS = Path(__file__).parent / "programs"

_WITH_BCC = "/usr/bin/python3"
_SYS_BPF = 321  # x86-64, the only machine that is supported
_MAP_CREATE, _MAP_TYPE_ARRAY = 0, 2

settings.load_profile("ci")
"""The same examples in each run, without a limit on their time; ``--hypothesis-profile default`` explores others."""

_FLAGS = {
    "plain": ["-O2", "-fno-omit-frame-pointer"],
    "stock": ["-O2", "-fomit-frame-pointer"],
    "stripped": ["-O2", "-fno-omit-frame-pointer", "-s"],
    "static": ["-O2", "-fno-omit-frame-pointer", "-static"],
    "hidden": ["-O2", "-fno-omit-frame-pointer", "-DHIDDEN"],
    "no-pie": ["-O2", "-fno-omit-frame-pointer", "-no-pie"],
}
"""Flags by variant. Distributions build like ``stock``."""


_LOADED_BY = {"dlopens": "plugin.so", "late": "thrower.so"}


@functools.cache
def missing_for_kernel_tests() -> str:
    """Return what this machine lacks to run kernel tests, '' if it lacks nothing.

    None of specmine's own code is asked: a fault in it has to fail tests, not to skip them.
    """
    if os.geteuid() != 0:
        return "not root"
    sizes = (ctypes.c_uint32 * 16)(_MAP_TYPE_ARRAY, 4, 8, 1)
    fd = ctypes.CDLL(None, use_errno=True).syscall(_SYS_BPF, _MAP_CREATE, ctypes.byref(sizes), ctypes.sizeof(sizes))
    if fd < 0:
        return f"this kernel gives no BPF map: {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    try:
        found = subprocess.run([_WITH_BCC, "-I", "-c", "import bcc"], check=False, capture_output=True)
    except OSError as error:
        return f"{_WITH_BCC}: {error.strerror}"
    return "" if found.returncode == 0 else f"{_WITH_BCC} cannot import bcc: install python3-bpfcc"


def outcome_without_kernel(missing: str, ci: str | None) -> Callable[[str], object] | None:
    """Return how a kernel test ends before it begins: None if it can run, else pytest's fail or skip."""
    if not missing:
        return None
    return pytest.fail if ci and ci.lower() not in ("0", "false") else pytest.skip


unsaid: list[str] = []
"""Kernel tests in files that do not say so."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note a kernel test in a file that does not say so: ``make test`` would not read it for the kernel tests."""
    if item.get_closest_marker("kernel") and "mark.kernel" not in _text(item.path):
        unsaid.append(item.nodeid)


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a kernel test where it cannot run; in continuous integration fail it, so that no gap is green."""
    if item.get_closest_marker("kernel") is None:
        return
    end = outcome_without_kernel(missing_for_kernel_tests(), os.environ.get("CI"))
    if end is not None:
        end(f"kernel test: {missing_for_kernel_tests()}")


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all processes of a run of the tests have in common."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(autouse=True)
def in_turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run kernel tests beside each other, but one marked ``alone`` while no other runs."""
    if request.node.get_closest_marker("kernel") is None or "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    request.getfixturevalue("loaded_once")  # outside of its turn: others need not wait for it
    with turn(shared_folder(tmp_path_factory), alone=request.node.get_closest_marker("alone") is not None):
        yield


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder in which all tests keep compiled BPF programs and calibrated prices; daemons use it too."""
    folder = shared_folder(tmp_path_factory) / "cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHE_DIRECTORY", str(folder))
        yield folder


@pytest.fixture(scope="session")
def loaded_once(cache: Path) -> None:
    """Compile, load and calibrate once for all processes of a run, which begin together: each would do all of it."""
    subprocess.run([sys.executable, "-m", "tests.support.loading", cache], cwd=PROGRAMS.parents[1], check=True)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function (name, variant="plain") -> path of the target program, compiled at its first use."""
    folder = tmp_path_factory.mktemp("programs")

    @functools.cache
    def build(name: str, variant: str = "plain") -> Path:
        target = folder / variant / name
        target.parent.mkdir(exist_ok=True)
        source = next(PROGRAMS.glob(f"{name.removesuffix('.so')}.c*"))
        compiler = ["g++"] if source.suffix == ".cc" else ["gcc", "-std=gnu11"]
        shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
        command = [*compiler, "-g", "-Wall", "-Wextra", "-Werror", *_FLAGS[variant], *shared]
        subprocess.run([*command, "-o", target, source, "-lm", "-lpthread"], check=True)
        if name in _LOADED_BY:
            build(_LOADED_BY[name], variant)
        return target

    return build
