"""The reader survives every file: what its child says is checked, and what kills the child costs one answer."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specmine.model.errors import InputError
from specmine.probes.elf.client import Reader
from specmine.probes.elf.facts import BinaryFacts, FunctionFacts, FunctionKind, Grade, RowTable, Segment, Site
from specmine.probes.elf.protocol import decode, encode
from tests.support.binary_samples import C_SOURCE, CXX_SOURCE, compiled

MUTATIONS = 300


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small C program."""
    return compiled(tmp_path_factory.mktemp("reader"), "prog", C_SOURCE, "-O2")


@pytest.fixture
def reader() -> Iterator[Reader]:
    """A reader, closed at the end."""
    with Reader(niceness=0) as each:
        yield each


@pytest.fixture
def opened(program: Path) -> Iterator[int]:
    """The program, open for reading."""
    fd = os.open(program, os.O_RDONLY)
    yield fd
    os.close(fd)


def collect(reader: Reader, numbers: set[int]) -> dict[int, object]:
    """Wait for the answers to some requests."""
    found: dict[int, object] = {}
    while set(found) != numbers:
        assert select.select([reader], [], [], 30)[0] or found
        found.update(reader.ready())
    return found


def test_it_answers(reader: Reader, opened: int) -> None:
    """Facts, rows, functions and sites come back as the values they are."""
    facts = reader.facts(opened)
    assert facts.kind == "pie"
    rows = reader.rows(opened)
    assert len(rows.pc) == len(rows.info) > 10
    (visible,) = reader.find(opened, ["visible"], "prog")
    assert (visible.name, visible.module, visible.aliases) == ("visible", "prog", ("other_name", "_visible"))
    assert reader.functions_at(opened, [visible.offset + 1, 1], "prog") == [visible, None]
    (site,) = reader.sites(opened, [visible.offset], kernel_emulates_nops=True)
    assert site.function == visible.offset
    assert visible.offset <= site.offset < visible.offset + visible.size


def test_it_never_waits_unless_asked(reader: Reader, program: Path) -> None:
    """Requests are queued, answers come one by one through one descriptor; the file may be closed at once."""
    descriptor = reader.fileno()
    numbers = []
    for op in ("facts", "rows", "facts"):
        fd = os.open(program, os.O_RDONLY)
        numbers.append(reader.request(op, fd))
        os.close(fd)
    assert reader.fileno() == descriptor
    found = collect(reader, set(numbers))
    assert [type(found[each]) for each in numbers] == [BinaryFacts, RowTable, BinaryFacts]
    assert reader.ready() == []


def test_answers_to_others_are_kept(reader: Reader, opened: int) -> None:
    """A blocking call does not lose what was asked before it."""
    number = reader.request("rows", opened)
    assert isinstance(reader.facts(opened), BinaryFacts)
    assert [each for each, _ in reader.ready()] == [number]


def test_bad_files_are_named_and_cost_nothing_else(reader: Reader, opened: int, tmp_path: Path) -> None:
    """Texts, empty files, folders and devices are refused in a sentence; the child lives on."""
    text = tmp_path / "text"
    text.write_text("hello\n" * 100)
    empty = tmp_path / "empty"
    empty.touch()
    reader.facts(opened)
    before = reader.pids()
    for path in (text, empty, tmp_path, Path("/dev/zero")):
        fd = os.open(path, os.O_RDONLY)
        with pytest.raises(InputError, match="not an ELF file"):
            reader.facts(fd)
        os.close(fd)
    with pytest.raises(InputError, match="cannot be read"):
        reader.facts(1 << 20)
    assert reader.pids() == before
    assert isinstance(reader.facts(opened), BinaryFacts)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGPROF, signal.SIGALRM])
def test_a_dead_child_is_replaced(reader: Reader, opened: int, number: signal.Signals) -> None:
    """Whoever ends the child in the middle of a request, that request fails and the next one works."""
    reader.facts(opened)
    (pid,) = reader.pids()
    os.kill(pid, signal.SIGSTOP)
    asked = reader.request("rows", opened)
    os.kill(pid, number)
    os.kill(pid, signal.SIGCONT)
    answer = collect(reader, {asked})[asked]
    if not isinstance(answer, RowTable):  # a timer's signal may come when the answer is on its way
        assert isinstance(answer, InputError)
        assert f"signal {int(number)}" in str(answer)
    assert isinstance(reader.facts(opened), BinaryFacts)


