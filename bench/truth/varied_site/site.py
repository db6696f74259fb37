"""A site that makes a server do many things: static files, CGI, server-side includes, uploads, errors."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.demo.processes import DIES_WITH_US, stop
from examples.demo.server import LIBRARIES, free_ports, wait_until_answering

CHILDREN = 6
MODULES = (
    "alias", "auth_basic", "authn_core", "authn_file", "authz_core", "authz_host", "authz_user", "autoindex", "cgi",
    "dav", "dav_fs", "deflate", "dir", "env", "expires", "filter", "headers", "include", "mime", "negotiation",
    "rewrite", "setenvif", "status",
)  # fmt: skip
"""What the site needs, each once as Debian names it."""
_CONFIGURATION = """
{modules}
ServerRoot {folder}
ServerName localhost
DefaultRuntimeDir {folder}/run
PidFile {folder}/run/pid
ErrorLog {folder}/run/error.log
CustomLog {folder}/run/access.log "%h %t \\"%r\\" %>s %b %D"
LogLevel warn
User www-data
Group www-data
Listen 127.0.0.1:{first}
Listen 127.0.0.1:{second}
Mutex sysvsem default
StartServers {children}
MinSpareServers 1
MaxSpareServers {children}
MaxRequestWorkers {children}
MaxConnectionsPerChild 0
KeepAlive Off
DocumentRoot {folder}/pages
TypesConfig {folder}/mime.types
DAVLockDB {folder}/run/dav
<Directory {folder}/pages>
  Options Indexes Includes FollowSymLinks MultiViews
  AllowOverride All
  DirectoryIndex index.html
  AddOutputFilterByType DEFLATE text/html text/plain
  AddType text/html .shtml
  AddOutputFilter INCLUDES .shtml
  ExpiresActive On
  ExpiresDefault "access plus 1 hour"
  Header set X-Served-By specmine
</Directory>
ScriptAlias /cgi/ {folder}/cgi/
Redirect permanent /old /static/page0.html
RewriteEngine On
RewriteRule "^/nice/([0-9]+)$" "/static/page$1.html" [PT]
LimitRequestBody 2000000
<Location /status>
  SetHandler server-status
</Location>
<Location /forbidden>
  Require all denied
</Location>
<Location /secret>
  AuthType Basic
  AuthName secret
  AuthUserFile {folder}/users
  Require valid-user
</Location>
<Location /uploads>
  Dav On
