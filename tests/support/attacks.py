"""What a local user without rights may try against a running daemon; each is a process of its own, for a moment.

An attack is a function of what it knows of the daemon. It may fail in whatever way: only what it does to others counts.
"""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401  (the user may not be able to read it later)
import fcntl
import mmap
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import patient

USER = 64_207
"""An account of his own: what he does to all that is his is done to no other test."""
LASTS_S = 0.8
_NAMES = (
    b"a\x0cb",
    b"x\x0c7f0000000000-7f0000001000 r-xp 00000000 fe:00 1 shadow",
    b"a\nb",
    b"\x1b[2J\x1b]0;owned\x07",
    "\u202e\u2066\u2028\x85".encode(),
    b"\xff\xfe\x80",
    b" ",
    b"a" * 250,
    b"x (deleted)",
)
_PTRACE_TRACEME, _PTRACE_ATTACH = 0, 16
_BPF, _PERF_EVENT_OPEN = 321, 298


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What an attacker knows."""

    folder: Path
    """He may write here."""
    program: Path
    """The executable that is watched."""
    home: Path
    """The daemon's folder, with socket, store and locks."""
    metrics: str
    pids: tuple[int, ...]
    """The daemon, then its helpers."""


def _until() -> Iterator[int]:
    """Count for the time that an attack lasts."""
    end_s, number = time.monotonic() + LASTS_S, 0
    while time.monotonic() < end_s:
        yield number
        number += 1


def _mapped(path: bytes, size: int = 4096) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o755)
    try:
        os.ftruncate(fd, size)
        return mmap.mmap(fd, size, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
    finally:
        os.close(fd)


def _exec(*argv: object, **how: object) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([str(each) for each in argv], timeout=LASTS_S, capture_output=True, check=False, **how)  # type: ignore[call-overload]


def _program(aim: Aim, **how: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([aim.program, "60"], stdin=-3, stdout=-3, stderr=-3, **how)  # type: ignore[call-overload,no-any-return]


def names_of_mapped_files(aim: Aim) -> None:
    """Mapped files whose names hold newlines, form feeds, escapes, forged lines of ``maps``; then an exec."""
    kept = [_mapped(bytes(aim.folder) + b"/" + name) for name in _NAMES]
    pid = os.fork()
    if pid == 0:
        more = [_mapped(bytes(aim.folder) + b"/" + name) for name in _NAMES]
        time.sleep(LASTS_S)
        os._exit(len(more) * 0)
    os.waitpid(pid, 0)
    assert kept


def names_of_programs(aim: Aim) -> None:
    """Programs of such names, executed."""
    for name in _NAMES:
        path = bytes(aim.folder) + b"/" + name[:240] + b".exe"
        Path(os.fsdecode(path)).write_bytes(Path("/bin/true").read_bytes())
        Path(os.fsdecode(path)).chmod(0o755)
        _exec(os.fsdecode(path))


def names_of_threads(aim: Aim) -> None:
    """The watched program, run by the user under names that would forge ``stat`` and the log."""
    for name in (b"a) R 1 1 1 (", b"\nlevel=error", b"\x1b[2J"):
        with _program(aim, preexec_fn=lambda name=name: ctypes.CDLL(None).prctl(15, name, 0, 0, 0)) as child:
            time.sleep(0.2)
            child.kill()


def a_fifo_in_place_of_a_file(aim: Aim) -> None:
    """A mapped file that turns into a FIFO, a link and a socket by turns."""
    path = aim.folder / "turns"
    kept = _mapped(bytes(path))
    for number in _until():
        path.unlink(missing_ok=True)
        if number % 3 == 0:
            os.mkfifo(path)
        elif number % 3 == 1:
            path.symlink_to("/dev/zero")
        else:
            with closing(socket.socket(socket.AF_UNIX)) as other:
                other.bind(str(path))
        if number % 50 == 0:
            _exec("/bin/true")
    assert kept


def programs_without_a_file(aim: Aim) -> None:
    """Programs in memory, and programs whose file is gone."""
    data = Path("/bin/true").read_bytes()
    for number in range(20):
        fd = os.memfd_create(f"\x1b{number}\n")
        os.write(fd, data)
        _exec(f"/proc/self/fd/{fd}", pass_fds=[fd])
        os.close(fd)
        gone = aim.folder / f"gone{number}"
        gone.write_bytes(data)
        gone.chmod(0o755)
        with subprocess.Popen([gone]) as child:
            gone.unlink()
            child.wait()


def an_exec_storm(aim: Aim) -> None:
    """As many programs as fit."""
    for _ in _until():
        _exec("/bin/true")


def a_fork_storm(aim: Aim) -> None:
    """Processes that end at once, so that ids come again soon."""
    for _ in _until():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)


def many_processes(aim: Aim) -> None:
    """Four hundred processes."""
    pids = []
    for _ in range(400):
        pid = os.fork()
        if pid == 0:
            time.sleep(LASTS_S)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)


