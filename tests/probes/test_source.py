"""The live source on real programs: what it finds, times, refuses, follows, and whom it spares."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specmine.model.batch import Sampling, Unwatch, Watch
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.observation import Kind
from specmine.probes.kernel.loader import LINK_KINDS, VARIANTS, map_sizes
from specmine.probes.kernel.maps import kernel_at_least
from specmine.probes.process.mappings import executable_mappings
from specmine.probes.process.selection import Selection
from specmine.probes.process_checks import made_at_run_time
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.patience import patient
from tests.support.source_driver import Driver, counts_of, driven, running

pytestmark = pytest.mark.kernel

Programs = Callable[..., Path]


def test_finds_where_time_goes_on_the_cpu(program: Programs) -> None:
    """Sampling names the busy function and its callers, with whole stacks."""
    with running(program("paths"), 600) as child, driven(child.pid) as driver:
        driver.source.apply(Sampling(hertz=199))
        driver.poll(lambda: {"a", "b", "c", "z"} <= {f.name for f in driver.functions.values()})
        z = driver.key("z")
        driver.poll(lambda: sum(f.inclusive_ns for f in driver.hot_samples if f.function == z) > 5e7)

        def callers() -> set[str]:
            return {driver.functions[key].name for f in driver.hot_samples if f.function == z for key, _ in f.callers}

        driver.poll(lambda: callers() >= {"b", "c"})  # samples are chance: the rarer caller may come late
        assert callers() == {"b", "c"}
        walks = driver.last.unwinding
        assert walks["complete"] > 20 * (walks["no-range"] + walks["fault"] + walks["unsupported"])


def test_finds_functions_that_wait(program: Programs) -> None:
    """A function that blocks is found by its waiting time, though it is hardly ever on the CPU."""
    with running(program("waits"), 600) as child, driven(child.pid) as driver:
        driver.source.apply(Sampling(hertz=49))

        def waits() -> set[str]:
            return {driver.functions[f.function].name for f in driver.hot_samples if f.off_cpu_ns > 1e7}

        driver.poll(lambda: {"semtimedop", "read"} <= waits() and any("sleep" in name for name in waits()))

        def called() -> set[str]:
            return {driver.functions[f.function].name for f in driver.hot_samples if f.inclusive_ns > 1e7}

        driver.poll(lambda: "semop" in called())  # it jumps to semtimedop: no stack shows it, and no time is its own
        waiting = [f for f in driver.hot_samples if driver.functions[f.function].name == "semtimedop"]
        assert sum(f.off_cpu_ns for f in waiting) > sum(f.on_cpu_ns for f in waiting)


def test_tells_time_in_code_made_at_run_time(program: Programs) -> None:
    """What a JIT makes is in no file: its time is told as such, and is no function's."""
    with running(program("made"), 600) as child, driven(child.pid) as driver:
        driver.source.apply(Sampling(hertz=199))
        native = driver.key("native")
        driver.poll(lambda: sum(f.on_cpu_ns for f in driver.hot_samples if f.function == native) > 3e8)
        made = sum(f.on_cpu_ns for f in driver.runtime)
        own = sum(f.on_cpu_ns for f in driver.hot_samples)
        assert 0.2 < made / (made + own) < 0.8  # half, by 120 samples: six standard deviations
        told = made_at_run_time(executable_mappings(child.pid))
        assert not told.ok and told.detail.startswith("4 KiB")


