"""Debian's programs as they are installed, in private folders and under load, for the benches of call paths.

Packages: apache2-bin nginx redis-server redis-tools postgresql mariadb-server poppler-utils python3.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
Command = Sequence[str | Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """One program: how to prepare and start it, and what to load it with."""

    packages: str
    prepare: Callable[[Path], Command]
    """Make what it needs in a folder; return its command."""
    ready: Callable[[Path], bool]
    load: Callable[[Path], Command | None]
    """The command of its load, which runs beside it; None: the program is a load itself."""
    executable: str = ""
    """Base name of the process to watch, if it is a child of the command."""


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _port(folder: Path) -> int:
    file = folder / "port"
    if not file.exists():
        file.write_text(str(free_port()))
    return int(file.read_text())


def _answers(folder: Path) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", _port(folder)), 1):
        return True
    return False


def _page(folder: Path) -> Path:
    pages = folder / "pages"
    pages.mkdir()
    words = random.Random(1).choices([f"word{n}" for n in range(500)], k=2000)
    (pages / "index.html").write_text("<p>" + " ".join(words) + "</p>\n")
    return pages


def _http(folder: Path) -> Command:
    return [sys.executable, HERE / "load.py", f"127.0.0.1:{_port(folder)}", "--seconds", "600", "--rate", "400"]


def _apache(model: str) -> Callable[[Path], Command]:
    def prepare(folder: Path) -> Command:
        modules = "/usr/lib/apache2/modules"
        names = ("authz_core", "filter", "deflate", "dir", "mime", "include", "rewrite", "headers")
        lines = [
            f"ServerRoot {folder}",
            "ServerName localhost",
            f"DefaultRuntimeDir {folder}",
            f"PidFile {folder}/pid",
            f"ErrorLog {folder}/error.log",
            "User www-data",
            "Group www-data",
            f"LoadModule mpm_{model}_module {modules}/mod_mpm_{model}.so",
            *(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in names),
            f"Listen 127.0.0.1:{_port(folder)}",
            "TypesConfig /etc/mime.types",
            f"DocumentRoot {_page(folder)}",
            "SetOutputFilter DEFLATE",
            "StartServers 3",
            "RewriteEngine on",
            "RewriteRule ^/other(.*)$ /index$1",
            "Header set X-Page found",
        ]
        (folder / "httpd.conf").write_text("\n".join(lines) + "\n")
        return ["/usr/sbin/apache2", "-f", folder / "httpd.conf", "-D", "FOREGROUND"]

    return prepare


def _nginx(folder: Path) -> Command:
    text = f"""
user www-data;
worker_processes 2;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access.log;
    gzip on;
    server {{ listen 127.0.0.1:{_port(folder)}; root {_page(folder)}; }}
}}
"""
    (folder / "nginx.conf").write_text(text)
    return ["/usr/sbin/nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log"]


def _redis(folder: Path) -> Command:
    return ["/usr/bin/redis-server", "--port", "0", "--unixsocket", folder / "socket", "--dir", folder, "--save", ""]


def _redis_load(folder: Path) -> Command:
    tests = "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset"
    return ["redis-benchmark", "-s", folder / "socket", "-l", "-q", "-c", "4", "-r", "10000", "-t", tests]


def _as_postgres(command: Command) -> Command:
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]


def _postgres(folder: Path) -> Command:
    data = folder / "data"
    shutil.chown(folder, "postgres", "postgres")
    subprocess.run(_as_postgres([POSTGRES[-1] / "initdb", "-D", data, "-A", "trust"]), check=True, cwd=folder, **QUIET)
    own = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
    return _as_postgres([POSTGRES[-1] / "postgres", "-D", data, *own])


def _postgres_load(folder: Path) -> Command:
    bench = [POSTGRES[-1] / "pgbench", "-h", folder]
    made = [*bench, "-i", "-s", "2", "-q", "postgres"]
    subprocess.run(_as_postgres(made), check=True, cwd=folder, **QUIET)
    return _as_postgres([*bench, "-c", "2", "-T", "600", "-R", "300", "postgres"])


def _mariadb(folder: Path) -> Command:
    data = folder / "data"
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db"]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, cwd=folder, **QUIET)
    own = ["--user=root", "--skip-networking", f"--socket={folder}/socket", f"--pid-file={folder}/pid"]
    return ["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", *own]


def _mariadb_load(folder: Path) -> Command:
    what = ["--auto-generate-sql", "--auto-generate-sql-load-type=mixed", "--number-of-queries=1000"]
    return ["mariadb-slap", f"--socket={folder}/socket", "--user=root", "-c", "2", "-i", "100000", *what]


_SCRIPT = """
import json, re, sqlite3, zlib, hashlib, random
database = sqlite3.connect(":memory:")
database.execute("create table t (a, b)")
while True:
    text = json.dumps({str(n): [random.random() for _ in range(20)] for n in range(50)})
    json.loads(text)
    re.findall(r"[0-9]+\\.[0-9]*5", text)
    zlib.compress(text.encode())
    hashlib.sha256(text.encode()).digest()
    sorted((hash(w) for w in text.split()), key=lambda n: -n)
    database.executemany("insert into t values (?, ?)", [(n, str(n)) for n in range(200)])
    database.execute("select count(*) from t where a > 100").fetchall()
    database.execute("delete from t")