def test_a_child_that_died_idle_costs_nothing(reader: Reader, opened: int) -> None:
    """If the child dies between two requests the next one is simply answered by a new child."""
    reader.facts(opened)
    (pid,) = reader.pids()
    os.kill(pid, signal.SIGKILL)
    assert select.select([reader], [], [], 10)[0]
    assert isinstance(reader.facts(opened), BinaryFacts)
    assert reader.pids() != [pid]


def test_the_child_has_no_privileges(reader: Reader, opened: int) -> None:
    """No capability, no new privileges, not root, small limits."""
    reader.facts(opened)
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{reader.pids()[0]}/status").read_text().splitlines()
        if ":\t" in line
    )
    assert [int(status[each], 16) for each in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0, 0, 0, 0]
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    if os.geteuid() == 0:
        assert "0" not in status["Uid"].split()
        assert int(status["CapBnd"], 16) == 0
    assert int(status["VmRSS"].split()[0]) < 150_000


CONFINED = """
import ctypes, mmap, os, signal, socket, sys
sys.path[:] = sys.argv[3:]
from specmine.probes.elf.parser.sandbox import confine
libc, mine = ctypes.CDLL(None, use_errno=True), os.getppid()
old = os.open(sys.argv[1] + "/old", os.O_RDONLY)
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
if sys.argv[2] == "nobody":
    os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
elif sys.argv[2] == "root without rights":
    checked(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()))
confine(heap_bytes=1 << 30, address_bytes=1 << 33, answer_bytes=1 << 20)
for name, act in {
    "read": lambda: os.open(sys.argv[1] + "/old", os.O_RDONLY),
    "write": lambda: os.open(sys.argv[1] + "/new", os.O_WRONLY | os.O_CREAT),
    "append": lambda: os.open(sys.argv[1] + "/old", os.O_WRONLY | os.O_APPEND),
    "shorten": lambda: os.truncate(sys.argv[1] + "/old", 0),
    "remove": lambda: os.unlink(sys.argv[1] + "/old"),
    "rename": lambda: os.rename(sys.argv[1] + "/old", sys.argv[1] + "/new"),
    "mode": lambda: os.chmod(sys.argv[1] + "/old", 0o600),
    "mode of an open file": lambda: os.fchmod(old, 0o600),
    "times": lambda: os.utime(sys.argv[1] + "/old", (0, 0)),
    "list": lambda: os.listdir(sys.argv[1]),
    "fork": os.fork,
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "signal": lambda: os.kill(mine, 0),
    "signal itself": lambda: os.kill(os.getpid(), 0),
    "unix socket": lambda: socket.socket(socket.AF_UNIX),
    "inet socket": lambda: socket.socket(socket.AF_INET),
    "trace": lambda: checked(libc.ptrace(16, mine, 0, 0)),
    "become another": lambda: os.setuid(os.getuid()),
    "control": lambda: checked(libc.prctl(4, 0, 0, 0, 0)),
    "run code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "allocate": lambda: bytearray(2 << 30),
}.items():
    try:
        act()
        print(name, "is allowed")
    except (OSError, MemoryError):
        pass
os.write(os.memfd_create("answer"), b"x" * 1000)
print("answered")
"""


def confined(folder: Path, who: str = "") -> subprocess.CompletedProcess[str]:
    """Run the attempts as somebody."""
    (folder / "old").touch()
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o777)
    (folder / "old").chmod(0o666)
    folders = [each for each in sys.path if each.startswith("/")]
    command = [sys.executable, "-I", "-B", "-c", CONFINED, str(folder), who, *folders]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_confinement_holds(tmp_path: Path) -> None:
    """A confined process opens nothing, changes nothing, reaches nobody and cannot take all memory, but can answer."""
    done = confined(tmp_path)
    assert (done.returncode, done.stdout) == (0, "answered\n"), done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(("who", "held"), [("nobody", True), ("root without rights", False)])
def test_who_cannot_become_nobody_does_not_parse(tmp_path: Path, who: str, held: bool) -> None:
    """Without capabilities a user that is not root is confined; root, whose files are root's, is refused."""
    done = confined(tmp_path, who)
    assert (done.returncode == 0, done.stdout) == (held, "answered\n" if held else ""), done.stdout + done.stderr


