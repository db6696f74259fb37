"""When load may start, which CPU it gets, and when a run is thrown away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.experiments.host.cgroups import Hierarchy, parse_limit, parse_membership, parse_mounts
from specmine.experiments.host.counters import (
    parse_diskstats,
    parse_interrupts,
    parse_network,
    parse_pressure,
    parse_stat,
    read_counters,
)
from specmine.experiments.host.facts import cpu_list, hertz, parse_slice, read_host, siblings
from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.runner import load_gate
from specmine.experiments.types import MS, SECOND, Counters, Experiment, LoadRun
from tests.support.simulated_host import HOST, Model, answered, context_for


def _look(busy: dict[int, float], **stalled: float) -> tuple[Counters, Counters]:
    zero = dict.fromkeys(stalled, 0.0)
    before = Counters(at_ns=0, busy=dict.fromkeys(busy, 100.0), pressure=zero)
    return before, Counters(at_ns=SECOND, busy={cpu: 100.0 + each for cpu, each in busy.items()}, pressure=stalled)


@pytest.mark.parametrize(
    ("name", "busy", "stalled", "code"),
    [
        ("timeslice", {0: 0.9, 1: 0.05}, {}, None),
        ("timeslice", {0: 0.0, 1: 0.2}, {}, "busy-host"),
        ("smt", {0: 0.2, 1: 0.0}, {}, "busy-host"),
        ("cores", {0: 0.15, 1: 0.15}, {}, None),
        ("cores", {0: 0.5, 1: 0.1}, {}, "busy-host"),
        ("timeslice", {0: 0.0, 1: 0.0}, {"memory": 0.2}, "busy-host"),
        ("timeslice", {0: 0.0, 1: 0.0}, {"io": 0.2}, "busy-host"),
        ("timeslice", {0: 0.0, 1: 0.0}, {"cpu": 0.2}, None),
    ],
)
def test_load_starts_only_where_it_is_quiet(
    name: str, busy: dict[int, float], stalled: dict[str, float], code: str | None
) -> None:
    """The gate looks at the CPUs that an experiment would load, and at waiting for memory and disk."""
    before, after = _look(busy, **stalled)
    cpus = load_gate.candidates(HOST, frozenset(), {cpu: each for cpu, each in busy.items()})
    reason = load_gate.refused(EXPERIMENTS[name], cpus, before, after)
    assert (reason.code if reason else None) == code


def test_cpu_0_and_isolated_cpus_come_last_or_never() -> None:
    """The kernel's own work is bound to CPU 0; isolated CPUs belong to somebody."""
    host = replace(HOST, cpus=(0, 1, 2, 3))
    busy = {0: 0.0, 1: 0.5, 2: 0.01, 3: 0.02}
    assert load_gate.candidates(host, frozenset({3}), busy) == (2, 1, 0)
    assert load_gate.candidates(replace(HOST, cpus=(0,)), frozenset(), {}) == (0,)


def _run(experiment: Experiment) -> LoadRun:
    load = experiment.plan(context_for(experiment), ())
    assert load is not None
    return answered(load, Model())


