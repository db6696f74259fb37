"""The control group in which load runs, with the lowest weight that the kernel has.

The group is at the top level. nice 19 or SCHED_IDLE would protect nobody, because the kernel weighs a session, unit or
container as a whole: next to such load a production loop took twice as long. Without systemd the group is written
directly. Under systemd the experiments' process is a unit in a slice of its own, and the group is delegated to it. The
weight is read back before any load starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from specmine.experiments.host.cgroups import Hierarchy, cpu_counts, group_of, hierarchy
from specmine.model.errors import HostError

NAME = "specmine-experiments"
LEAVES = ("run", "other", "limited")
_GONE_S = 2.0
_LOWEST_NICE = 19


@dataclass(slots=True)
class Confinement:
    """Where load runs: leaves of equal weight inside a group of the lowest; without control groups an autogroup."""

    base: Path | None = None
    version: int = 0
    how: str = ""
    """What gives it the lowest weight, as read back."""
    made: list[Path] = field(default_factory=list)

    @property
    def leaves(self) -> bool:
        """True if there are leaves for tasks, which can be limited."""
        return self.base is not None

    def procs(self, leaf: str) -> str:
        """Return the file that a task writes itself to, '' if it stays where it is."""
        return str(self._folder(leaf) / "cgroup.procs") if self.base else ""

    def limit(self, leaf: str, limit: tuple[int, int] | None) -> None:
        """Limit the CPU time of a leaf to (quota, period) in ns, or lift the limit."""
        if self.base is None:
            raise HostError("without control groups no CPU limit can be set")
        folder = self._folder(leaf)
        quota, period = (limit[0] // 1000, limit[1] // 1000) if limit else (-1, 100_000)
        if self.version == 1:
            _write(folder / "cpu.cfs_quota_us", "-1")
            _write(folder / "cpu.cfs_period_us", str(period))
            _write(folder / "cpu.cfs_quota_us", str(quota))
        else:
            _write(folder / "cpu.max", f"{quota if quota > 0 else 'max'} {period}")

    def throttled(self, leaf: str) -> tuple[int, int]:
        """Return how often a leaf was throttled, and for how many ns of its CPUs' time."""
        if self.base is None:
            return 0, 0
        stat = cpu_counts(self._folder(leaf))
        return stat.get("nr_throttled", 0), stat.get("throttled_time", stat.get("throttled_usec", 0) * 1000)

    def used_ns(self) -> int:
        """Return the CPU time that the whole group has used, as the kernel counts it; 0 if it does not."""
        if self.base is None:
            return 0
        if self.version == 2:
            return cpu_counts(self.base).get("usage_usec", 0) * 1000
        return 0

    def close(self) -> None:
        """Remove what was made, with whatever runs in it."""
        for folder in reversed(self.made):
            _remove(folder)
        self.made.clear()

    def _folder(self, leaf: str) -> Path:
        assert self.base is not None
        if leaf not in LEAVES:
            raise HostError(f"there is no leaf {leaf!r}, only {', '.join(LEAVES)}")
        return self.base / leaf


@contextlib.contextmanager
def confined(*, in_unit: bool = False) -> Iterator[Confinement]:
    """Make the control groups for load, and remove them afterwards.

    Parameters
    ----------
    in_unit : bool
        True if systemd started this process as a unit of its own, with its group delegated.

    Raises
    ------
    HostError
        If nothing on this host can restrict load: then none may run.
    """
    confinement = _make_confinement(in_unit=in_unit)
    try:
        yield confinement
    finally:
        confinement.close()


def remove_leftovers() -> None:
    """Remove the groups that a killed run left; the caller holds the lock of experiments."""
    tree = hierarchy()
    left = tree.root / NAME if tree else None
    if left is not None and left.is_dir():
        for folder in [*left.iterdir(), left]:
            if folder.is_dir():
                _remove(folder)


def _make_confinement(*, in_unit: bool) -> Confinement:
    tree = hierarchy()
    problem = "no CPU controller is mounted"
    if tree is not None:
        try:
            return _make_in_unit(tree) if in_unit else _make_top_group(tree)
        except (OSError, HostError) as error:
            problem = str(error)
    how = _autogroup()
    if how:
        return Confinement(how=how)
    raise HostError(
        f"nothing on this host can restrict load ({problem}), so none was started",
        remedy="run as root on a host with the CPU controller of control groups",
    )


def _make_top_group(tree: Hierarchy) -> Confinement:
    if tree.version == 2 and "cpu" not in (tree.root / "cgroup.subtree_control").read_text().split():
        raise HostError("the CPU controller is not enabled for groups at the top level")
    base = tree.root / NAME
    place = Confinement(base=base, version=tree.version)
    try:
        _make(base, place)
        place.how = set_lowest_weight(base)
        _make_leaves(base, place)
    except BaseException:
        place.close()
        raise
    return place


def _make_in_unit(tree: Hierarchy) -> Confinement:
    own = group_of("self", tree)
    if own is None or own == tree.root:
        raise HostError("this process has no control group of its own")
    top = tree.root / own.relative_to(tree.root).parts[0]
    place = Confinement(base=own, version=tree.version, how=lowest_weight(top))
    if not place.how:
        raise HostError(f"the slice {top.name} does not have the lowest weight")
    if tree.version == 2:
        (own / "controller").mkdir(exist_ok=True)  # goes with the unit: this process is in it
        _write(own / "controller" / "cgroup.procs", str(os.getpid()))
    _make_leaves(own, place)
    return place


def _make_leaves(base: Path, place: Confinement) -> None:
    if place.version == 2:
        _write(base / "cgroup.subtree_control", "+cpu")
    for leaf in LEAVES:
        _make(base / leaf, place)


def set_lowest_weight(folder: Path) -> str:
    """Give a group the lowest weight that the kernel has, read it back, and return what it is.

    Raises
    ------
    HostError
        If the group did not take it.
    """
    for name, value in (("cpu.idle", "1"), ("cpu.weight", "1"), ("cpu.shares", "2")):
        if (folder / name).exists():
            with contextlib.suppress(OSError):
                _write(folder / name, value)
    how = lowest_weight(folder)
    if not how:
        raise HostError(f"the group {folder} did not take the lowest weight")
    return how


def lowest_weight(folder: Path) -> str:
    """Return what makes a group the lowest, read from the kernel; '' if nothing does."""
    for name, value in (("cpu.idle", 1), ("cpu.weight", 1), ("cpu.shares", 2)):
        try:
            if int((folder / name).read_text(encoding="ascii")) == value:
                return f"{name}={value} {folder}"
        except (OSError, ValueError):
            continue
    return ""


def _autogroup() -> str:
    """Give the session that this process leads the lowest weight; '' if that is impossible or has no effect."""
    path = Path("/proc/self/autogroup")
    try:
        if Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() != "1" or os.getsid(0) != os.getpid():
            return ""
        tree = hierarchy()
        if tree is not None and group_of("self", tree) != tree.root:
            return ""  # autogroups count only in the root group
        _write(path, str(_LOWEST_NICE))
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return f"autogroup {text}" if text.endswith(f" nice {_LOWEST_NICE}") else ""


def _make(folder: Path, place: Confinement) -> None:
    folder.mkdir(exist_ok=True)
    place.made.append(folder)


def _remove(folder: Path) -> None:
    """End what runs in a group and remove it."""
    until = time.monotonic() + _GONE_S
    while folder.is_dir():
        with contextlib.suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split():
                if int(pid) != os.getpid():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        if time.monotonic() > until:
            return
        time.sleep(0.01)


def _write(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)
