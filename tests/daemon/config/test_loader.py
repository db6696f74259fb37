"""The configuration: every key documented, every mistake named."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.config.host_check import check_named
from specmine.daemon.config.loader import ConfigError, known_keys, load_config, parse_config
from specmine.daemon.config.tree import Config, default_text
from specmine.mining.settings import MiningSettings
from specmine.model.units import parse_duration, parse_ratio, parse_size, show_duration, show_size
from tests.support.paths import ROOT
from tests.support.patience import patient

SECOND = 10**9


def keys_of(tree: Any, prefix: str = "") -> list[str]:
    """Return the full names of the keys of a YAML document."""
    if not isinstance(tree, dict):
        return [prefix]
    return [name for key, value in tree.items() for name in keys_of(value, f"{prefix}.{key}".lstrip("."))]


def test_the_packaged_file_holds_every_key_with_its_default() -> None:
    """Reading default.yaml gives the defaults of the code, and no key is missing from it."""
    written = keys_of(yaml.safe_load(default_text()))
    assert parse_config(default_text()) == Config()
    assert sorted(written) == sorted(name for name in known_keys() if not name.startswith("programs."))


def test_every_key_of_the_packaged_file_has_a_comment() -> None:
    """Over each key, or over the group of keys that it continues, stands what it does."""
    lines = default_text().splitlines()
    for before, line in pairwise(lines):
        key = line.split(":")[0]
        is_section = line.endswith(":") and not line.startswith(" ")
        if line.strip() and not line.lstrip().startswith("#") and not is_section and key.strip() != "minimum_calls":
            assert before.lstrip().startswith("#"), line


def test_mining_defaults_are_those_of_mining() -> None:
    """The mining section has all of MiningSettings."""
    assert Config().mining == MiningSettings()
    names = {name.removeprefix("mining.") for name in known_keys() if name.startswith("mining.")}
    assert len(names) == len(dataclasses.fields(MiningSettings))


def test_a_whole_configuration_is_read() -> None:
    """Values of every kind arrive in base units."""
    config = parse_config(
        """
