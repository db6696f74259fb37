"""Run the kernel tests that matter on other kernels, in QEMU without KVM, and print a table. ``make kernels`` calls it.

usage: python -m tests.kernels.run [--only TEXT] [--keep FOLDER]. Takes half an hour a kernel on two quiet CPUs.

Kernels are Debian's packages, downloaded and unpacked into a folder, not installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
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


def read(report: Path, release: str) -> Row:
    """Read what pytest says of its tests."""
    passed, skipped, prices = 0, 0, ""
    failed: list[str] = []
    for case in ET.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", ""))
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
        for each in case.iter("property"):
            if each.get("name") == "prices":
                prices = each.get("value", "")
    return Row(release=release, passed=passed, failed=tuple(failed), not_applicable=skipped, prices=prices)


def every_kernel_files() -> list[str]:
    """Return the files that hold such tests; looking writes the byte code, which a read-only root needs ready."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "every_kernel", "--collect-only"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    said = subprocess.run(pytest, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    return sorted({line.partition("::")[0] for line in said.splitlines() if "::" in line})


def test_on(kernels: Path, release: str, kept: Path) -> Row:
    """Boot a kernel and run the tests there."""
    shared = kept / release
    shared.mkdir(exist_ok=True)
    command = (
        f"cd {ROOT} && export PYTHONPATH={ROOT / 'src'} PYTHONDONTWRITEBYTECODE=1 "
        "HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis "
        f"SPECMINE_TIME_SCALE={SLOWER} SPECMINE_TEST_PATIENCE={SLOWER} && "
        f"{sys.executable} -m pytest -p no:cacheprovider -v -m every_kernel --junitxml=/run/shared/report.xml "
        f"{' '.join(every_kernel_files())}"
    )
    subprocess.run([HERE / "guest.sh", kernels, release, shared, command], check=False)
    report = shared / "report.xml"
    if not report.exists():
        said = [path for path in (shared / "output", shared / "console") if path.exists()]
        return Row(release=release, failed=(f"no report; see {' '.join(map(str, said))}",))
    return read(report, release)


def test_here(kept: Path) -> Row:
    """Run the same tests on the running kernel."""
    report = kept / "here.xml"
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "every_kernel"]
    subprocess.run([*pytest, f"--junitxml={report}"], cwd=ROOT, check=False)
    return read(report, platform.release())


def table(rows: list[Row]) -> str:
    """Return the table."""
    lines = ["| kernel | passed | failed | not applicable | counted call; ratios of timed, by path (link) |"]
    lines.append("| --- | --- | --- | --- | --- |")
    lines += [
        f"| {row.release} | {row.passed} | {len(row.failed)} | {row.not_applicable} | {row.prices} |" for row in rows
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
    rows = [test_here(given.keep)] if given.only in ("", "here") else []
    for version, pattern in WANTED.items():
        if given.only in ("", version):
            package = newest(pattern)
            if package:
                rows.append(test_on(given.keep, unpack(package, given.keep), given.keep))
            else:
                rows.append(Row(release=version, failed=(f"apt knows no package {pattern}: apt-get update",)))
    print(table(rows))
    return 1 if any(row.failed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
