"""The Debian package in a clean Debian root: install, first numbers, upgrade, remove, purge. ``make cleanroot``; root.

The first numbers are asked for under a systemd in the host's process namespace (host_systemd.sh), since in another one
the kernel counts by other process ids. The unit's life is asked for under a systemd that is PID 1 of namespaces, whose
daemon is made to believe that its namespace is the host's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.patience import patient

HERE = Path(__file__).parent
BASE = Path(tempfile.gettempdir()) / "specmine-clean-root"
"""A minimal Debian, made once by debootstrap."""
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
FIRST_NUMBERS_S = 60.0
PORT = 19753
_QUIET = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


class Rows:
    """What is printed: a row a behaviour."""

    def __init__(self) -> None:
        self.failed = 0

    def row(self, name: str, *, ok: bool, detail: object = "") -> None:
        """Print one row."""
        self.failed += not ok
        print(f"{'ok' if ok else 'FAILED':7}{name:58} {detail}", flush=True)


def run(*argv: object, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a command; its output in one text."""
    return subprocess.run(
        [str(a) for a in argv], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_QUIET,
        timeout=patient(timeout_s),
    )  # fmt: skip


def base() -> Path:
    """Return the minimal Debian."""
    if not (BASE / "usr/bin/dpkg").exists():
        subprocess.run([ROOT / ".ci/packages", "debootstrap"], check=True)
        subprocess.run(["debootstrap", "--variant=minbase", SUITE, BASE, MIRROR], check=True, stdout=subprocess.DEVNULL)
    return BASE