programs:
  - {name: shop, exe: /usr/sbin/apache2, user: [root, 33]}
  - unit: postgresql.service
  - pid: 17
  - cgroup: /system.slice/*
functions: {watch: [semop, "b*"], ignore: []}
budget: {overhead: 0.5%, floor: 500us, agent: 0.02}
windows:
  length: 1m30s
  limit: 2m
mining: {match_threshold: 0.04, resolution: 80ns, window_shares: [1, 2]}
store: {path: /tmp/x.db, limit: 2GiB}
metrics: {listen: "[::1]:0"}
socket: {mode: 0660, group: adm}
"""
    )
    assert [program.exe or program.unit or program.pid or program.cgroup for program in config.programs] == [
        "/usr/sbin/apache2",
        "postgresql.service",
        17,
        "/system.slice/*",
    ]
    assert config.programs[0].name == "shop"
    assert [program.user for program in config.programs] == [(0, 33), (), (), ()]
    assert config.functions.watch == ("semop", "b*")
    assert (config.budget.overhead, config.budget.floor_ns, config.budget.agent) == (0.005, 500_000, 0.02)
    assert (config.windows.length_ns, config.windows.limit_ns) == (90 * SECOND, 120 * SECOND)
    assert (config.mining.match_threshold, config.mining.resolution_ns) == (0.04, 80.0)
    assert config.mining.window_shares == (1.0, 2.0)
    assert (config.store.path, config.store.limit_bytes) == ("/tmp/x.db", 2 << 30)
    assert config.metrics.listen == ("::1", 0)
    assert (config.socket.mode, config.socket.group) == (0o660, "adm")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "programs:\n", "budget:\nmining:\n"])
def test_nothing_said_means_the_defaults(text: str) -> None:
    """Empty files and empty sections change nothing."""
    assert parse_config(text) == Config()


def test_metrics_can_be_switched_off() -> None:
    """A bare off, which YAML reads as false, is understood."""
    assert parse_config("metrics: {listen: off}").metrics.listen is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget:\n  overhed: 1%", "f.yaml:2: unknown key budget.overhed; did you mean budget.overhead?"),
        ("budgte: {overhead: 1%}", "f.yaml:1: unknown key budgte"),
        ("overhead: 1%", "f.yaml:1: unknown key overhead; did you mean budget.overhead?"),
        ("programs:\n  - exee: /x", "f.yaml:2: unknown key programs[0].exee; did you mean programs.exe?"),
        ("programs: [{exe: /x, user: nobody-of-the-kind}]", "user: there is no user 'nobody-of-the-kind'"),
        ("programs: [{exe: /x, user: -1}]", "user: -1 is not between 0 and 4294967294"),
        ("programs: [{exe: /x, user: true}]", "user: True is not a"),
        ("programs: [{exe: /x, user: [[]]}]", "user: a list of plain values belongs here"),
        ("programs: [{pid: 7, user: root}]", "user is for exe, unit and cgroup"),
        ("store: {limit_bytes: 1GiB}", "unknown key store.limit_bytes; did you mean store.limit?"),
        ("qwertz: 1", "f.yaml:1: unknown key qwertz"),
        ("budget:\n  overhead: 500%", "f.yaml:2: budget.overhead: '500%' is not between 0.01% and 100%"),
        ("budget: {overhead: lots}", "budget.overhead: 'lots' is not a ratio such as 1% or 0.01"),
        ("budget: {overhead: true}", "budget.overhead: True is not a ratio"),
        ("budget: {overhead: .nan}", "budget.overhead: 'nan'"),
        ("windows: {length: 10}", "windows.length: 10 has no unit; write for example 10s"),
        ("windows: {length: 10x}", "windows.length: '10x' has the unknown unit 'x'"),
        ("windows: {length: 1:30}", "windows.length: '1:30' is not a duration"),
        ("windows: {length: -1s}", "windows.length: '-1s' is not a duration"),
        ("windows: {length: 50s, limit: 20s}", "f.yaml:1: windows: limit is shorter than length"),
        (
            "windows: {minimum_calls: 50}",
            "windows.minimum_calls is 50, less than the 200 of mining.minimum_calls",
        ),
        ("windows: {calls: 1.5}", "windows.calls: 1.5 is not a whole number"),
        ("kernel: {memory: 1KiB}", "kernel.memory: '1KiB' is not between 4MiB and 16GiB"),
        ("kernel: {memory: [1]}", "kernel.memory: [1] is not a size"),
        ("kernel: 7", "f.yaml:1: kernel: not a mapping"),
        ("mining:\n  recent: 5\n  level: 2", "f.yaml:3: mining: level lies between 0 and 1, not 2"),
        ("mining: {level: high}", "mining.level: 'high' is not a number"),
        ("metrics: {listen: 9752}", "metrics.listen: 9752 is not HOST:PORT"),
        ("metrics: {listen: 'localhost:99999'}", "is not HOST:PORT"),
        (r'socket: {path: "/x\n/y"}', r"socket.path: '/x\n/y' is not an absolute path"),
        ("socket: {path: specmined.sock}", "socket.path: 'specmined.sock' is not an absolute path"),
        ("socket: {path: /tmp/" + "x" * 103 + "}", "is longer than the 107 bytes that a socket's path can have"),
        (r'store: {path: "/tmp/\ud800"}', r"store.path: '/tmp/\ud800' is not an absolute path"),
        ("store: {path: /tmp/" + "x" * 256 + "}", "is longer than a path, or a name in it, can be"),
        ("store: {path: " + "/x" * 2048 + "}", "is longer than a path, or a name in it, can be"),
        (r'programs: [{exe: /x, name: "\ud800"}]', r"programs[0].name: '\ud800' is not a text"),
        (r'functions: {watch: ["\ud800"]}', r"functions.watch: '\ud800' is not a text"),
        (r'fleet: {connect: "\ud800"}', r"fleet.connect: '\ud800' is not a text"),
        (r'metrics: {listen: "\ud800:1"}', r"metrics.listen: '\ud800:1' is not HOST:PORT"),
        ("socket: {mode: 888}", "socket.mode: 888 is not a file mode"),
        ("log: {level: loud}", "log.level: 'loud' is none of debug, info, warning, error"),
        ("functions: {watch: semop}", "functions.watch: 'semop' is not a list; write [semop]"),
        (r'functions: {watch: "\e[2J"}', r"functions.watch: '\x1b[2J' is not a list; write [\x1b[2J]"),
        ("functions: {watch: [1]}", "functions.watch: 1 is not a text"),
        ("functions: {watch: {a: b}}", "functions.watch: a mapping of keys is given where a value belongs"),
        ("programs: /usr/bin/app", "f.yaml:1: programs: not a list"),
        ("programs:\n  - {exe: /x, pid: 3}", "f.yaml:2: programs[0]: choose a program by exactly one"),
        ("programs:\n  - {name: x}", "not by nothing"),
        ("budget: {overhead: 1%, overhead: 2%}", "budget.overhead is given twice"),
        ("a: [", "f.yaml:1: not YAML"),
        ("a: b: c", "f.yaml:1: not YAML"),
        ("--- 1\n--- 2", "not YAML"),
        ("- budget", "f.yaml:1: the configuration: not a mapping"),
        (
            "windows: {length: !!python/object:os.system 1}",
            "f.yaml:1: not YAML: could not determine a constructor",
        ),
        ("\x00", "not YAML"),
        ('windows:\n  calls: !!int ""', "f.yaml:2: windows.calls: '' is not a whole number"),
        ('windows: {calls: !!int "-"}', "windows.calls: '-' is not a whole number"),
        ("windows: {calls: !!int 0x_}", "windows.calls: '0x_' is not a whole number"),
        ("windows: {calls: 0x_}", "windows.calls: '0x_' is not a whole number"),
        ('mining: {match_threshold: !!float ""}', "mining.match_threshold: '' is not a number"),
        ("experiments: {enabled: !!bool zz}", "experiments.enabled: 'zz' is not a !!bool"),
        ("windows: {length: !!timestamp zzz}", "windows.length: 'zzz' is not a !!timestamp"),
        ("functions: {watch: !!seq x}", "functions.watch: 'x' is a plain value and has the tag of a collection"),
        ("programs: [~]", "f.yaml:1: programs[0]: choose a program by exactly one of exe, pid, unit and cgroup"),
        ("programs:\n- pid: 7\n- ~", "f.yaml:3: programs[1]: choose a program by exactly one"),
        ("windows: {calls: " + "9" * 60_000 + "}", "has more than 100 letters, too many for a number"),
        ("programs: [{pid: 0x" + "f" * 4000 + "}]", "has more than 100 letters, too many for a number"),
        ("budget: {overhead: " + "9" * 400 + "}", "has more than 100 letters, too many for a number"),
        ("windows: {length: " + "1" * 60_000 + "s}", "has 60,001 letters, too many for a duration"),
        ("store: {limit: " + "1" * 5000 + "MiB}", "has 5,003 letters, too many for a size"),
        (r'log: {level: "\UFFFFFFFF"}', "f.yaml:1: not YAML: a number or character is out of range"),
        ("%YAML 1." + "1" * 5000 + "\n---\n", "not YAML: a number or character is out of range"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    """The message is one line with the place, the key, the value and, where there is one, the nearest key."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, name="f.yaml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are no text are errors with the path in them."""
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.yaml", "", "bytes.yaml"):
        with pytest.raises(ConfigError, match=str(tmp_path)):
            load_config(tmp_path / name)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_document_is_a_configuration_or_a_named_mistake(document: Any) -> None:
    """No document ends in anything but a configuration or a ConfigError of one line."""
    try:
        assert isinstance(parse_config(yaml.safe_dump(document)), Config)
    except ConfigError as error:
        assert "\n" not in str(error)


TAGS = (
    "int",
    "float",
    "bool",
    "null",
    "timestamp",
    "binary",
    "str",
    "seq",
    "map",
    "set",
    "omap",
    "pairs",
    "merge",
    "x",
)
GARBAGE = st.sampled_from(["", "-", "+", ".", ":", "_", "0x_", "0b", "0o", "1:_", "zz", "9" * 5000, "2001-99-99"])


@given(
    st.sampled_from([*sorted(known_keys()), "programs.exe"]),
    st.sampled_from(TAGS),
    GARBAGE | st.text(max_size=8) | st.from_regex(r"[-+0-9_.:xbeoTZ]{0,12}", fullmatch=True),
    st.booleans(),
)
def test_any_value_with_any_tag_is_read_or_named(name: str, tag: str, value: str, in_list: bool) -> None:
    """A text that does not fit its tag is a mistake with file and line, whatever PyYAML makes of it."""
    quoted = yaml.safe_dump(value, default_style='"', width=1 << 20).strip()
    written = f"[!!{tag} {quoted}]" if in_list else f"!!{tag} {quoted}"
    for part in reversed(name.split(".")):
        written = f"{{{part}: {written}}}"
    if name.startswith("programs."):
        written = f"{{programs: [{written.removeprefix('{programs: ').removesuffix('}')}]}}"
    try:
        parse_config(written, name="f.yaml")
    except ConfigError as error:
        assert str(error).startswith("f.yaml:1: ")
        assert "\n" not in str(error) and "4300" not in str(error)


@given(st.sampled_from(sorted(known_keys())), st.none() | st.booleans() | st.integers() | st.floats() | st.text())
def test_any_value_of_any_key_is_read_or_named(name: str, value: Any) -> None:
    """Whatever stands at a known key is read, or refused by the key's name."""
    if name.startswith("programs"):
        return
    tree: Any = value
    for part in reversed(name.split(".")):
        tree = {part: tree}
    try:
        parse_config(yaml.safe_dump(tree))
    except ConfigError as error:
        assert name.rsplit(".", maxsplit=1)[-1] in str(error)


@given(st.integers(0, 10**18))
def test_durations_and_sizes_are_read_as_they_are_shown(value: int) -> None:
    """What is shown is read back as the same value."""
    assert parse_duration(show_duration(value)) == value
    assert parse_size(show_size(value)) == value


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("10s", 10 * SECOND),
        ("1.5ms", 1_500_000),
        ("1h 30m", 5400 * SECOND),
        ("2d", 172_800 * SECOND),
        ("0", 0),
    ],
)
def test_durations_are_read(text: str, nanoseconds: int) -> None:
    """Units, fractions and sums are understood."""
    assert parse_duration(text) == nanoseconds


def test_ratios_and_sizes_are_read() -> None:
    """Per cent, plain numbers, binary and decimal units are understood."""
    assert [parse_ratio(text) for text in ("1%", "0.01", ".5 %", "1/3")] == [0.01, 0.01, 0.005, 1 / 3]
    assert (parse_size("64MiB"), parse_size("1.5 GB"), parse_size("7")) == (64 << 20, 1_500_000_000, 7)


def test_a_store_in_the_place_of_a_folder_is_a_mistake(tmp_path: Path) -> None:
    """It is found when the configuration is checked, before anything is started."""
    path = tmp_path / "c.yaml"
    path.write_text(f"store: {{path: {tmp_path}}}\n")
    with pytest.raises(ConfigError, match="is a folder; name a file in it"):
        load_config(path)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """Process substitution works, also where what is written comes in parts."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = subprocess.Popen(["sh", "-c", "exec > $0; echo verify_every:; sleep 0.3; echo '  30s'", str(path)])
    try:
        assert load_config(path, wait_s=patient(60)).verify_every_ns == 30 * SECOND
    finally:
        writer.wait()


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    """Before, a start, a check and a reload blocked for ever; and what was read already is no default configuration."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"is a pipe that did not end in 0\.1 s"):
        load_config(path, wait_s=0.1)
    read, write = os.pipe()
    os.close(write)
    with pytest.raises(ConfigError, match="is a pipe with nothing in it"):
        load_config(f"/proc/self/fd/{read}", wait_s=patient(60))
    os.close(read)


def test_what_the_host_lacks_is_named() -> None:
    """A group and an interpreter that are not there are found before a start, by the names of their keys."""
    for text, said in (
        ("socket: {group: nosuch}", "f.yaml: socket.group: there is no group 'nosuch'"),
        ("kernel: {interpreter: /nonexistent}", "f.yaml: kernel.interpreter: '/nonexistent' is not a file"),
        ("kernel: {interpreter: /usr}", "f.yaml: kernel.interpreter: '/usr' is not a file"),
    ):
        with pytest.raises(ConfigError, match=re.escape(said)):
            check_named(parse_config(text), "f.yaml")
    check_named(parse_config(f"socket: {{group: root}}\nkernel: {{interpreter: {sys.executable}}}"), "f.yaml")
    check_named(Config(), "f.yaml")


def test_deep_nesting_is_a_mistake() -> None:
    """A document nested a thousand times is refused in one line."""
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_config("[" * 5000)


def test_the_documentation_shows_the_packaged_file() -> None:
    """docs/configuration.md ends with default.yaml, letter by letter."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert text.endswith(f"```yaml\n{default_text()}```\n")
