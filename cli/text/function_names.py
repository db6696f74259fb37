"""Which function of a document a user means."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from specmine.analysis.documents import Entry, title
from specmine.model.errors import InputError
from specmine.model.text import listed

_MOST_LISTED = 10


def matching(entries: Sequence[Entry], glob: str) -> list[Entry]:
    """Return the functions that a glob names, as ``--function`` does.

    An exact name wins over its reading as a glob, so that ``operator[]`` and ``f(char*)`` find themselves.
    """
    exact = [each for each in entries if glob in _names(each)]
    return exact or [each for each in entries if any(fnmatchcase(name, glob) for name in _names(each))]


def single_match(entries: Sequence[Entry], glob: str) -> Entry:
    """Return the one function that a glob names.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    found = matching(entries, glob)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"no function matches {glob}", remedy="see `specmine functions`")
    names = [title(each) for each in found]
    if len(set(names)) < len(names):
        names = [f"{name} of build {str(each.get('build_id'))[:12]}" for name, each in zip(names, found, strict=True)]
    more = len(names) - _MOST_LISTED
    shown = [*names[:_MOST_LISTED], f"{more} more"] if more > 0 else names
    raise InputError(f"{len(found)} functions match {glob}: {listed(shown)}", remedy="name one of them")


def _names(entry: Entry) -> set[str]:
    from specmine.model.globs import names_of  # noqa: PLC0415  (it brings numpy)

    build, offset = entry.get("build_id"), entry.get("offset")
    keys = {f"{build}+0x{offset:x}"} if isinstance(offset, int) else {str(entry.get("key", ""))}
    names = names_of(str(entry.get("function", "")), str(entry.get("module", "")))
    return (names | keys | {str(entry.get("mangled", ""))}) - {""}