"""


def _python(folder: Path) -> Command:
    (folder / "script.py").write_text(_SCRIPT)
    return ["/usr/bin/python3", folder / "script.py"]


def _pdf(folder: Path) -> Path:
    """Write a document of many pages with text, curves and fills."""
    chance = random.Random(2)
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>",
    ]
    pages = []
    for _ in range(400):
        ink = []
        for line in range(40):
            words = " ".join(chance.choices(["path", "frame", "call", "probe", "stack", "row"], k=9))
            ink.append(f"BT /F1 11 Tf 40 {780 - 18 * line} Td ({words}) Tj ET")
        for _ in range(60):
            points = " ".join(f"{chance.uniform(0, 590):.1f}" for _ in range(6))
            ink.append(f"{chance.random():.2f} {chance.random():.2f} 0.5 rg 300 400 m {points} c f")
        content = zlib.compress("\n".join(ink).encode())
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(content), content))
        page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R "
        objects.append((page.format(len(objects)) + "/Resources << /Font << /F1 3 0 R >> >> >>").encode())
        pages.append(len(objects))
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{n} 0 R' for n in pages)}] >>".encode()
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    end += f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    path = folder / "pages.pdf"
    path.write_bytes(data + end.encode())
    return path


def _pdftoppm(folder: Path) -> Command:
    return ["/usr/bin/pdftoppm", "-r", "72", "-png", _pdf(folder), folder / "page"]


def _always(folder: Path) -> bool:
    return folder.exists()


PROGRAMS = {
    "apache2-prefork": Stock(packages="apache2-bin", prepare=_apache("prefork"), ready=_answers, load=_http),
    "apache2-event": Stock(packages="apache2-bin", prepare=_apache("event"), ready=_answers, load=_http),
    "nginx": Stock(packages="nginx", prepare=_nginx, ready=_answers, load=_http),
    "redis-server": Stock(
        packages="redis-server redis-tools",
        prepare=_redis,
        ready=lambda folder: (folder / "socket").exists(),
        load=_redis_load,
    ),
    "postgres": Stock(
        packages="postgresql",
        prepare=_postgres,
        ready=lambda folder: (folder / ".s.PGSQL.5432").exists(),
        load=_postgres_load,
    ),
    "mariadbd": Stock(
        packages="mariadb-server",
        prepare=_mariadb,
        ready=lambda folder: (folder / "socket").exists(),
        load=_mariadb_load,
    ),
    "python3": Stock(packages="python3", prepare=_python, ready=_always, load=lambda folder: None),
    "pdftoppm": Stock(packages="poppler-utils", prepare=_pdftoppm, ready=_always, load=lambda folder: None),
}


@contextmanager
def running(name: str, folder: Path) -> Iterator[int]:
    """Start a program and its load; yield the pid of the program; end both with all their children."""
    stock = PROGRAMS[name]
    folder.chmod(0o755)
    with ExitStack() as stack:
        process = _started(stack, stock.prepare(folder), folder)
        end = time.monotonic() + 30
        while not stock.ready(folder):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{name} does not start in {folder}; packages: {stock.packages}")
            time.sleep(0.05)
        load = stock.load(folder)
        if load is not None:
            _started(stack, load, folder)
        yield process.pid


def _started(stack: ExitStack, command: Command, folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(list(command), cwd=folder, start_new_session=True, **QUIET)
    stack.callback(_ended, process)
    return process


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End a process in order, then its group with force."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
