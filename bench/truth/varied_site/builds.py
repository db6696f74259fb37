"""Apache httpd out of Debian's source package, compiled twice: everything in one executable, nothing installed."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

from bench.truth.varied_site.site import MODULES

BUILDS = {"O2": "-O2", "O3-native": "-O3 -march=native"}
"""Two builds of the same source that inline differently."""
NEEDED = ("gcc", "make", "dpkg-dev", "libapr1-dev", "libaprutil1-dev", "libpcre2-dev", "zlib1g-dev")
_STATIC = (*MODULES, "log_config", "unixd")
"""Debian's executable has the last two in it."""
_SOURCES = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {} main\n"


def source(folder: Path) -> Path:
    """Download and unpack the source through apt; return its folder.

    Raises
    ------
    subprocess.CalledProcessError
        If apt cannot.
    """
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    (folder / "sources.list").write_text(_SOURCES.format(release["VERSION_CODENAME"]))
    options = [
        "-o", f"Dir::Etc::sourcelist={folder}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
        "-o", f"Dir::State::lists={folder}/lists", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1",
    ]  # fmt: skip
    subprocess.run(["apt-get", *options, "-q=2", "update"], check=True)
    subprocess.run(["apt-get", *options, "-q=2", "source", "--download-only", "apache2"], cwd=folder, check=True)
    (archive,) = folder.glob("apache2_*.orig.tar.*[!c]")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(each for each in folder.glob("httpd-*") if each.is_dir())


def build(tree: Path, target: Path, flags: str) -> Path:
    """Compile the server in a folder of its own; return the executable."""
    target.mkdir(parents=True)
    configure = [
        tree / "configure", "--quiet", f"CFLAGS={flags} -g0", f"--prefix={target}/none", "--with-mpm=prefork",
        "--enable-modules=none", "--enable-mods-static=" + " ".join(_STATIC), "--disable-ssl", "--disable-lua",
    ]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(configure, cwd=target, check=True, **quiet)  # type: ignore[call-overload]
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}"], cwd=target, check=True, **quiet)  # type: ignore[call-overload]
    return target / "httpd"
