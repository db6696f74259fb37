"""The store keeps what it was given, stays small, and survives damage, other versions and other writers."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.lock import LockTaken
from specmine.daemon.pooling import pooled
from specmine.daemon.store import Host, Retention, Store, StoreCorrupt, StoreError, Verdict
from specmine.daemon.store.codec import decode_counts, decode_paths, encode_counts, encode_paths
from specmine.daemon.store.schema import VERSION
from specmine.mining.observation import (
    BUCKETS,
    CallPath,
    Frame,
    Function,
    Kind,
    Observation,
    PathHistogram,
    histogram_of,
)
from specmine.probes.batch import Lifetime

SECOND = 10**9
UTC = 1_700_000_000 * SECOND
HOST = Host(boot_id="boot", hostname="here", utc_offset_ns=UTC, facts={"kernel": "6.18"})
LIFETIME = Lifetime(id="boot:7:99", pid=7, executable="/bin/app", build_id="ab", start_ns=5, processes=2)
FUNCTION = Function(
    build_id="ab",
    offset=16,
    name="z",
    module="app",
    aliases=("zz",),
    mangled="_z",
    in_program=True,
    stepped=True,
)


def observation(
    second: int, *, key: str = FUNCTION.key, lifetime: str = LIFETIME.id, names: tuple[str, ...] = ("b",)
) -> Observation:
    """Return an observation of one second that holds 100 calls over each path."""
    rng = np.random.default_rng(second)
    paths = tuple(
        PathHistogram(
            path=CallPath((Frame("main", "app"), Frame(name, "app"), Frame("z", "app")), name != "?"),
            counts=histogram_of(rng.integers(1000, 9000, 100)),
        )
        for name in names
    )
    return Observation(
        function=key,
        lifetime=lifetime,
        kind=Kind.PATH,
        start_ns=second * SECOND,
        end_ns=(second + 1) * SECOND,
        counts=np.sum([path.counts for path in paths], axis=0),
        calls=120 * len(names),
        watched_ns=SECOND // 2,
        inner=3,
        censored=1,
        bias_ns=float(second % 7),
        paths=paths,
    )


def alike(first: Observation, second: Observation) -> bool:
    """Tell whether two observations say the same; they compare by identity otherwise."""
    plain = [name for name in Observation.__slots__ if name not in ("counts", "paths")]
    return (
        all(getattr(first, name) == getattr(second, name) for name in plain)
        and np.array_equal(first.counts, second.counts)
        and {path.path: path.counts.tolist() for path in first.paths}
        == {path.path: path.counts.tolist() for path in second.paths}
    )


def fill(store: Store, observations: list[Observation]) -> None:
    """Put a host, a lifetime, a function and observations."""
    with store.transaction():
        store.put_host(HOST)
        store.put_lifetimes([LIFETIME])
        store.put_functions([FUNCTION])
        store.put_observations(observations)


def damage(path: Path) -> bytes:
    """Overwrite the middle of a store with letters and return what it holds then."""
    data = bytearray(path.read_bytes())
    data[100 : len(data) - 100] = b"x" * (len(data) - 200)
    path.write_bytes(data)
    return bytes(data)


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    """Everything put into a store is there after it was closed and opened again."""
    seen = [observation(second, names=("b", "?")) for second in range(3)]
    with Store.open(tmp_path / "s.db") as store:
        fill(store, seen)
        store.put_states({FUNCTION.key: {"state": "single", "tried": 4}}, UTC)
        store.put_document("specification", {"functions": []}, UTC)
        assert store.label("ab", "v1")
        assert not store.label("unknown", "v2")
    with Store.open(tmp_path / "s.db", read_only=True) as store:
        contents = store.load()
        document = store.document("specification")
    assert contents.hosts == (HOST,)
    assert [(build.build_id, build.label) for build in contents.builds] == [("ab", "v1")]
    assert contents.lifetimes == (LIFETIME,)
    assert contents.functions == (FUNCTION,)
    assert all(alike(*pair) for pair in zip(seen, contents.observations, strict=True))
    assert contents.states == {FUNCTION.key: {"state": "single", "tried": 4}}
    assert contents.documents == {"specification": document} == {"specification": {"functions": []}}


def test_load_takes_the_newest_of_each_function(tmp_path: Path) -> None:
    """The newest observations of each function come, oldest first."""
    with Store.open(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(9)] + [observation(1, key="ab+0x20")])
        found = store.load(newest=3).observations
    assert [(each.function, each.start_ns // SECOND) for each in found] == [
        ("ab+0x20", 1),
        (FUNCTION.key, 6),
        (FUNCTION.key, 7),
        (FUNCTION.key, 8),
    ]


def test_times_of_an_earlier_boot_move_to_the_present_one(tmp_path: Path) -> None:
    """An observation of an earlier boot lies as far back as the wall clock says."""
    with Store.open(tmp_path / "s.db") as store:
        fill(store, [observation(20)])
        (found,) = store.load().observations_at(UTC + 50 * SECOND)
    assert found.end_ns == (21 - 50) * SECOND


def test_a_repeated_verdict_is_kept_once(tmp_path: Path) -> None:
    """The history holds changes, not every check."""
    said = ["holds", "holds", "violated", "holds"]
    with Store.open(tmp_path / "s.db") as store:
        for second, verdict in enumerate(said):
            store.put_verdicts(
                [Verdict(function="f", subject="a", verdict=verdict, utc_ns=second, evidence={"p": 0.5})]
            )
        history = store.verdicts("f")
    assert [(each.utc_ns, each.verdict) for each in history] == [(0, "holds"), (2, "violated"), (3, "holds")]


def test_old_observations_merge_ten_to_one_and_again(tmp_path: Path) -> None:
    """After an hour ten become one, after a day ten of those; no call is lost."""
    with Store.open(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(205)])
        assert store.thin(Retention(), UTC + 1800 * SECOND) == (0, 0)
        assert store.thin(Retention(), UTC + 4000 * SECOND) == (180, 0)
        assert store.thin(Retention(), UTC + 90_000 * SECOND) == (18, 0)
        found = store.load(newest=1000).observations
    assert len(found) == 2 + 5
    assert sum(each.timed for each in found) == 205 * 100
    assert sum(each.calls for each in found) == 205 * 120
    assert sum(int(path.counts.sum()) for each in found for path in each.paths) == 205 * 100


def test_only_observations_of_one_lifetime_merge(tmp_path: Path) -> None:
    """What belongs to different lifetimes never becomes one."""
    with Store.open(tmp_path / "s.db") as store:
        fill(store, [observation(n, lifetime=f"boot:{n % 2}:1") for n in range(18)])
        assert store.thin(Retention(), UTC + 4000 * SECOND) == (0, 0)


def test_merging_adds_up_and_keeps_the_mean_bias() -> None:
    """A merged observation spans the others, adds their counts and averages their bias over calls."""
    both = pooled([observation(2, names=("b",)), observation(5, names=("b", "c"))])
    assert (both.start_ns, both.end_ns) == (2 * SECOND, 6 * SECOND)
    assert (both.timed, both.calls, both.inner, both.censored) == (300, 360, 6, 2)
    assert both.bias_ns == pytest.approx((2 * 100 + 5 * 200) / 300)
    assert [path.path.frames[1].name for path in both.paths] == ["b", "c"]


def test_a_full_store_drops_the_oldest(tmp_path: Path) -> None:
    """Beyond the limit the oldest observations go and the file shrinks below it."""
    limit = 1 << 20
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        fill(store, [observation(second, names=tuple("abcdefgh")) for second in range(800)])
        _, dropped = store.thin(Retention(limit_bytes=limit), UTC)
        found = store.load(newest=1000).observations
    assert 0 < dropped < 800
    assert [each.start_ns // SECOND for each in found] == list(range(dropped, 800))
    assert path.stat().st_size <= limit


@given(st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 2**64 - 1), max_size=50))
def test_histograms_survive_the_bytes(counts: dict[int, int]) -> None:
    """Any counts come back exactly."""
    histogram = np.zeros(BUCKETS, dtype=np.uint64)
    for bucket, count in counts.items():
        histogram[bucket] = count
    assert np.array_equal(decode_counts(encode_counts(histogram)), histogram)


@given(st.data())
def test_damaged_bytes_are_an_error_and_never_a_wrong_shape(data: st.DataObject) -> None:
    """Bytes changed anywhere raise ValueError or decode to histograms of the right shape."""
    blob = bytearray(encode_paths(observation(1, names=("b", "?")).paths))
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = decode_paths(bytes(blob))
    except ValueError:
        return
    assert all(each.counts.shape == (BUCKETS,) for each in found)


def test_a_damaged_store_is_an_error(tmp_path: Path) -> None:
    """Without leave to set it aside a damaged store is refused with exit code 2 and left as it is."""
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        fill(store, [observation(second) for second in range(50)])
    data = damage(path)
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="damaged") as caught:
            Store.open(path, read_only=read_only)
        assert caught.value.exit_code == 2
    assert path.read_bytes() == data


def test_damaged_stores_are_set_aside_and_never_overwritten(tmp_path: Path) -> None:
    """Each damaged store keeps its bytes under the next free name, and one line is told."""
    path = tmp_path / "s.db"
    told: list[str] = []
    kept = []
    for _ in range(2):
        with Store.open(path, set_aside=told.append) as store:
            fill(store, [observation(second) for second in range(50)])
        kept.append(damage(path))
    with Store.open(path, set_aside=told.append) as store:
        assert store.load().observations == ()
    assert [Path(f"{path}.corrupt-{n}").read_bytes() for n in (1, 2)] == kept
    assert len(told) == 2
    assert all("\n" not in line and f"s.db.corrupt-{n}" in line for n, line in enumerate(told, 1))


def test_a_row_that_cannot_be_read_is_corruption(tmp_path: Path) -> None:
    """Bytes that SQLite takes but the store cannot read are reported as damage."""
    with Store.open(tmp_path / "s.db") as store:
        fill(store, [observation(1)])
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("UPDATE observations SET counts = x'00'")
    db.commit()
    db.close()
    with Store.open(tmp_path / "s.db") as store, pytest.raises(StoreCorrupt, match="cannot be read"):
        store.load()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A store written by a later specmine is refused, also for reading, and not touched."""
    path = tmp_path / "s.db"
    Store.open(path, version=1).close()
    db = sqlite3.connect(path)
    db.execute("UPDATE meta SET value = '7'")
    db.commit()
    db.close()
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"schema 7.*upgrade specmine"):
            Store.open(path, read_only=read_only, set_aside=pytest.fail)


