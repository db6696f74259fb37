"""Eleven ways to deploy a program again, each as its operators do it."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.lib.driver import ROOT, TARGETS

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
CGROUPS = Path("/sys/fs/cgroup")
BUILDS = 3


class Deployment:
    """One service: where its builds lie, which processes it has now, and what they say that they did."""

    copies = 1
    """Processes that are started by themselves."""
    workers = 0
    """Processes that each of them forks."""

    def __init__(self, folder: Path) -> None:
        """Compile the builds."""
        self.folder, self.path, self.truth = folder, folder / "live" / "shop", folder / "truth"
        self.path.parent.mkdir()
        self.truth.touch()
        self.builds = [compiled(folder / f"build{n}", n) for n in range(BUILDS)]
        self.running: list[subprocess.Popen[bytes]] = []
        self.execs = 0

    @property
    def chosen(self) -> str:
        """How the configuration names it."""
        return f"{{exe: {self.path}}}"

    @property
    def processes(self) -> int:
        """How many it has now."""
        return len(self.running) * (1 + self.workers)

    def begin(self) -> None:
        """Deploy it for the first time."""
        self.put(self.builds[0])
        for _ in range(self.copies):
            self.start()

    def put(self, build: Path) -> None:
        """Put a copy of a build under the path, as package managers do: another file, moved over the old one."""
        fresh = self.path.with_suffix(".new")
        shutil.copy(build, fresh)
        fresh.rename(self.path)

    def start(self, path: Path | None = None, before: Callable[[], None] | None = None) -> None:
        """Start one process."""
        command = [str(path or self.path), str(self.truth), str(self.workers)]
        self.running.append(subprocess.Popen(command, preexec_fn=before))  # noqa: PLW1509  one thread
        self.execs += 1

    def stop(self) -> None:
        """End the oldest process in order."""
        child = self.running.pop(0)
        child.terminate()
        if child.wait(30):
            raise SystemExit(f"the program ended with {child.returncode}")

    def replace(self, number: int) -> None:
        """Change what lies on the disk, while the old process runs."""
        raise NotImplementedError

    def restart(self) -> None:
        """Start what lies there now; the old process has ended."""
        self.start()

    def end(self) -> None:
        """End all processes."""
        while self.running:
            self.stop()

    @property
    def calls(self) -> int:
        """How many calls its processes made so far, by their own account."""
        return int.from_bytes(self.truth.read_bytes(), "little")


class SameBuild(Deployment):
    """the same build under a new inode"""

    def replace(self, number: int) -> None:
        self.put(self.builds[0])


class NewBuild(Deployment):
    """a new build"""

    def replace(self, number: int) -> None:
        self.put(compiled(self.folder / f"next{number}", BUILDS + number))


class Rollback(Deployment):
    """back to the build before, by renames"""

    def replace(self, number: int) -> None:
        older = self.path.with_suffix(".old")
        if not older.exists():
            shutil.copy(self.builds[1], older)
        spare = self.path.with_suffix(".spare")
        self.path.rename(spare)
        older.rename(self.path)
        spare.rename(older)


class Library(Deployment):
    """a replaced library"""

    def begin(self) -> None:
        gcc(self.path, "-DPROGRAM", "-Wl,--build-id", f"-Wl,-rpath,{self.path.parent}", str(self._library(0)))
        self.start()

    def _library(self, number: int) -> Path:
        target, fresh = self.path.parent / "libwork.so", self.path.parent / "libwork.new"
        gcc(fresh, "-DLIBRARY", "-shared", "-fPIC", f"-Wl,--build-id=0x{number + 1:040x}", "-Wl,-soname,libwork.so")
        fresh.rename(target)
        return target

    def replace(self, number: int) -> None:
        self._library(number + 1)


class ExecInPlace(Deployment):
    """the process executes the new file itself"""

    def replace(self, number: int) -> None:
        self.put(self.builds[number % BUILDS])

    def stop(self) -> None:
        if self.running[0].poll() is not None:
            raise SystemExit("the program ended")

    def restart(self) -> None:
        self.running[0].send_signal(signal.SIGHUP)
        self.execs += 1

    def end(self) -> None:
        super().stop()


class Workers(Deployment):
    """workers replaced one by one"""

    workers = 3

    def replace(self, number: int) -> None:
        self.put(self.builds[0])

    def stop(self) -> None:
        self.running[0].send_signal(signal.SIGUSR1)

    def restart(self) -> None:
        pass

    def end(self) -> None:
        super().stop()


class Rolling(Deployment):
    """three processes restarted one after the other"""

    copies = 3

    def replace(self, number: int) -> None:
        self.put(self.builds[number % BUILDS])

    def stop(self) -> None:
        for _ in range(self.copies):
            super().stop()
            self.start()
            time.sleep(0.3)

    def restart(self) -> None:
        pass

    def end(self) -> None:
        while self.running:
            super().stop()


class Repull(Deployment):
    """a container pulled again: another overlay, another mount namespace, the same control group"""

    def begin(self) -> None:
        self.group = CGROUPS / "pids" / f"specmine-bench-{os.getpid()}"
        self.group.mkdir(exist_ok=True)
        self.layer(0, self.builds[0])
        self.restart()

    @property
    def chosen(self) -> str:
        return f"{{cgroup: '/specmine-bench-{os.getpid()}'}}"

    def layer(self, number: int, build: Path) -> None:
        """Unpack an image layer."""
        self.root = self.folder / f"root{number}"
        for name in ("lower", "upper", "work", "merged"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(build, self.root / "lower" / "shop")

    def replace(self, number: int) -> None:
        self.layer(number + 1, self.builds[number % BUILDS])

    def restart(self) -> None:
        root, group = str(self.root), self.group
        options = f"lowerdir={root}/lower,upperdir={root}/upper,workdir={root}/work".encode()

        def enter() -> None:
            if LIBC.unshare(CLONE_NEWNS) or LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None):
                os._exit(7)
            if LIBC.mount(b"overlay", f"{root}/merged".encode(), b"overlay", 0, options):
                os._exit(6)
            (group / "cgroup.procs").write_text(str(os.getpid()))

        self.start(self.root / "merged" / "shop", enter)

    def end(self) -> None:
        super().end()
        self.group.rmdir()


class Upgrade(Deployment):
    """a package upgraded in place: the file is written anew where it can be, and replaced while it runs"""

    def replace(self, number: int) -> None:
        build = self.builds[number % BUILDS]
        try:
            shutil.copyfile(build, self.path)  # refused while it runs: the text is busy
        except OSError:
            self.path.unlink()
            shutil.copy(build, self.path)


class Deleted(Deployment):
    """the file is deleted first, and comes back later"""

    def replace(self, number: int) -> None:
        self.path.unlink()

    def restart(self) -> None:
        self.put(self.builds[0])
        self.start()


class Symlink(Deployment):
    """a link to the release is switched"""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.releases = 0

    def put(self, build: Path) -> None:
        self.releases += 1
        release = self.folder / f"release{self.releases}"
        release.mkdir()
        shutil.copy(build, release / "shop")
        link = self.path.with_suffix(".link")
        link.symlink_to(release / "shop")
        link.rename(self.path)

    def replace(self, number: int) -> None:
        self.put(self.builds[number % BUILDS])


KINDS: tuple[type[Deployment], ...] = (
    SameBuild,
    NewBuild,
    Rollback,
    Library,
    ExecInPlace,
    Workers,
    Rolling,
    Repull,
    Upgrade,
    Deleted,
    Symlink,
)


def gcc(path: Path, *flags: str) -> None:
    """Compile the target."""
    command: list[str | Path] = ["gcc", "-O2", "-fno-omit-frame-pointer", "-I", ROOT / "tests" / "programs", "-o", path]
    subprocess.run([*command, TARGETS / "redeployed.c", *flags], check=True)


def compiled(path: Path, number: int) -> Path:
    """Compile a build of its own."""
    gcc(path, f"-Wl,--build-id=0x{number + 1:040x}")
    return path
