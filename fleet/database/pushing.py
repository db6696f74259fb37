"""What a host may do in the database: push, ask for its duties, ask for statements about its functions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg

from .connecting import Connection, FleetError, connected, told


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Files of a host: who it is, and whom it believes."""

    certificate: Path
    key: Path
    authority: Path

    @property
    def parameters(self) -> dict[str, str]:
        """They as libpq takes them."""
        return {
            "sslmode": "verify-full",
            "sslcert": str(self.certificate),
            "sslkey": str(self.key),
            "sslrootcert": str(self.authority),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the fleet says to a push."""

    accepted: int
    """Number of the last push that it has of the stream."""
    conflict: bool
    """It has another content under this number, or later ones: two hosts use one stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the fleet asks a host for."""

    age_s: float
    """Since it was decided, s."""
    document: bytes
    """Compressed JSON."""
    newest: int
    """Number of the newest statement: less than before means that the database was restored."""


_REFUSALS = (psycopg.errors.ConfigurationLimitExceeded, psycopg.errors.InvalidAuthorizationSpecification)


class PushRefused(FleetError):
    """The fleet does not take this push now: the host is not enrolled, or sent too much."""


class HostConnection:
    """A host's connection to the fleet."""

    def __init__(self, url: str, role: str, credentials: Credentials) -> None:
        """Connect. Raises FleetError if that fails."""
        self._url = url
        self._db: Connection = connected(url, autocommit=True, user=role, **credentials.parameters)

    def push(self, stream: str, number: int, payload: bytes, boot_id: str, now_ns: int) -> Reply:
        """Send something, and return what the fleet has of the stream then.

        Parameters
        ----------
        stream : str
            A UUID.
        number : int
            From 1 on, without gaps.
        payload : bytes
        boot_id : str
        now_ns : int
            CLOCK_MONOTONIC of that boot, ns.

        Raises
        ------
        PushRefused
            If the fleet does not take it now.
        FleetError
            If it is not known whether it did.
        """
        with told(self._url):
            try:
                row = self._db.execute(
                    "SELECT * FROM specmine.push(%s::uuid, %s, %s, %s, %s, %s)",
                    (stream, number, payload, hashlib.sha256(payload).digest(), boot_id, now_ns),
                ).fetchone()
            except _REFUSALS as error:
                what = str(error).splitlines()[0]
                raise PushRefused(f"the fleet refuses a push: {what}", remedy="ask whoever runs the fleet") from error
        assert row is not None
        return Reply(accepted=row["accepted"], conflict=row["conflict"])

    def duties(self) -> Told | None:
        """Return what the fleet asks this host for; None if it asks for nothing. Raises FleetError."""
        with told(self._url):
            try:
                row = self._db.execute("SELECT * FROM specmine.duties()", binary=True).fetchone()
            except (psycopg.errors.UndefinedFunction, psycopg.errors.InsufficientPrivilege):
                return None  # an older fleet
        if row is None:
            return None
        return Told(age_s=row["age_seconds"], document=bytes(row["document"]), newest=row["newest"])

    def statements(self, since: int) -> list[tuple[int, bytes]]:
        """Return statements about functions of this host newer than a number, each with its own, at most 200."""
        with told(self._url):
            rows = self._db.execute("SELECT * FROM specmine.statements(%s)", (since,), binary=True).fetchall()
        return [(row["number"], bytes(row["document"])) for row in rows]

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._db.close()