def many_threads(aim: Aim) -> None:
    """Four hundred threads."""
    threads = [threading.Thread(target=time.sleep, args=(LASTS_S,)) for _ in range(400)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def many_mappings(aim: Aim) -> None:
    """Ten thousand executable mappings, then an exec in a child that has them too."""
    path = bytes(aim.folder) + b"/many"
    kept = [_mapped(path) for _ in range(10_000)]
    _exec("/bin/true")
    time.sleep(LASTS_S)
    assert kept


def a_leased_file(aim: Aim) -> None:
    """A mapped file whose lease lets everyone wait who opens it."""
    path = aim.folder / "leased"
    path.write_bytes(b"x" * 4096)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDONLY)
    kept = mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    _exec("/bin/true")
    time.sleep(LASTS_S)
    assert kept


def a_library_in_the_watched_program(aim: Aim) -> None:
    """The watched program with a library of the user's: damaged symbols, a FIFO as debug file."""
    source = aim.folder / "l.c"
    source.write_text('__attribute__((visibility("default"))) int lots(int x) { return x + 1; }\n')
    library = aim.folder / "l.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True, cwd=aim.folder)
    os.mkfifo(aim.folder / "l.debug")
    data = bytearray(library.read_bytes())
    data[-2000:-64] = b"\xff" * 1936  # section headers and names, which the loader does not read
    library.write_bytes(data)
    with _program(aim, env={"LD_PRELOAD": str(library)}) as child:
        time.sleep(LASTS_S)
        child.kill()


def the_watched_program_stopped(aim: Aim) -> None:
    """The watched program, stopped and continued with probes in it."""
    with _program(aim) as child:
        for _ in range(5):
            time.sleep(LASTS_S / 10)
            child.send_signal(signal.SIGSTOP)
            time.sleep(LASTS_S / 10)
            child.send_signal(signal.SIGCONT)
        child.kill()


def the_watched_program_traced(aim: Aim) -> None:
    """The watched program under the user's own ptrace."""
    with _program(aim) as child:
        ctypes.CDLL(None).ptrace(_PTRACE_ATTACH, child.pid, 0, 0)
        time.sleep(LASTS_S)
        child.kill()


def the_watched_program_crashing(aim: Aim) -> None:
    """The watched program, ended by signals that dump core, and under tight limits."""
    for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGTRAP, signal.SIGILL):
        with _program(aim) as child:
            time.sleep(0.2)
            child.send_signal(number)
    for limit, value in ((resource.RLIMIT_AS, 1 << 22), (resource.RLIMIT_CPU, 1), (resource.RLIMIT_NOFILE, 3)):
        with _program(
            aim, preexec_fn=lambda limit=limit, value=value: resource.setrlimit(limit, (value, value))
        ) as child:
            time.sleep(0.2)
            child.kill()


def a_storm_of_the_watched_program(aim: Aim) -> None:
    """Lives of the watched program that end at once."""
    for _ in _until():
        with _program(aim) as child:
            child.kill()


def signals_to_the_daemon(aim: Aim) -> None:
    """SIGKILL and SIGSTOP to the daemon and its helpers."""
    for pid in aim.pids:
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGUSR1, signal.SIGHUP):
            with suppress(PermissionError):
                os.kill(pid, number)


def the_daemons_memory(aim: Aim) -> None:
    """Its memory, environment, descriptors and limits, and ptrace."""
    libc = ctypes.CDLL(None)
    for pid in aim.pids:
        for name in ("mem", "environ", "maps", "fd/0", "autogroup", "oom_score_adj"):
            for mode in (os.O_RDONLY, os.O_WRONLY):
                with suppress(OSError):
                    os.close(os.open(f"/proc/{pid}/{name}", mode))
        libc.ptrace(_PTRACE_ATTACH, pid, 0, 0)
        for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE):
            with suppress(OSError):
                resource.prlimit(pid, limit, (1, 1))
        with suppress(OSError):
            os.sched_setaffinity(pid, {0})
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, 19)


def locks_and_files(aim: Aim) -> None:
    """Its locks, its store, its socket, the kill switch: locked, replaced, removed, linked."""
    for path in aim.home.iterdir():
        for mode in (os.O_RDONLY, os.O_RDWR):
            with suppress(OSError):
                fcntl.flock(os.open(path, mode), fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.rename(path.with_suffix(".away"))
    with suppress(OSError):
        (aim.home / "off").touch()
    with suppress(OSError):
        (aim.home / "specmine.db.lock2").symlink_to("/etc/passwd")
    time.sleep(LASTS_S)


def kernel_interfaces(aim: Aim) -> None:
    """bpf(), perf_event_open(), control groups, the clock, tracing, namespaces."""
    libc = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(128)
    for command in range(20):
        libc.syscall(_BPF, command, buffer, 128)
    for pid in aim.pids:
        libc.syscall(_PERF_EVENT_OPEN, buffer, pid, -1, -1, 0)
    for path in ("/sys/fs/cgroup/apache2.service", "/sys/kernel/tracing/instances/x", "/run/specmine"):
        with suppress(OSError):
            Path(path).mkdir()
    with suppress(OSError):
        time.clock_settime(time.CLOCK_REALTIME, 0)
    libc.unshare(0x10000000 | 0x20000000)


def slow_clients_of_the_socket(aim: Aim) -> None:
    """Connections that send a blank now and then."""
    kept = []
    with suppress(OSError):
        for _ in range(200):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(0.2)
            client.connect(str(aim.home / "socket"))
            kept.append(client)
    for _ in range(3):
        for client in kept:
            with suppress(OSError):
                client.sendall(b" ")
        time.sleep(LASTS_S / 3)


def busy_clients_of_the_socket(aim: Aim) -> None:
    """Connections that ask for everything and read nothing."""
    kept = []
    with suppress(OSError):
        for _ in range(40):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(0.2)
            client.connect(str(aim.home / "socket"))
            client.sendall(b'{"command": "specification", "detail": true}\n' * 100)
            kept.append(client)
    time.sleep(LASTS_S)


def fast_clients_of_the_socket(aim: Aim) -> None:
    """Connections that ask for everything, read it, and ask again at once, in ever other words."""
    kept = []
    for _ in range(8):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(aim.home / "socket"))
        client.setblocking(False)
        kept.append(client)
    for number in _until():
        for client in kept:
            with suppress(OSError):
                client.sendall(b'{"command": "functions", "number": %d}\n' % number * 20)
            with suppress(OSError):
                client.recv(1 << 20)