@pytest.mark.every_kernel
@pytest.mark.parametrize(("kind", "variant"), list(zip(LINK_KINDS, VARIANTS, strict=True)))
def test_every_kind_of_link_gives_paths(
    program: Programs, kind: str, variant: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, multi links and perf events find the same paths of the same calls, for verifiers of every age."""
    if kind == "session" and not kernel_at_least(6, 12):
        pytest.skip("this kernel does not count rounds")
    monkeypatch.setattr("specmine.probes.kernel.loader.VARIANTS", (variant, variant))
    with running(program("paths"), patient(600)) as child, driven(child.pid, "z", links=(kind,)) as driver:
        driver.watch("z", Kind.PATH)
        # return sites are learnt one by one: then no call is missed but what is open at the ends of a window
        driver.poll(
            lambda: len(driver.observations) >= 2 and driver.observations[-1].calls <= driver.observations[-1].timed + 2
        )
        names = {tuple(f.name for f in p.path.frames[-3:]) for p in driver.observations[-1].paths if p.path.complete}
        assert names == {("b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")}


def test_a_share_of_the_calls_is_timed_and_all_are_counted(program: Programs) -> None:
    """Where returns can be left alone, calls are timed by chance and counted exactly; a recursion is timed whole."""
    with running(program("paths"), 600, 2000) as child, driven(child.pid, "z") as driver:
        key = driver.watch("z", Kind.TIME, window_calls=400, timed_share=0.125)
        driver.poll(lambda: len(driver.observations) >= 2)
        calls = sum(o.calls for o in driver.observations)
        timed = sum(o.timed for o in driver.observations)
        assert abs(timed - calls / 8) < 6 * (calls * 0.125 * 0.875) ** 0.5
        assert all(o.censored == 0 for o in driver.observations)
        assert not driver.functions[key].unsampled
    with running(program("recursion"), 600) as child, driven(child.pid, "descend") as driver:
        key = driver.watch("descend", Kind.TIME, window_calls=200, timed_share=0.125)
        driver.poll(lambda: driver.functions[key].unsampled and len(driver.observations) >= 1)
        assert driver.observations[-1].timed >= driver.observations[-1].calls - 2


@pytest.mark.parametrize("variant", ["plain", "stock", "no-pie"])
def test_paths_are_complete_and_durations_possible(program: Programs, variant: str) -> None:
    """Every timed call carries its whole path, also without frame pointers, and lasts at least as long as it spins.

    All calls of the one thread together last no longer than they are watched.
    """
    with running(program("paths", variant), 600) as child, driven(child.pid, "z") as driver:
        driver.watch("z", Kind.PATH)
        driver.poll(lambda: len(driver.observations) >= 3)
        for observation in driver.observations:
            whole = [p for p in observation.paths if p.path.complete]
            assert sum(p.histogram.total for p in whole) >= 0.99 * observation.timed
            tails = {tuple(f.name for f in p.path.frames[-3:]) for p in whole}
            assert tails <= {("b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")}
            shortest = BUCKET_EDGES[int(observation.histogram.buckets[0]) + 1] - observation.bias_ns
            assert shortest > 0.9 * 20_000
            assert float(observation.histogram.dense @ BUCKET_EDGES[:-1]) <= observation.watched_ns


@pytest.mark.every_kernel
def test_counts_what_the_program_counts(program: Programs) -> None:
    """Callers are counted as their callees: z as often as b and c that call it, and not more than the program says."""
    with running(program("paths"), patient(600), 2000) as child, driven(child.pid, "a", "z") as driver:
        keys = [driver.watch(name, Kind.TIME, window_calls=10**9, window_ns=10**12) for name in ("a", "z")]
        watching, counters = driver.source.parts.registry, driver.source.parts.counts.counters
        driver.poll(
            lambda: all(key in watching.by_function and watching.by_function[key].attachment.on_ns for key in keys)
        )
        slots = [watching.by_function[key].slot.number for key in keys]
        before = counters["calls"][slots].astype(int)
        driver.poll(lambda: counters["calls"][slots[1]] > before[1] + 2000)
        os.kill(child.pid, signal.SIGSTOP)
        after = counters["calls"][slots].astype(int)
        assert abs(int(np.diff(after - before)[0])) <= 2  # each read may fall between the two
        rows = counters[slots]
        assert (rows["calls"] - rows["timed"] - rows["unlearnt"]).max() <= 2  # one of each is open
        for key in keys:
            driver.source.apply(Unwatch(function=key))
        os.kill(child.pid, signal.SIGCONT)
        assert after.max() <= int(str(counts_of(child)["calls"]))


def test_a_stripped_program_is_measured_by_offset(program: Programs) -> None:
    """Functions without names are found and shown by module and file offset."""
    with running(program("paths", "stripped"), 600) as child, driven(child.pid) as driver:
        driver.source.apply(Sampling(hertz=199))
        driver.poll(lambda: any(f.name.startswith("paths+0x") for f in driver.functions.values()))


@pytest.mark.parametrize(("name", "kind"), [("thrower", Kind.TIME), ("middle", Kind.PATH)])
def test_exceptions_pass_timed_functions(program: Programs, name: str, kind: Kind) -> None:
    """A C++ program is timed at its return sites: exceptions pass, and calls that they end are not durations."""
    with running(program("throws"), 600) as child, driven(child.pid, f"{name}*") as driver:
        driver.poll(lambda: driver.functions)
        key = next(iter(driver.functions))
        driver.source.apply(Watch(function=key, kind=kind, window_calls=400))
        driver.poll(lambda: len(driver.observations) > 3)
        assert not driver.refusals
        for observation in driver.observations[1:]:
            assert 0.6 < observation.timed / observation.calls < 0.73  # every third call is thrown out of
            middle = BUCKET_EDGES[int(observation.histogram.dense.argmax()) + 1] - observation.bias_ns
            assert middle > 0.9 * 5_000  # it spins so long
            for each in observation.paths:
                assert not each.path.complete or each.path.frames[-1].name.startswith(name)
        counts = counts_of(child)
        assert counts["caught"] == counts["thrown"]
        assert child.returncode == 0


def test_recursion_times_the_outermost_call(program: Programs) -> None:
    """Inner calls are counted by themselves and have no durations of their own."""
    path = program("recursion")
    with running(path, 600) as child:
        names = [line.split()[-1] for line in nm(path) if " T " in line]
        name = next(n for n in names if n not in ("main", "_start", "_init", "_fini"))
        with driven(child.pid, name) as driver:
            driver.watch(name, Kind.TIME, window_calls=50)
            driver.poll(lambda: driver.observations)
            assert driver.observations[0].inner > driver.observations[0].timed


def nm(path: Path) -> list[str]:
    """List a program's symbols."""
    return subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.splitlines()


def test_forked_workers_are_followed_and_bystanders_spared(program: Programs) -> None:
    """libc's functions are timed in workers only; a program that nobody chose takes no hit."""
    with (
        running(program("control"), 600) as control,
        running(program("forks"), 600, 64) as child,
        driven(child.pid, "malloc", "semop") as driver,
    ):
        driver.watch("malloc", Kind.TIME)
        driver.watch("semop", Kind.PATH)
        driver.poll(lambda: {o.kind for o in driver.observations} >= {Kind.TIME, Kind.PATH})
        assert driver.last.lifetimes or driver.last.bystander_hits == 0
        assert driver.last.bystander_hits == 0
        text = Path(f"/proc/{control.pid}/maps").read_text()
        assert "[uprobes]" not in text
        callers = {
            p.path.frames[-2].name
            for o in driver.observations
            if o.kind is Kind.PATH
            for p in o.paths
            if p.path.complete
        }
        assert callers >= {"take", "give"}


def test_the_end_of_the_program_is_seen(program: Programs) -> None:
    """When the last process ends the batch says so, and its lifetime is told to have none left."""
    with running(program("single"), 600) as child, driven(child.pid) as driver:
        driver.poll(lambda: True)
        child.kill()
        driver.poll(lambda: driver.last.ended)


@pytest.mark.every_kernel
@pytest.mark.parametrize("kind", LINK_KINDS)
def test_no_more_calls_are_timed_than_counted(program: Programs, kind: str) -> None:
    """What was counted since the last report is not lost when a function is given up: activity covers observations."""
    with running(program("paths"), patient(600), 2000) as child, driven(child.pid, "z", links=(kind,)) as driver:
        for _ in range(4):
            before = len(driver.observations)
            key = driver.watch("z", Kind.TIME, window_calls=50)

            def more(wanted: int = before + 2) -> bool:
                counted = sum(each.calls for each in driver.activities)
                assert sum(each.timed for each in driver.observations) <= counted + 1  # one began before it counted
                return len(driver.observations) >= wanted

            driver.poll(more)
            driver.source.apply(Unwatch(function=key))
            driver.step()
            assert more(0)


def test_what_no_ring_buffer_had_room_for_is_counted_and_made_up_for(
    program: Programs, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs execute while nobody reads: what was not told is counted, and a process among them is found."""
    sizes = map_sizes
    monkeypatch.setattr("specmine.probes.kernel.loader.map_sizes", lambda *a: {**sizes(*a), "events": 4096})
    source = BpfSource([Selection(exe=str(program("paths")))], SourceSettings(sampling=False, cache=str(cache)))
    source.start()
    try:
        for _ in range(150):  # 128 fit
            subprocess.run(["/bin/true"], check=True)
        with running(program("paths"), 600) as child:
            driver = Driver(source)
            driver.poll(lambda: child.pid in source.parts.programs.members)
            assert driver.last.lost["unsent_events"] >= 20
            assert driver.last.lost["unsent_paths"] == driver.last.lost["unsent_alarms"] == 0
    finally:
        source.close()