</Location>
"""
_HTACCESS = "SetEnvIf User-Agent slow is_slow\nHeader set X-Here yes\n"
_SCRIPTS = {
    "hello": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello\\n'\n",
    "long": "#!/bin/sh\nprintf 'Content-Type: text/html\\n\\n%9000s</p>' '<p>'\n",
    "count": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nwc -c\n",
    "moved": "#!/bin/sh\nprintf 'Location: /static/page1.html\\n\\n'\n",
    "broken": "#!/bin/sh\necho nonsense\n",
}

Request = tuple[str, str, tuple[str, ...], int]
"""Method, path, headers, bytes of body."""
_GZIP = ("Accept-Encoding: gzip",)
REQUESTS: tuple[tuple[int, Request], ...] = (
    *((6, ("GET", f"/static/page{n}.html", _GZIP if n % 2 else (), 0)) for n in range(8)),
    *((4, ("GET", f"/static/data{n}.bin", (), 0)) for n in range(4)),
    (6, ("GET", "/", _GZIP, 0)),
    (4, ("GET", "/static/page3.html", ("If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT",), 0)),
    (3, ("GET", "/static/data3.bin", ("Range: bytes=100-2000",), 0)),
    (3, ("GET", "/static/data3.bin", ("Range: bytes=0-99,1000-1099,5000-5099",), 0)),
    (3, ("HEAD", "/static/page5.html", (), 0)),
    (3, ("GET", "/listing/", (), 0)),
    (3, ("GET", "/page.shtml", (), 0)),
    (3, ("GET", "/deep/a/b/c/d/file.txt", (), 0)),
    (3, ("GET", "/nice/2", _GZIP, 0)),
    (2, ("GET", "/old", (), 0)),
    (2, ("GET", "/listing", (), 0)),
    (2, ("GET", "/status?auto", (), 0)),
    (2, ("GET", "/secret/", ("Authorization: Basic dXNlcjpwYXNz",), 0)),
    (2, ("GET", "/secret/", (), 0)),
    (3, ("GET", "/cgi/hello", (), 0)),
    (2, ("GET", "/cgi/long", _GZIP, 0)),
    (1, ("GET", "/cgi/moved", (), 0)),
    (1, ("GET", "/cgi/broken", (), 0)),
    (2, ("POST", "/cgi/count", ("Content-Type: application/octet-stream",), 500)),
    (2, ("POST", "/cgi/count", ("Content-Type: application/octet-stream",), 60_000)),
    (1, ("POST", "/cgi/count", ("Content-Type: application/octet-stream",), 900_000)),
    (2, ("PUT", "/uploads/small", (), 2_000)),
    (1, ("PUT", "/uploads/large", (), 200_000)),
    (1, ("PROPFIND", "/uploads/", ("Depth: 1",), 0)),
    (4, ("GET", "/missing", (), 0)),
    (2, ("GET", "/forbidden/", (), 0)),
    (2, ("DELETE", "/static/page1.html", (), 0)),
    (1, ("GET", "/static/data1.bin", ("Range: bytes=99999999-",), 0)),
    (1, ("NONSENSE", "/", (), 0)),
    (1, ("POST", "/cgi/count", ("Content-Length: 3000000",), 0)),
    (1, ("GET", "/" + "x" * 9000, (), 0)),
)
"""Each with its weight."""


@contextmanager
def running(executable: Path, folder: Path, root: Path | None = None) -> Iterator[tuple[int, tuple[str, str]]]:
    """Serve the site from a private folder; yield the server's pid and its two addresses.

    ``root``: where Debian's packages were unpacked, whose modules are loaded; else all are in the executable.
    """
    _fill(folder)
    first, second = free_ports(2)
    there = root / "usr/lib/apache2/modules" if root else folder
    names = ("mpm_prefork", *MODULES) if root else ()
    modules = "\n".join(f"LoadModule {name}_module {there}/mod_{name}.so" for name in names)
    filled = _CONFIGURATION.format(modules=modules, folder=folder, first=first, second=second, children=CHILDREN)
    configuration = folder / "httpd.conf"
    configuration.write_text(filled)
    process = subprocess.Popen(
        [*DIES_WITH_US, executable, "-f", configuration, "-D", "FOREGROUND"],
        env={"PATH": "/usr/bin:/bin"} | ({"LD_LIBRARY_PATH": str(root / LIBRARIES)} if root else {}),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    try:
        wait_until_answering(process, first, folder / "run" / "error.log")
        yield process.pid, (f"127.0.0.1:{first}", f"127.0.0.1:{second}")
    finally:
        stop(process, 10)


def _fill(folder: Path) -> None:
    pages, chance = folder / "pages", random.Random(1)
    for name in ("run", "pages/static", "pages/listing", "pages/secret", "pages/forbidden", "pages/uploads", "cgi"):
        (folder / name).mkdir(parents=True)
    words = [f"word{n}" for n in range(400)]
    for n in range(8):
        text = " ".join(chance.choices(words, k=200 * (n + 1) ** 2))
        (pages / "static" / f"page{n}.html").write_text(f"<p>{text}</p>\n")
    for n in range(4):
        (pages / "static" / f"data{n}.bin").write_bytes(chance.randbytes(1000 * 8**n))
    for n in range(60):
        (pages / "listing" / f"file{n}.txt").write_text("x" * n)
    (pages / "index.html").write_text("<p>" + " ".join(chance.choices(words, k=900)) + "</p>\n")
    (pages / "secret" / "index.html").write_text("secret\n")
    (pages / "part.txt").write_text("included\n")
    parts = '<!--#include virtual="/part.txt" --><!--#echo var="DATE_LOCAL" -->\n'
    (pages / "page.shtml").write_text(f"<p>{parts * 5}</p>\n")
    deep = pages / "deep" / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    for each in (deep, *list(deep.parents)[:4]):
        (each / ".htaccess").write_text(_HTACCESS)
    (deep / "file.txt").write_text("deep\n" * 50)
    (folder / "users").write_text("user:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\n")
    (folder / "mime.types").write_text("text/html html shtml\ntext/plain txt\napplication/octet-stream bin\n")
    for name, text in _SCRIPTS.items():
        (folder / "cgi" / name).write_text(text)
        (folder / "cgi" / name).chmod(0o755)
    for each in (folder, folder / "run", pages / "uploads"):
        each.chmod(0o777 if each != folder else 0o755)
