"""Run the kernel tests that matter on other kernels, in QEMU without KVM, and print a table. ``make kernels`` calls it.

usage: python -m tests.kernels.run [--only TEXT] [--keep FOLDER]. Takes half an hour a kernel on two quiet CPUs.

Kernels are Debian's packages, downloaded and unpacked into a folder, not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

HERE = Path(__file__).parent
WANTED = {"6.1": r"linux-image-6\.1\.0-\d+-amd64", "6.12": r"linux-image-6\.12\.[\d.]+\+deb12-amd64"}
"""Debian 12's own kernel and that of its backports; the cloud flavour has no file system of the host (9p)."""
SLOWER = 20
"""How much slower the emulated CPU is (guest.sh): time limits are so many times as long."""
_DEPENDS = ("qemu-system-x86", "busybox-static", "kmod", "cpio", "xz-utils")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of the tests on one kernel."""

    release: str
    passed: int = 0
    failed: tuple[str, ...] = ()
    not_applicable: int = 0
    not_run: int = 0
    prices: str = ""


def newest(pattern: str) -> str:
    """Return the package of the newest kernel whose name matches, '' if the package lists know none."""
    names = subprocess.run(
        ["apt-cache", "pkgnames", "linux-image-6."], check=True, capture_output=True, text=True
    ).stdout.split()
    found = [name for name in names if re.fullmatch(pattern, name)]
    return max(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)], default="")


def unpack(package: str, folder: Path) -> str:
    """Download and unpack one kernel; return its release."""
    release = package.removeprefix("linux-image-")
    if not (folder / "boot" / f"vmlinuz-{release}").exists():
        subprocess.run(["apt-get", "download", "--quiet=2", package], cwd=folder, check=True)
        archive = next(folder.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg-deb", "--extract", archive, folder], check=True)
        subprocess.run(["depmod", "--basedir", folder, release], check=True)
    return release


def read(lines: Path, release: str, tests: int) -> Row:
    """Read the lines of ``result_lines``; ``tests`` is how many there were to run."""
    outcomes: dict[str, str] = {}
    prices = ""
    for line in lines.read_text().splitlines():
        told = json.loads(line)
        if outcomes.get(told["name"]) != "failed":  # a test that failed, or its end after it passed
            outcomes[told["name"]] = told["outcome"]
        prices = told["properties"].get("prices", prices)
    ended = list(outcomes.values())
    return Row(
        release=release,
        passed=ended.count("passed"),
        failed=tuple(name for name, outcome in outcomes.items() if outcome == "failed"),
        not_applicable=ended.count("skipped"),
        not_run=tests - len(ended),
        prices=prices,
    )


def every_kernel_tests() -> list[str]:
    """Return the names of such tests; looking writes the byte code, which a read-only root needs ready."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "every_kernel", "--collect-only"]
    said = subprocess.run(pytest, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    return [line for line in said.splitlines() if "::" in line]


def pytest_command(lines: Path, tests: list[str]) -> list[str]:
    """Return the command that runs these tests and writes a line for each."""
    options = ["-p", "no:cacheprovider", "-v", "-p", "tests.kernels.result_lines", "--result-lines", str(lines)]
    return [sys.executable, "-m", "pytest", *options, *tests]


def test_on(kernels: Path, release: str, kept: Path, tests: list[str]) -> Row:
    """Boot a kernel and run the tests there."""
    shared = kept / release
    shared.mkdir(exist_ok=True)
    lines = shared / "lines"
    lines.unlink(missing_ok=True)
    command = (
        f"cd {ROOT} && export PYTHONPATH={ROOT / 'src'} PYTHONDONTWRITEBYTECODE=1 "
        "HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis "
        f"SPECMINE_TIME_SCALE={SLOWER} SPECMINE_TEST_PATIENCE={SLOWER} && "
        + shlex.join(pytest_command(Path("/run/shared/lines"), tests))
    )
    subprocess.run([HERE / "guest.sh", kernels, release, shared, command], check=False)
    if not lines.exists():
        said = [path for path in (shared / "output", shared / "console") if path.exists()]
        return Row(release=release, failed=(f"no test began; see {' '.join(map(str, said))}",), not_run=len(tests))
    return read(lines, release, len(tests))


def test_here(kept: Path, tests: list[str]) -> Row:
    """Run the same tests on the running kernel."""
    lines = kept / "here.lines"
    subprocess.run(pytest_command(lines, tests), cwd=ROOT, check=False)
    return read(lines, platform.release(), len(tests))


def table(rows: list[Row]) -> str:
    """Return the table."""
    heads = ("kernel", "passed", "failed", "not applicable", "not run", "counted call; ratios of timed, by path (link)")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [
        f"| {row.release} | {row.passed} | {len(row.failed)} | {row.not_applicable} | {row.not_run} | {row.prices} |"
        for row in rows
    ]
    lines += [f"{row.release}: {name} failed" for row in rows for name in row.failed]
    return "\n".join(lines)


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(description="Run the kernel tests that matter on other kernels.")
    parser.add_argument("--only", default="", help="kernels whose version begins so, or `here`")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "specmine-kernels", metavar="FOLDER")
    given = parser.parse_args()
    given.keep.mkdir(exist_ok=True)
    subprocess.run([ROOT / ".ci/packages", *_DEPENDS], check=True)
    tests = every_kernel_tests()
    rows = [test_here(given.keep, tests)] if given.only in ("", "here") else []
    for version, pattern in WANTED.items():
        if given.only in ("", version):
            package = newest(pattern)
            if package:
                rows.append(test_on(given.keep, unpack(package, given.keep), given.keep, tests))
            else:
                rows.append(Row(release=version, failed=(f"apt knows no package {pattern}: apt-get update",)))
    print(table(rows))
    return 1 if any(row.failed or row.not_run for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