@contextmanager
def copy_of(lower: Path) -> Iterator[Path]:
    """Lay a layer in memory over a root; with proc, sys and dev."""
    folder = Path(tempfile.mkdtemp(prefix="specmine-root-"))
    root = folder / "layer/root"
    try:
        run("mount", "-t", "tmpfs", "layer", _made(folder / "layer"))
        upper, work = _made(folder / "layer/upper"), _made(folder / "layer/work")
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", _made(root))
        for each in ("proc", "sys", "dev"):
            run("mount", "--rbind", f"/{each}", root / each)
            run("mount", "--make-rslave", root / each)
        (root / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
        yield root
    finally:
        for each in ("proc", "sys", "dev", ""):
            run("umount", "--recursive", "--lazy", root / each)
        run("umount", "--lazy", folder / "layer")
        shutil.rmtree(folder, ignore_errors=True)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def inside(root: Path, *argv: object, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a command in the root."""
    return run("chroot", root, *argv, timeout_s=timeout_s)


def packages(folder: Path) -> tuple[Path, Path]:
    """Build the package, and the same as a later revision."""
    built = run(ROOT / "packaging/deb.sh", folder)
    first = Path(built.stdout.strip().splitlines()[-1])
    assert first.is_file(), built.stdout
    second = Path(str(first).replace("-1_", "-2_"))
    run("dpkg-deb", "--raw-extract", first, folder / "again")
    control = folder / "again/DEBIAN/control"
    control.write_text(control.read_text().replace("-1\n", "-2\n", 1))
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", folder / "again", second)
    return first, second


def install(rows: Rows, root: Path, deb: Path) -> None:
    """Install it into the root, where nothing else is."""
    shutil.copy(deb, root / "tmp")
    inside(root, "apt-get", "-qq", "update")
    began_s = time.monotonic()
    done = inside(root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", f"/tmp/{deb.name}")
    ok = done.returncode == 0 and inside(root, "specmine", "--version").returncode == 0
    detail = f"{time.monotonic() - began_s:.0f} s" if ok else done.stdout[-600:]
    rows.row("apt install into a minimal Debian", ok=ok, detail=detail)
    checked = inside(root, "specmined", "--check-config")
    rows.row("the default configuration passes --check-config", ok=checked.returncode == 0, detail=checked.stdout[:70])


def first_numbers(rows: Rows, root: Path) -> None:
    """One line of configuration, then ``systemctl enable --now``: how long until there are numbers, on both screens."""
    done = inside(root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "systemd")
    assert done.returncode == 0, done.stdout[-600:]
    target = root / "usr/local/bin/app"
    source = ROOT / "tests/programs/paths.c"
    built = run("gcc", "-std=gnu11", "-O2", "-fno-omit-frame-pointer", "-o", target, source, "-lm", "-lpthread")
    assert built.returncode == 0, built.stdout
    with (root / "etc/specmine/specmined.yaml").open("a") as file:
        file.write("programs: [{name: app, exe: /usr/local/bin/app}]\n")
    program = subprocess.Popen(
        ["chroot", root, "/usr/local/bin/app", "1000000", "2000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    page = None
    try:
        with systemd(root) as systemctl:
            began_s = time.monotonic()
            enabled = systemctl("enable", "--now", "specmined")
            rows.row("systemctl enable --now specmined, by a real systemd", ok=enabled.returncode == 0,
                     detail=enabled.stdout.strip()[-200:])  # fmt: skip
            page = subprocess.Popen(
                ["chroot", root, "specmine", "web", "--listen", f"127.0.0.1:{PORT}"], stderr=subprocess.DEVNULL
            )
            numbers: list[str] = []
            while not numbers and time.monotonic() - began_s < patient(3 * FIRST_NUMBERS_S):
                time.sleep(0.5)
                numbers = timed(inside(root, "specmine", "functions", "--format", "json").stdout)
            took_s = time.monotonic() - began_s
            detail = f"{took_s:.1f} s: {', '.join(numbers[:3])}" if numbers else "none"
            soon = bool(numbers) and took_s < patient(FIRST_NUMBERS_S)
            rows.row(
                "first numbers within 60 s of it", ok=soon, detail=f"{detail}; load average {os.getloadavg()[0]:.0f}"
            )
            shown = fetched(f"http://127.0.0.1:{PORT}/functions")
            took_s = time.monotonic() - began_s
            ok = bool(numbers) and numbers[0] in shown.replace("<wbr>", "")
            rows.row("the page shows them, too", ok=ok, detail=f"{took_s:.1f} s")
            pid = systemctl("show", "--property", "MainPID", "--value", "specmined").stdout.strip()
            owner = inside(root, "stat", "-c", "%U", f"/proc/{pid}").stdout.strip()
            rows.row("the daemon is not root", ok=owner == "specmine", detail=owner)
            status = inside(root, "specmine", "status")
            ok = status.returncode == 0 and "app" in status.stdout and bool(numbers)
            rows.row("status shows the program", ok=ok, detail=status.stdout.splitlines()[0] if status.stdout else "")
            # exit code 0 and the word for what is not there: a misspelt name is answered with what is meant
            asked = inside(root, "specmine", "show", f"{numbers[0]}x" if numbers else "none").stdout
            rows.row("a misspelt function is answered with its name", ok="did you mean" in asked,
                     detail=asked.strip()[:60])  # fmt: skip
            systemctl("stop", "specmined")
            code = systemctl("show", "--property", "Result", "--value", "specmined").stdout.strip()
            rows.row("systemctl stop: the daemon ends with 0", ok=code == "success", detail=code)
            systemctl("disable", "specmined")
    finally:
        for each in filter(None, (page, program)):
            each.terminate()
            each.wait(patient(30))
    shutil.rmtree(root / "run/systemd", ignore_errors=True)
    shutil.rmtree(root / "etc/systemd/user.conf.d", ignore_errors=True)
    shutil.rmtree(root / "run/units", ignore_errors=True)
    shutil.rmtree(root / "run/specmine", ignore_errors=True)


@contextmanager
def systemd(root: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run a systemd over the files of a root; yield its ``systemctl``."""
    with tempfile.TemporaryFile() as said:
        manager = subprocess.Popen([HERE / "host_systemd.sh", root], stdin=subprocess.PIPE, stdout=said, stderr=said)

        def systemctl(*words: str) -> subprocess.CompletedProcess[str]:
            variables = ("XDG_RUNTIME_DIR=/run", "XDG_CONFIG_HOME=/var/lib",
                         "SYSTEMD_UNIT_PATH=/run/units:/etc/systemd/system:/usr/lib/systemd/system")  # fmt: skip
            return inside(root, "env", *variables, "systemctl", "--user", *words)

        try:
            end_s = time.monotonic() + patient(20)
            while systemctl("is-active", "default.target").returncode != 0:
                if manager.poll() is not None or time.monotonic() > end_s:
                    said.seek(0)
                    raise RuntimeError(f"systemd did not start: {said.read().decode(errors='replace')[-800:]}")
                time.sleep(0.2)
            yield systemctl
        finally:
            assert manager.stdin is not None
            manager.stdin.close()
            manager.wait(patient(60))
            said.seek(0)
            print(textwrap.indent(said.read().decode(errors="replace")[-1500:], "       | "))


def timed(text: str) -> list[str]:
    """Return the functions that have a median."""
    try:
        functions = json.loads(text)["functions"]
    except (ValueError, KeyError):
        return []
    return [str(each["function"]) for each in functions if (each.get("quantiles") or {}).get("p50")]


def fetched(address: str) -> str:
    """Return a page, '' if it cannot be had."""
    try:
        with urllib.request.urlopen(address, timeout=patient(10)) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def unit_life(rows: Rows, root: Path, again: Path) -> None:
    """Under systemd: enable, upgrade, remove, purge."""
    shutil.copy(again, root / "tmp")
    with tempfile.TemporaryDirectory(prefix="specmine-package-") as shared:
        shutil.copy(HERE / "package_life.sh", shared)
        shutil.copy(again, Path(shared) / "again.deb")
        environment = {**os.environ, "CONTAINER_LOWER": str(root)}
        container: list[str | Path] = [ROOT / "tests/kernels/container.sh", shared, "bash /run/shared/package_life.sh"]
        with (Path(shared) / "console").open("wb") as said:
            subprocess.run(
                container, check=False, stdout=said, stderr=said, timeout=patient(300), env=environment,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        output = Path(shared) / "output"
        text = output.read_text() if output.exists() else (Path(shared) / "console").read_text(errors="replace")
        print(text, end="")
        status = Path(shared) / "status"
        ok = status.exists() and status.read_text().strip() == "0"
        rows.row("enable, upgrade, remove, purge under systemd", ok=ok)


def main() -> int:
    """Go through it all."""
    rows = Rows()
    with tempfile.TemporaryDirectory(prefix="specmine-packages-") as folder:
        first, again = packages(Path(folder))
        rows.row("the package is built", ok=True, detail=f"{first.name}, {first.stat().st_size / 1e6:.1f} MB")
        if shutil.which("lintian"):
            said = run("lintian", "--fail-on", "error", first)
            rows.row("lintian finds no error", ok=said.returncode == 0, detail=said.stdout[-200:].replace("\n", "; "))
        with copy_of(base()) as root:
            install(rows, root, first)
            first_numbers(rows, root)
            unit_life(rows, root, again)
    return 1 if rows.failed else 0


if __name__ == "__main__":
    sys.exit(main())