def commands_that_change(aim: Aim) -> None:
    """Commands that only root and the daemon's user may give."""
    for words in (b"off", b"on", b"label", b"acknowledge", b"share"):
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(patient(60))  # an answer that is not awaited refuses nothing
            client.connect(str(aim.home / "socket"))
            fields = b'"function": "*", "build": "0", "name": "x", "ratio": 0.005, "by": "root"'
            client.sendall(b'{"command": "' + words + b'", ' + fields + b"}\n")
            assert b'"ok": false' in client.recv(4096), words


def slow_scrapes(aim: Aim) -> None:
    """Scrapes that send a letter now and then, and some that read nothing."""
    host, port = aim.metrics.rsplit(":", 1)
    kept = []
    with suppress(OSError):
        for number in range(100):
            client = socket.create_connection((host, int(port)), timeout=0.2)
            client.sendall(b"GET /metrics HTTP/1.1\r\nX: " if number % 2 else b"GET /metrics HTTP/1.0\r\n\r\n")
            kept.append(client)
    time.sleep(LASTS_S)


def fast_scrapes(aim: Aim) -> None:
    """One scrape after the other."""
    host, port = aim.metrics.rsplit(":", 1)
    for _ in _until():
        with suppress(OSError), closing(socket.create_connection((host, int(port)), timeout=1)) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            while client.recv(1 << 16):
                pass


def scrapes_under_another_name(aim: Aim) -> None:
    """A page elsewhere whose name leads here, and two requests in one."""
    for head in (b"Host: evil.example\r\n", b"Host: evil.example\r\nHost: localhost\r\n"):
        end_s, answer = time.monotonic() + patient(60), b""
        while not answer and time.monotonic() < end_s:  # other clients may have had all places until just now
            answer = _scraped(aim, head)
        assert answer.startswith(b"HTTP/1.0 421"), answer


def _scraped(aim: Aim, head: bytes) -> bytes:
    """Return the answer to a scrape, b'' if the daemon has no place for it."""
    host, port = aim.metrics.rsplit(":", 1)
    with suppress(ConnectionError), closing(socket.create_connection((host, int(port)), timeout=patient(60))) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n" + head + b"\r\n")
        return client.recv(4096)
    return b""


ATTACKS: tuple[Callable[[Aim], None], ...] = (
    names_of_mapped_files,
    names_of_programs,
    names_of_threads,
    a_fifo_in_place_of_a_file,
    programs_without_a_file,
    an_exec_storm,
    a_fork_storm,
    many_processes,
    many_threads,
    many_mappings,
    a_leased_file,
    a_library_in_the_watched_program,
    the_watched_program_stopped,
    the_watched_program_traced,
    the_watched_program_crashing,
    a_storm_of_the_watched_program,
    signals_to_the_daemon,
    the_daemons_memory,
    locks_and_files,
    kernel_interfaces,
    slow_clients_of_the_socket,
    busy_clients_of_the_socket,
    fast_clients_of_the_socket,
    commands_that_change,
    slow_scrapes,
    fast_scrapes,
    scrapes_under_another_name,
)


def run_together(attacks: Sequence[Callable[[Aim], None]], aims: Sequence[Aim]) -> list[str]:
    """Run attacks beside each other, end what is left of them; return the names of those that failed by themselves."""
    pids = [_begin(attack, aim) for attack, aim in zip(attacks, aims, strict=True)]
    codes = []
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        codes.append(os.waitstatus_to_exitcode(status))
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return [attack.__name__ for attack, code in zip(attacks, codes, strict=True) if code]


def _begin(attack: Callable[[Aim], None], aim: Aim) -> int:
    """Start an attack in a session of its own, as the user; return its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            attack(aim)
            code = 0
        except BaseException as error:
            os.write(2, f"{attack.__name__}: {error!r}\n".encode(errors="replace"))
        finally:
            os._exit(code)
    return pid
