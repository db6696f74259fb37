"""Certificates of hosts, made by the program openssl: an authority of the fleet's own, and one key a host."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from specmine.model.errors import HostError, InputError

DAYS = 365
_CURVE = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def make_authority(folder: Path) -> Path:
    """Make the fleet's certificate authority in a folder, unless it is there; return its certificate.

    Raises
    ------
    InputError
        If the folder cannot be written.
    HostError
        If there is no openssl.
    """
    certificate = folder / "ca.crt"
    if certificate.exists():
        _list_revoked(folder)
        return certificate
    _make_folder(folder)
    _openssl(
        "req", "-x509", "-newkey", *_CURVE, "-nodes", "-days", str(10 * DAYS), "-subj", "/CN=specmine fleet",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", folder / "ca.key", "-out", certificate,
    )  # fmt: skip
    (folder / "ca.key").chmod(0o600)
    _list_revoked(folder)
    return certificate


def revoke(authority: Path, role: str, *, but_newest: bool = False) -> int:
    """Revoke the certificates that a role has been given, and write the list ``ca.crl``; return how many.

    PostgreSQL refuses them from its next reload on, if its ``ssl_crl_file`` is that list.

    Parameters
    ----------
    authority : path
        Folder of the certificate authority.
    role : str
    but_newest : bool
        Keep the one that was given last: the others are of before a renewal.

    Raises
    ------
    InputError, HostError
        As ``make_authority``.
    """
    given = sorted(_given(authority, role), key=lambda path: path.stat().st_mtime_ns)
    chosen = given[:-1] if but_newest else given
    (authority / "revoked").mkdir(mode=0o700, exist_ok=True)
    for each in chosen:
        each.rename(authority / "revoked" / each.name)
    _list_revoked(authority)
    return len(chosen)


def _given(authority: Path, role: str) -> list[Path]:
    folder = authority / "issued"
    return [each for each in folder.glob("*.crt") if _read(each, "-subject", "-nameopt", "multiline")
            .rpartition("= ")[2].strip() == role] if folder.is_dir() else []  # fmt: skip


def _read(certificate: Path, *what: str) -> str:
    done = subprocess.run(["openssl", "x509", "-noout", "-in", certificate, *what], check=False, capture_output=True,
                          text=True)  # fmt: skip
    return done.stdout.strip()


def _list_revoked(authority: Path) -> None:
    """Write ``ca.crl``: what is in the folder ``revoked``. Its list is good for as long as the authority."""
    lines = []
    for each in sorted((authority / "revoked").glob("*.crt")):
        serial = _read(each, "-serial").partition("=")[2]
        lines.append(f"R\t491231235959Z\t{time.strftime('%y%m%d%H%M%SZ', time.gmtime(each.stat().st_mtime))}\t{serial}"
                     "\tunknown\t/CN=revoked\n")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "index.txt").write_text("".join(lines), encoding="ascii")
        (folder / "openssl.cnf").write_text(
            f"[ca]\ndefault_ca = fleet\n[fleet]\ndatabase = {folder}/index.txt\ndefault_md = sha256\n", encoding="utf-8"
        )
        _openssl(
            "ca", "-config", folder / "openssl.cnf", "-gencrl", "-crldays", str(10 * DAYS), "-cert",
            authority / "ca.crt", "-keyfile", authority / "ca.key", "-out", folder / "ca.crl",
        )  # fmt: skip
        new = authority / ".ca.crl.new"
        new.write_bytes((folder / "ca.crl").read_bytes())
        new.replace(authority / "ca.crl")


def issue(authority: Path, role: str, folder: Path, *, request: Path | None = None, server: bool = False) -> None:
    """Make a key and its certificate in a folder: ``host.key``, ``host.crt``, ``ca.crt``.

    Parameters
    ----------
    authority : path
        Folder of the certificate authority.
    role : str
        Common name: the role that logs in with it; of a server its host name.
    folder : path
    request : path, optional
        A certificate request made elsewhere: then its key stays there.
    server : bool
        A certificate for PostgreSQL itself.

    Raises
    ------
    InputError, HostError
        As ``make_authority``.
    """
    _make_folder(folder)
    asked = request or folder / "host.csr"
    if request is None:
        _openssl("req", "-new", "-newkey", *_CURVE, "-nodes", "-subj", f"/CN={role}",
                 "-keyout", folder / "host.key", "-out", asked)  # fmt: skip
        (folder / "host.key").chmod(0o600)
    extensions = folder / "host.ext"
    usage = "serverAuth" if server else "clientAuth"
    names = f"subjectAltName=DNS:{role},IP:127.0.0.1\n" if server else ""
    extensions.write_text(f"extendedKeyUsage={usage}\n{names}basicConstraints=CA:FALSE\n", encoding="ascii")
    # the name is ours, whatever a request says
    _openssl(
        "x509", "-req", "-in", asked, "-subj", f"/CN={role}", "-CA", authority / "ca.crt", "-CAkey",
        authority / "ca.key", "-CAcreateserial", "-days", str(DAYS), "-extfile", extensions, "-out",
        folder / "host.crt",
    )  # fmt: skip
    (folder / "ca.crt").write_bytes((authority / "ca.crt").read_bytes())
    given = authority / "issued"
    given.mkdir(mode=0o700, exist_ok=True)
    (given / f"{_read(folder / 'host.crt', '-serial').partition('=')[2]}.crt").write_bytes(
        (folder / "host.crt").read_bytes()
    )
    extensions.unlink()
    if request is None:
        asked.unlink()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error


def _openssl(*arguments: str | Path) -> None:
    command: Sequence[str | Path] = ("openssl", *arguments)
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise HostError("there is no program openssl, which makes certificates", remedy="install openssl") from error
    if done.returncode != 0:
        raise InputError(f"openssl made no certificate: {' '.join(done.stderr.split())[:300]}")
