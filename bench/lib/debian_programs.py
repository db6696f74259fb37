"""Debian's programs as they are installed, in private folders and under load, for the benches.

How each is prepared and started is here; loads.py starts the same servers under a load that counts its work.
Packages: apache2-bin nginx redis-server redis-tools postgresql mariadb-server poppler-utils python3.
"""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lib.peers import stopped

HERE = Path(__file__).resolve().parent
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
QUIET: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
Command = Sequence[str | Path]
Prepare = Callable[[Path], Command]
"""Creates what a program needs in a folder; returns its command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """One program: how to prepare and start it, and what to load it with."""

    packages: str
    prepare: Prepare
    ready: Callable[[Path], bool]
    load: Callable[[Path], Command | None]
    """The command of its load, which runs at the same time; None: the program is a load itself."""


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def port_of(folder: Path) -> int:
    """Return the port of the server that has this folder."""
    file = folder / "port"
    if not file.exists():
        file.write_text(str(free_port()))
    return int(file.read_text())


def answers(folder: Path) -> bool:
    """Return whether a server can be connected to."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port_of(folder)), 1):
        return True
    return False


def _page(folder: Path) -> Path:
    pages = folder / "pages"
    pages.mkdir()
    words = random.Random(1).choices([f"word{n}" for n in range(500)], k=2000)
    (pages / "index.html").write_text("<p>" + " ".join(words) + "</p>\n")
    return pages


def _http(folder: Path) -> Command:
    return [sys.executable, HERE / "http_load.py", f"127.0.0.1:{port_of(folder)}", "--seconds", "600", "--rate", "400"]


def apache(model: str, *more: str) -> Prepare:
    """Return how Apache is prepared with a model of processes and more lines of configuration."""

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
            f"Listen 127.0.0.1:{port_of(folder)}",
            "TypesConfig /etc/mime.types",
            f"DocumentRoot {_page(folder)}",
            "SetOutputFilter DEFLATE",
            "StartServers 3",
            "RewriteEngine on",
            "RewriteRule ^/other(.*)$ /index$1",
            "Header set X-Page found",
            *more,
        ]
        (folder / "httpd.conf").write_text("\n".join(lines) + "\n")
        return ["/usr/sbin/apache2", "-f", folder / "httpd.conf", "-D", "FOREGROUND"]

    return prepare


def nginx(workers: int, *more: str) -> Prepare:
    """Return how nginx is prepared with so many processes and more lines of configuration."""

    def prepare(folder: Path) -> Command:
        lines = [
            "user www-data;",
            f"worker_processes {workers};",
            "daemon off;",
            f"pid {folder}/pid;",
            f"error_log {folder}/error.log;",
            "events { worker_connections 256; }",
            "http {",
            "gzip on;",
            f"server {{ listen 127.0.0.1:{port_of(folder)}; root {_page(folder)}; }}",
            *(more or [f"access_log {folder}/access.log;"]),
            "}",
        ]
        (folder / "nginx.conf").write_text("\n".join(lines) + "\n")
        return ["/usr/sbin/nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log"]

    return prepare


def redis(folder: Path) -> Command:
    """Prepare Redis on a socket."""
    return ["/usr/bin/redis-server", "--port", "0", "--unixsocket", folder / "socket", "--dir", folder, "--save", ""]


def _redis_load(folder: Path) -> Command:
    tests = "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset"
    return ["redis-benchmark", "-s", folder / "socket", "-l", "-q", "-c", "4", "-r", "10000", "-t", tests]


def as_postgres(command: Command) -> Command:
    """Return a command as it runs as the user of PostgreSQL."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]


def postgres(**settings: str) -> Prepare:
    """Return how PostgreSQL is prepared, on a socket, with more settings."""

    def prepare(folder: Path) -> Command:
        data = folder / "data"
        shutil.chown(folder, "postgres", "postgres")
        made = as_postgres([POSTGRES[-1] / "initdb", "-D", data, "-A", "trust"])
        subprocess.run(made, check=True, cwd=folder, **QUIET)
        own = {"listen_addresses": "", "unix_socket_directories": folder, **settings}
        options = [word for name, value in own.items() for word in ("-c", f"{name}={value}")]
        return as_postgres([POSTGRES[-1] / "postgres", "-D", data, *options])

    return prepare


def _postgres_load(folder: Path) -> Command:
    bench: list[str | Path] = [POSTGRES[-1] / "pgbench", "-h", folder]
    made = [*bench, "-i", "-s", "2", "-q", "postgres"]
    subprocess.run(as_postgres(made), check=True, cwd=folder, **QUIET)
    return as_postgres([*bench, "-c", "2", "-T", "600", "-R", "300", "postgres"])


def mariadb(folder: Path) -> Command:
    """Prepare MariaDB on a socket."""
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
    "apache2-prefork": Stock(packages="apache2-bin", prepare=apache("prefork"), ready=answers, load=_http),
    "apache2-event": Stock(packages="apache2-bin", prepare=apache("event"), ready=answers, load=_http),
    "nginx": Stock(packages="nginx", prepare=nginx(2), ready=answers, load=_http),
    "redis-server": Stock(
        packages="redis-server redis-tools",
        prepare=redis,
        ready=lambda folder: (folder / "socket").exists(),
        load=_redis_load,
    ),
    "postgres": Stock(
        packages="postgresql",
        prepare=postgres(),
        ready=lambda folder: (folder / ".s.PGSQL.5432").exists(),
        load=_postgres_load,
    ),
    "mariadbd": Stock(
        packages="mariadb-server",
        prepare=mariadb,
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
    stack.callback(stopped, process)
    return process