def test_foreign_time_is_what_the_tasks_did_not_use() -> None:
    """A CPU that was busy all the time while its tasks got three quarters was shared with others."""
    run = _run(EXPERIMENTS["steal"])
    assert load_gate.foreign_share(run, (0, 1)) == pytest.approx(0.0, abs=0.01)
    task = replace(run.tasks[0], cpu_ns=run.tasks[0].elapsed_ns * 3 // 4)
    disturbed = replace(run, tasks=(task,))
    assert load_gate.foreign_share(disturbed, (0, 1)) == pytest.approx(0.25, abs=0.01)
    assert load_gate.contamination(EXPERIMENTS["steal"], (run,), (0, 1)) is None
    reason = load_gate.contamination(EXPERIMENTS["steal"], (run, disturbed), (0, 1))
    assert reason is not None
    assert reason.code == "foreign-load"


def test_counters_are_read_from_their_files() -> None:
    """Each file of /proc gives its number: idle, iowait, steal, partitions and loopback are left out."""
    busy, steal = parse_stat("cpu  1 1\ncpu0 100 50 30 900 70 5 5 40 9 0\ncpu12 10 0 0 0 0 0 0 0 0 0\nintr 5\n")
    assert busy == {0: 1.9, 12: 0.1}
    assert steal == {0: 0.4, 12: 0.0}
    assert parse_interrupts("           CPU0       CPU1\n  0: 1 2 x\nLOC:  500  700  Local timer\n") == {0: 500, 1: 700}
    disks = "8 0 sda 1 0 100 0 1 0 50 0 0 0 0\n8 1 sda1 1 0 100 0 1 0 50 0 0 0 0\n7 0 loop0 1 0 9 0 1 0 9 0 0 0 0\n"
    assert parse_diskstats(disks) == 150 * 512
    assert parse_network("Inter|\n face |\n lo: 9 0 0 0 0 0 0 0 9 0\n eth0: 70 0 0 0 0 0 0 0 30 0\n") == 100
    assert parse_pressure("some avg10=0.18 avg60=1.2 avg300=2.0 total=2500000\nfull total=1\n") == 2.5


def test_facts_are_read_from_their_files() -> None:
    """Lists of CPUs, siblings, the slice of a task, ticks from the coarse clock."""
    assert cpu_list("0-2,8\n") == (0, 1, 2, 8)
    assert cpu_list("\n") == ()
    assert siblings(["0,4\n", "1,5\n", "0,4\n"]) == ((0, 4), (1, 5))
    assert parse_slice("policy : 0\nse.slice                     :              1400000\n") == 1_400_000
    assert parse_slice("se.vruntime : 1.0\n") == 0
    assert (hertz(0.004), hertz(0.001), hertz(0.0033333)) == (250, 1000, 300)


def test_groups_and_limits_are_told_for_both_versions() -> None:
    """Where the CPU controller is, where a process is in it, and what its limit is."""
    mounts = (
        "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 24 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    )
    found = [(each.version, str(each.root)) for each in parse_mounts(mounts)]
    assert found == [(1, "/sys/fs/cgroup/cpu,cpuacct"), (2, "/sys/fs/cgroup/unified")]
    text = "3:cpuset:/\n2:cpu,cpuacct:/system.slice/a.service\n0::/user.slice\n"
    assert parse_membership(text, 1) == "/system.slice/a.service"
    assert parse_membership(text, 2) == "/user.slice"
    assert Hierarchy(version=2, root=parse_mounts(mounts)[1].root).group("/a/b").name == "b"
    assert parse_limit("max", "100000") is None
    assert parse_limit("-1", "100000") is None
    assert parse_limit("150000", "100000") == (150_000_000, 100_000_000)


def test_names_of_mounts_and_groups_add_no_line() -> None:
    """What Python takes for an end of line or a blank is part of a name."""
    mounts = (
        "30 24 0:26 / /a\x0c1\u20032\u20030:1\u2003/\u2003/b\u2003rw - fuse x\x0c1 2 0:1 / /c rw - cgroup2 cgroup2 rw\n"
    )
    assert parse_mounts(mounts) == []
    assert parse_membership("0::/x\x0c2:cpu:/y\n", 1) is None
    assert parse_membership("0::/x\x0c2:cpu:/y\n", 2) == "/x\x0c2:cpu:/y"


def test_this_host_tells_its_facts() -> None:
    """On the machine at hand: a boot id, ticks, CPUs, counters that go up."""
    host = read_host()
    assert host.boot_id
    assert host.hertz in (100, 250, 300, 1000)
    assert 0 < host.cores <= len(host.cpus)
    first, second = read_counters(), read_counters()
    assert second.at_ns >= first.at_ns
    assert set(host.cpus) <= set(first.busy)
    assert np.isfinite(sum(second.busy.values()))


def test_under_a_limit_others_are_told_by_waiting() -> None:
    """CPU time by tick is wrong where a limit stops a task in step with the ticks: what it waited beyond counts."""
    experiment = EXPERIMENTS["quota"]
    load = experiment.plan(context_for(experiment, quota=30 * MS, period=50 * MS), ())
    assert load is not None
    run = answered(load, Model())
    (task,) = run.tasks
    throttled = task.elapsed_ns * 2 // 5
    stopped = replace(run, throttled={"limited": (30, throttled)})
    alone = replace(stopped, tasks=(replace(task, waited_ns=throttled),))
    assert load_gate.foreign_share(alone, (0, 1)) == 0.0
    beside = replace(stopped, tasks=(replace(task, waited_ns=throttled + task.elapsed_ns // 10),))
    assert load_gate.foreign_share(beside, (0, 1)) == pytest.approx(0.1, abs=0.001)
    assert load_gate.contamination(experiment, (beside,), (0, 1)) is not None
    # a kernel that does not tell waiting: by CPU time, busy all the time here, as before
    unknown = replace(stopped, tasks=(replace(task, waited_ns=-1),))
    assert load_gate.foreign_share(unknown, (0, 1)) == pytest.approx(0.4, abs=0.01)
