"""Where a separate debug file may lie.

The reader's child may open nothing; so the file is opened here and handed over.
The child believes it only if its build-id, or the checksum in the binary's .gnu_debuglink, agrees.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from specmine.probes.process.regular_file import open_regular

from .facts import BinaryFacts

SYSTEM = Path("/usr/lib/debug")
_BUILD_ID = re.compile(r"[0-9a-f]{8,128}")


def debuginfod_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders in which debuginfod's clients keep what they fetched, in the order that they look."""
    if environ.get("DEBUGINFOD_CACHE_PATH"):
        return [Path(environ["DEBUGINFOD_CACHE_PATH"])]
    found = []
    if environ.get("XDG_CACHE_HOME"):
        found.append(Path(environ["XDG_CACHE_HOME"]) / "debuginfod_client")
    if environ.get("HOME"):
        home = Path(environ["HOME"])
        found += [home / ".cache" / "debuginfod_client", home / ".debuginfod_client_cache"]
    return found


def candidates(facts: BinaryFacts, path: str, folders: list[Path], *, system: Path = SYSTEM) -> Iterator[Path]:
    """Yield the places of a binary's debug file.

    Parameters
    ----------
    facts : BinaryFacts
        Of the binary.
    path : str
        Where the binary lies among our own files, '' if it does not: then only its build-id leads further.
    folders : list of Path
        Caches of debuginfod.
    """
    if _BUILD_ID.fullmatch(facts.build_id):
        yield system / ".build-id" / facts.build_id[:2] / f"{facts.build_id[2:]}.debug"
        for folder in folders:
            yield folder / facts.build_id / "debuginfo"
    link = facts.debuglink
    if path.startswith("/") and link and link not in (".", "..") and "/" not in link:
        own = Path(path).parent
        yield own / link
        yield own / ".debug" / link
        yield system / str(own).lstrip("/") / link


def open_debug_file(facts: BinaryFacts, path: str, folders: list[Path], *, system: Path = SYSTEM) -> int:
    """Open the first candidate that is a regular file; return its fd, -1 if there is none."""
    for place in candidates(facts, path, folders, system=system):
        if str(place) == path:
            continue
        with contextlib.suppress(OSError, ValueError):
            return open_regular(place, follow=place.is_relative_to(system / ".build-id"))  # Fedora has links there
    return -1