def test_an_older_schema_is_migrated_and_a_copy_kept(tmp_path: Path) -> None:
    """Migration leads forward step by step, keeps the data, and leaves a readable copy of the old store."""
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        fill(store, [observation(1)])
    steps = {VERSION: "ALTER TABLE builds ADD COLUMN note TEXT;", VERSION + 1: "UPDATE builds SET note = 'x';"}
    with pytest.raises(StoreError, match=f"older schema {VERSION}"):
        Store.open(path, read_only=True, version=VERSION + 2, migrations=steps)
    with Store.open(path, version=VERSION + 2, migrations=steps) as store:
        assert len(store.load().observations) == 1
    with Store.open(Path(f"{path}.schema-{VERSION}"), read_only=True) as copy:
        assert len(copy.load().observations) == 1
    db = sqlite3.connect(path)
    assert db.execute("SELECT note FROM builds").fetchall() == [("x",)]
    assert db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == (str(VERSION + 2),)
    db.close()


def test_a_failed_migration_changes_nothing(tmp_path: Path) -> None:
    """When a step fails the store stays at its schema."""
    path = tmp_path / "s.db"
    Store.open(path).close()
    with pytest.raises(StoreError):
        Store.open(path, version=VERSION + 2, migrations={VERSION: "CREATE TABLE more(x);", VERSION + 1: "nonsense;"})
    db = sqlite3.connect(path)
    assert db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == (str(VERSION),)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'more'").fetchone() == (0,)
    db.close()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """A foreign database is refused, not set aside."""
    path = tmp_path / "s.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        Store.open(path, set_aside=pytest.fail)
    assert path.exists()


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    """One process writes; others may read meanwhile."""
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        fill(store, [observation(1)])
        with pytest.raises(LockTaken, match=f"in use by process {os.getpid()}") as caught:
            Store.open(path)
        assert caught.value.exit_code == 2
        with Store.open(path, read_only=True) as reader:
            assert len(reader.load().observations) == 1
    Store.open(path).close()


def test_a_missing_store_cannot_be_read(tmp_path: Path) -> None:
    """Reading makes no store."""
    with pytest.raises(StoreError, match="there is no store"):
        Store.open(tmp_path / "s.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc/s.db", "/dev/null/s.db"])
def test_an_unwritable_place_is_one_line(place: str) -> None:
    """A store that cannot be made is an error of one line with exit code 2."""
    with pytest.raises(Exception, match=r"cannot open the lock") as caught:
        Store.open(place)
    assert getattr(caught.value, "exit_code", None) == 2
    assert "\n" not in str(caught.value)


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from test_store import fill, observation
from specmine.daemon.store import Store
store = Store.open(sys.argv[1])
second = 0
while True:
    fill(store, [observation(second + n) for n in range(5)])
    second += 5
    print(second, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_committed(tmp_path: Path) -> None:
    """After SIGKILL in the middle of writing the store opens, whole, with every committed transaction."""
    path = tmp_path / "s.db"
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(4)][-1]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with Store.open(path, set_aside=pytest.fail) as store:
            found = len(store.load(newest=10**6).observations)
        assert found >= told and found % 5 == 0