LIGHT = """
import sys
import specmine.probes.elf.client
heavy = {"elftools", "capstone", "scipy", "rust_demangler", "cxxfilt", "lzma"} & set(sys.modules)
print(sorted(heavy))
"""


def test_the_daemons_side_is_light() -> None:
    """Importing the reader loads no parser, disassembler or demangler."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_closed_reader_leaves_nothing(program: Path) -> None:
    """Closing ends the child, also with requests waiting, and closes every descriptor."""
    before = sorted(os.listdir("/proc/self/fd"))
    reader = Reader(niceness=0)
    fd = os.open(program, os.O_RDONLY)
    for _ in range(5):
        reader.request("rows", fd)
    os.close(fd)
    (pid,) = reader.pids()
    reader.close()
    assert not Path(f"/proc/{pid}").exists()
    assert sorted(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ValueError, match="closed"):
        reader.request("facts", 0)


def mutated(data: bytes, random_: random.Random) -> bytes:
    """Return a file with a few bytes changed, most of them where structures are, or cut, or filled."""
    changed = bytearray(data)
    places = [*range(64), *range(len(data) - 64 * 32, len(data))]
    for _ in range(random_.choice((1, 2, 8, 40))):
        at = random_.choice(places) if random_.random() < 0.6 else random_.randrange(len(data))
        changed[at] = random_.choice((0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)))
    if random_.random() < 0.1:
        del changed[random_.randrange(len(changed)) :]
    if random_.random() < 0.1:
        at = random_.randrange(len(changed) + 1)
        changed[at : at + 512] = bytes([random_.choice((0, 0xFF))]) * 512
    return bytes(changed)


@pytest.mark.parametrize(("name", "source", "compiler"), [("c", C_SOURCE, "gcc"), ("cxx", CXX_SOURCE, "g++")])
def test_mutated_files(reader: Reader, tmp_path: Path, name: str, source: str, compiler: str) -> None:
    """Hundreds of damaged files: every request gets a value or an InputError, and no file ends the child."""
    data = compiled(tmp_path, name, source, "-O2", compiler=compiler).read_bytes()
    random_ = random.Random(f"specmine {name}")
    children = set()
    good = 0
    for _ in range(MUTATIONS // 2):
        fd = os.memfd_create("mutated")
        os.write(fd, mutated(data, random_))
        numbers = [
            reader.request("facts", fd),
            reader.request("rows", fd),
            reader.request("find", fd, globs=["*"], module=name),
        ]
        found = collect(reader, set(numbers))
        facts, rows, functions = (found[each] for each in numbers)
        assert isinstance(facts, BinaryFacts | InputError)
        assert isinstance(rows, RowTable | InputError)
        assert isinstance(functions, list | InputError)
        for each in (facts, rows, functions):
            assert not isinstance(each, InputError) or "Error:" not in str(each), each
        if isinstance(functions, list):
            good += 1
            sites = reader.sites(fd, [each.offset for each in functions], kernel_emulates_nops=True)
            assert len(sites) == len(functions)
        os.close(fd)
        children.update(reader.pids())
    assert len(children) == 1
    assert good > MUTATIONS // 8


def facts() -> BinaryFacts:
    """Facts with every field set."""
    return BinaryFacts(
        build_id="ab12", kind="pie",
        segments=(Segment(offset=0, address=4096, file_size=10, memory_size=20, flags=5),),
        soname="x", needed=("y",), is_go=True, unwinder=("needs x",), self_check="y", debuglink="z", frames_digest="00",
    )  # fmt: skip


def test_answers_travel_unchanged() -> None:
    """Every kind of answer is the same after its way over the wire."""
    function = FunctionFacts(
        offset=1,
        size=2,
        name="f",
        module="m",
        kind=FunctionKind.FRAGMENT,
        mangled="_Z1fv",
        aliases=("g", "h"),
        parent=3,
    )
    site = Site(function=1, offset=4, grade=Grade.STEPPED, code="no-site", text="why")
    assert decode("facts", encode(facts())) == facts()
    assert decode("find", encode([function])) == [function]
    assert decode("functions_at", encode([None, function])) == [None, function]
    assert decode("sites", encode([site])) == [site]
    table = RowTable(
        pc=np.array([1, 5], dtype=np.uint32), info=np.array([9, 0], dtype=np.uint32), pages=np.zeros(3, dtype=np.uint32)
    )
    again = decode("rows", encode(table))
    assert isinstance(again, RowTable)
    assert [each.tolist() for each in (again.pc, again.info, again.pages)] == [[1, 5], [9, 0], [0, 0, 0]]
    error = decode("rows", encode(InputError("bad", remedy="do")))
    assert isinstance(error, InputError)
    assert (error.message, error.remedy) == ("bad", "do")


def said(**fields: object) -> bytes:
    """Return an answer of one value with these fields."""
    return json.dumps({"answer": [fields]}).encode() + b"\n"


@pytest.mark.parametrize(
    ("op", "data"),
    [
        ("facts", b""),
        ("facts", b"[]\n"),
        ("facts", b'{"answer": {}}\n'),
        ("find", said(offset=1, size=2, name="a\x1b[31m", module="m")),
        ("find", said(offset=1, size=2, name="a", module="m", kind="nothing")),
        ("find", said(offset=1, size=True, name="a", module="m")),
        ("find", said(offset=1, size="2", name="a", module="m")),
        ("find", said(offset=1, size=2, name="a", module="m", aliases="bc")),
        ("find", b'{"answer": 7}\n'),
        ("find", b'{"answer": [null]}\n'),
        ("sites", said(function=1, offset=1.5, grade="emulated")),
        ("code", b'{"answer": ["rm -rf"]}\n'),
        ("lies", b'{"answer": []}\n'),
        ("rows", b'{"rows": [1, 1, 1]}\n' + bytes(8)),
        ("rows", b'{"rows": [2, 2, 0]}\n' + bytes(16)),
        ("rows", b'{"rows": [1, 1, 1]}\n' + b"\0\0\0\0\1\0\0\0\7\0\0\0"),
        ("rows", b'{"rows": [-1, -1, 2]}\n'),
        ("facts", b"[" * 100_000),
    ],
)
def test_a_lying_child_is_not_believed(op: str, data: bytes) -> None:
    """Answers of the wrong shape, with numbers that do not fit or control characters, become errors."""
    answer = decode(op, data)
    assert isinstance(answer, InputError)
    assert json.dumps(str(answer)).isprintable()


def test_an_idle_child_gives_its_memory_back(reader: Reader, opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, which is no fault, and the next request starts another; one that is busy stays."""
    reader.facts(opened)
    first = reader.pids()
    reader.ready()
    assert reader.pids() == first
    monkeypatch.setattr("specmine.probes.elf.client.IDLE_NS", 0)
    number = reader.request("facts", opened)
    assert collect(reader, {number})  # not while an answer is outstanding
    reader.ready()
    assert reader.pids() == [] and reader.take_notes() == [] and reader.restarts == 0
    monkeypatch.undo()
    assert reader.facts(opened).kind == "pie"


