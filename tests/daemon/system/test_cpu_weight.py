"""What is started by hand weighs a fifth of a service, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specmine.daemon.system import cpu_weight
from specmine.daemon.system.cpu_weight import NAME, NICE, lighter
from specmine.experiments.host.cgroups import Hierarchy, group_of, hierarchy

BUSCTL = """#!/bin/sh
echo "$@" > {asked}
exit {status}
"""
REAL = """
import os
from specmine.daemon.system.cpu_weight import lighter
with lighter() as how:
    print(how, os.getpriority(os.PRIO_PROCESS, 0), open("/proc/self/cgroup").read().count("specmine-by-hand"))
print(open("/proc/self/cgroup").read().count("specmine-by-hand"))
"""


class Host:
    """A host made of folders: its control groups, and which of them this process is in."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, own: str = ".", *, version: int = 1) -> None:
        """Make it; files of a new group are there at once, as the kernel makes them."""
        self.folder, self.root, self.asked = folder, folder / "cpu", folder / "asked"
        self.tree = Hierarchy(version=1 if version == 1 else 2, root=self.root)
        self.own = self.root / own
        self.own.mkdir(parents=True)
        (self.root / "cgroup.procs").touch()
        self.group = self.root / f"{NAME}-{os.getpid()}"
        made = Path.mkdir

        def mkdir(path: Path) -> None:
            made(path)
            for name in ("cgroup.procs", "cpu.shares" if version == 1 else "cpu.weight"):
                (path / name).touch()

        removed = Path.rmdir

        def rmdir(path: Path) -> None:
            if (path / "cgroup.procs").read_text() and path != self.group:
                raise OSError
            for each in path.iterdir():
                each.unlink()
            removed(path)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(Path, "rmdir", rmdir)
        monkeypatch.setattr(cpu_weight, "hierarchy", lambda: self.tree)
        monkeypatch.setattr(cpu_weight, "group_of", lambda pid, tree: self.own)
        monkeypatch.setattr(cpu_weight, "_SYSTEMD", folder / "systemd")
        monkeypatch.setattr(os, "setpriority", lambda which, who, value: self.niceness.append(value))
        self.niceness: list[int] = []

    def with_systemd(self, monkeypatch: pytest.MonkeyPatch, *, status: int = 0) -> None:
        """Have systemd run it."""
        (self.folder / "systemd").mkdir()
        (self.folder / "bin").mkdir()
        busctl = self.folder / "bin" / "busctl"
        busctl.write_text(BUSCTL.format(asked=self.asked, status=status))
        busctl.chmod(0o755)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setenv("PATH", f"{self.folder / 'bin'}:/usr/bin:/bin")


@pytest.mark.parametrize(("version", "name", "value"), [(1, "cpu.shares", "204"), (2, "cpu.weight", "20")])
def test_enters_a_group_and_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, name: str, value: str
) -> None:
    """Without systemd there is a group at the top, with a fifth of the usual weight, while it is needed."""
    host = Host(tmp_path, monkeypatch, version=version)
    with lighter() as how:
        assert how == "group"
        assert (host.group / name).read_text() == value
        assert (host.group / "cgroup.procs").read_text() == str(os.getpid())
    assert not host.group.exists()
    assert (host.root / "cgroup.procs").read_text() == str(os.getpid())
    assert not host.niceness


def test_removes_what_killed_ones_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty group goes; one in which somebody is stays."""
    host = Host(tmp_path, monkeypatch)
    for number, procs in ((1, ""), (2, "2")):
        left = host.root / f"{NAME}-{number}"
        left.mkdir()
        (left / "cgroup.procs").write_text(procs)
    with lighter():
        pass
    assert [each.name for each in host.root.glob(f"{NAME}-*")] == [f"{NAME}-2"]


def test_has_systemd_make_a_scope_beside_the_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a session it goes into a scope of its own."""
    host = Host(tmp_path, monkeypatch, "user.slice/user-0.slice/session-3.scope")
    host.with_systemd(monkeypatch)
    name = f"{NAME}-{os.getpid()}.scope"
    places = [host.own, host.own, host.root / "system.slice" / name]
    monkeypatch.setattr(cpu_weight, "group_of", lambda pid, tree: places.pop(0) if len(places) > 1 else places[0])
    with lighter() as how:
        assert how == "scope"
    words = host.asked.read_text()
    assert f"ssa(sv)a(sa(sv)) {name} fail 3 PIDs au 1 {os.getpid()} CPUWeight t 20 Slice s system.slice 0" in words
    assert not host.niceness


@pytest.mark.parametrize(
    ("own", "systemd"),
    [
        ("system.slice/cron.service", True),  # an administrator gave it what it has
        ("docker/12ab", False),
        ("user.slice/session-3.scope", True),  # systemd refuses
    ],
)
def test_is_nice_where_it_keeps_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, *, systemd: bool
) -> None:
    """Elsewhere a nice value weighs as little, beside what is in the same group; in the end it is as before."""
    host = Host(tmp_path, monkeypatch, own)
    if systemd:
        host.with_systemd(monkeypatch, status=1)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with lighter() as how:
        assert how == "nice"
        assert host.niceness == [max(NICE, before)]
    assert host.niceness == [max(NICE, before), before]
    assert not host.group.exists()


@pytest.mark.kernel
def test_the_kernel_has_it_so() -> None:
    """On this host: in a group while it lasts, or nice; out of the group afterwards."""
    done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, check=True)
    first, after = done.stdout.splitlines()
    how, niceness, inside = first.split()
    tree = hierarchy()
    top = tree is not None and group_of("self", tree) == tree.root and not cpu_weight._SYSTEMD.is_dir()
    if tree is not None and top and tree.version == 1 and os.access(tree.root / "cgroup.procs", os.W_OK):
        assert how == "group"
    assert (how, inside) == ("nice", "0") or (how in ("group", "scope") and int(inside) == 1)
    assert how != "nice" or int(niceness) >= NICE
    assert after == "0" or how == "scope"