def test_a_resting_child_gives_pages_of_files_back(reader: Reader, tmp_path: Path) -> None:
    """Two seconds after the last question no page of a file that it read is its own; it answers as before."""
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    library = tmp_path / "library.so"
    library.write_bytes(max((Path(each) for each in loaded), key=lambda each: each.stat().st_size).read_bytes())
    with library.open("rb") as file:
        before = reader.rows(file.fileno())
        (child,) = reader.pids()
        assert resident_kib(child, library) > 100
        until = time.monotonic() + 20
        while resident_kib(child, library) and time.monotonic() < until:
            time.sleep(0.1)
        assert resident_kib(child, library) == 0
        assert np.array_equal(reader.rows(file.fileno()).pc, before.pc)
        assert reader.pids() == [child]


def resident_kib(pid: int, file: Path) -> int:
    """Return how much of a file that it maps a process has in memory."""
    _, _, after = Path(f"/proc/{pid}/smaps").read_text().partition(f" {file}\n")
    return int(after.split("Rss:")[1].split()[0]) if after else 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_no_other_process_has_the_readers_id() -> None:
    """Who has the same id may send it signals, and every host has processes of nobody."""
    with Reader() as reader:
        reader.check()
        status = Path(f"/proc/{reader.pids()[0]}/status").read_text()
    ids = {int(word) for word in status.partition("Uid:")[2].split("\n")[0].split()}
    assert not ids & {0, 65534}
